//! Runs: entering, opening steps, stopping, ending.

use crate::core::Core;
use crate::ids::{NodeId, TaskId};
use crate::model::Rule;
use crate::nodes::{Node, Run, RunState, StepState};
use crate::protocol::{Body, Effect, Life, NodeRow, Payload, Question, StepBody, StepKind, Stop, Write};
use crate::state::State;
use crate::time::Moment;
use crate::timers::Alarm;

impl Core {
    /// The run starts: its first steps become ready.
    pub(crate) fn enter_run(&mut self, node: NodeId, now: Moment) {
        self.count_run_start(node, now);
        let Some(run) = self.run_mut(node) else { return };
        run.state = RunState::Running;
        run.since = now;
        run.deadline = run.plan.flow.timeout.map(|timeout| now + timeout);
        run.find_ready();
        let (deadline, is_done) = (run.deadline, run.open == 0);
        self.begun.insert(node);
        self.write(Write::Entered { node, state: State::Running, at: now });
        if let Some(at) = deadline {
            self.timers.set(at, TaskId::node(node), Alarm::Deadline);
        }
        self.busy.insert(node);
        if is_done {
            self.steps_are_done(node, now);
        }
    }

    /// Opens ready steps, or tells open ones to stop; says whether there is more to do.
    pub(crate) fn go_on_with_run(&mut self, node: NodeId, now: Moment, slice: &mut u32) -> bool {
        while *slice > 0 {
            let Some(run) = self.run_mut(node) else { return false };
            *slice -= 1;
            if let Some(index) = run.sweep {
                run.sweep = Some(index + 1).filter(|&next| (next as usize) < run.steps.len());
                self.sweep_step(node, index, now);
            } else if let Some(index) = run.ready.pop_front() {
                self.open_ready_step(node, index, now);
            } else {
                return false;
            }
        }
        self.run(node).is_some_and(|run| run.sweep.is_some() || !run.ready.is_empty())
    }

    /// All predecessors of a step have ended: it is skipped, or its condition and work are rendered.
    fn open_ready_step(&mut self, node: NodeId, index: u32, now: Moment) {
        let Some(run) = self.run_mut(node) else { return };
        if run.steps[index as usize] != StepState::Ready {
            return;
        }
        if run.stop.is_some() {
            self.step_is_closed(node, index, State::Cancelled, now);
            return;
        }
        let step = &run.plan.flow.steps[index as usize];
        let succeeded = |&before: &u32| run.steps[before as usize] == StepState::Ended(State::Succeeded);
        if matches!(step.rule, Rule::Success { .. }) && !step.after.iter().all(succeeded) {
            self.close_unopened_step(node, index, State::Skipped, None, now);
            return;
        }
        run.steps[index as usize] = StepState::Asking;
        self.effect(Effect::Ask(Question::Step { run: node, step: index }));
    }

    /// A step ends before it is a node of its own: its row is written with its end.
    pub(crate) fn close_unopened_step(
        &mut self,
        node: NodeId,
        index: u32,
        state: State,
        error: Option<String>,
        now: Moment,
    ) {
        self.note_step_error(node, index, state, error.as_deref());
        self.write_ended_step(node, index, StepKind::Nothing, state, error, now);
        self.step_is_closed(node, index, state, now);
    }

    pub(crate) fn write_ended_step(
        &mut self,
        node: NodeId,
        index: u32,
        kind: StepKind,
        state: State,
        error: Option<String>,
        now: Moment,
    ) {
        let Some(run) = self.run(node) else { return };
        let row = NodeRow {
            node: node.step(index as usize),
            parent: Some(node),
            root: run.root,
            priority: run.priority,
            accepted: now,
            body: Body::Step(StepBody { index, kind, start_by: None }),
            payload: None,
            life: Life { ended: Some(now), error, ..Life::new(state) },
        };
        self.write(Write::NodeAdded(Box::new(row)));
    }

    /// The first failure is what the run says went wrong.
    pub(crate) fn note_step_error(&mut self, node: NodeId, index: u32, state: State, error: Option<&str>) {
        let Some(run) = self.run_mut(node) else { return };
        let told = run.stop.is_some() && state == State::Cancelled;
        if run.error.is_none() && is_failure(state) && !told {
            let name = &run.plan.flow.steps[index as usize].name;
            let why = error.map_or_else(|| state.to_string().replace('_', " "), str::to_owned);
            run.error = Some(format!("step `{name}`: {why}"));
        }
    }

    /// A step has ended: those that waited for it may be ready, and the run may be over.
    pub(crate) fn step_is_closed(&mut self, node: NodeId, index: u32, state: State, now: Moment) {
        let Some(run) = self.run_mut(node) else { return };
        if matches!(run.steps[index as usize], StepState::Ended(_)) {
            return;
        }
        run.end_step(index, state);
        let plan = run.plan.clone();
        for &later in &plan.successors[index as usize] {
            if let StepState::Blocked(missing) = run.steps[later as usize] {
                run.steps[later as usize] = match missing - 1 {
                    0 => {
                        run.ready.push_back(later);
                        StepState::Ready
                    }
                    missing => StepState::Blocked(missing),
                };
            }
        }
        let (open, more) = (run.open, !run.ready.is_empty());
        if more {
            self.busy.insert(node);
        }
        if is_failure(state) && plan.flow.fail_fast {
            self.stop_run(node, Stop::FailedFast, now);
        }
        if open == 0 {
            self.steps_are_done(node, now);
        }
    }

    /// Every step has ended: the run ends, after its outputs were rendered if it went well.
    pub(crate) fn steps_are_done(&mut self, node: NodeId, now: Moment) {
        let Some(run) = self.run_mut(node) else { return };
        let state = match run.stop {
            Some(Stop::FailedFast) => State::Failed,
            Some(stop) => stop.end(),
            None => {
                let ended = |index: u32| run.steps[index as usize];
                let ran = |index| ended(index) != StepState::Ended(State::Skipped);
                let failed = run.steps.iter().enumerate().any(|(index, &step)| {
                    matches!(step, StepState::Ended(state) if is_failure(state))
                        && !run.plan.is_handled(index, ran)
                });
                if failed { State::Failed } else { State::Succeeded }
            }
        };
        if state == State::Succeeded && run.plan.flow.outputs.is_some() {
            run.ending = true;
            self.effect(Effect::Ask(Question::Outputs { run: node }));
            return;
        }
        let error = match run.stop {
            Some(Stop::TimedOut) => Some("ran longer than its timeout".to_owned()),
            _ => run.error.take().filter(|_| state != State::Succeeded),
        };
        self.end_run(node, state, None, error, now);
    }

    /// The run is over: what it held is free, and the step or item around it, if any, ends alike.
    pub(crate) fn end_run(
        &mut self,
        node: NodeId,
        state: State,
        output: Option<Payload>,
        error: Option<String>,
        now: Moment,
    ) {
        let Some(Node::Run(run)) = self.nodes.remove(&node) else { return };
        self.begun.remove(&node);
        if let (Some(class), RunState::Running) = (run.class, run.state) {
            self.release(class, None);
        }
        if let Some(at) = run.deadline {
            self.timers.clear(at, TaskId::node(node), Alarm::Deadline);
        }
        self.busy.remove(&node);
        if let Some(id) = run.id {
            self.forget_id(id, run.idempotency.as_deref());
            self.count_run_end(&run.plan.flow.name, state);
        }
        let task = TaskId::node(node);
        let for_parent = run.parent.map(|_| (output.clone(), error.clone()));
        self.write(Write::Ended { task, state, output, error, at: now });
        if let (Some(outer), Some((output, error))) = (run.parent, for_parent) {
            self.run_inside_ended(outer, state, output, error, now);
        }
    }

    /// Ends a run that has not started.
    pub(crate) fn end_waiting_run(&mut self, node: NodeId, state: State, error: Option<String>, now: Moment) {
        let Some(run) = self.run(node) else { return };
        match (run.state, run.class) {
            (RunState::Scheduled(due), _) => self.timers.clear(due, TaskId::node(node), Alarm::Due),
            (RunState::Waiting, Some(class)) => self.withdraw(TaskId::node(node), class, now),
            (RunState::Waiting, None) => {}
            (RunState::Running, _) => return,
        }
        self.end_run(node, state, None, error, now);
    }

    /// No further step starts, open ones are told to stop; the run ends when the last of them has.
    pub(crate) fn stop_run(&mut self, node: NodeId, why: Stop, now: Moment) {
        let Some(run) = self.run_mut(node) else { return };
        if run.state != RunState::Running {
            self.end_waiting_run(node, why.end(), None, now);
            return;
        }
        if run.stop.is_some() {
            return;
        }
        run.stop = Some(why);
        let is_ending = std::mem::take(&mut run.ending);
        run.sweep = Some(0);
        self.write(Write::Stopping { task: TaskId::node(node), why, error: None, at: now });
        if is_ending {
            self.end_run(node, why.end(), None, None, now);
        } else {
            self.busy.insert(node);
        }
    }

    fn sweep_step(&mut self, node: NodeId, index: u32, now: Moment) {
        let Some(run) = self.run(node) else { return };
        let why = run.stop.unwrap_or(Stop::Cancelled);
        match run.steps[index as usize] {
            StepState::Blocked(_) | StepState::Ready | StepState::Asking => {
                self.step_is_closed(node, index, State::Cancelled, now);
            }
            StepState::Open => {
                // What a run's time-out stops was cancelled; only the run itself timed out.
                let why = if why == Stop::TimedOut { Stop::Cancelled } else { why };
                self.stop_step(node.step(index as usize), why, now);
            }
            StepState::Ended(_) => {}
        }
    }
}

impl Run {
    pub(crate) fn end_step(&mut self, index: u32, state: State) {
        self.steps[index as usize] = StepState::Ended(state);
        self.open -= 1;
    }

    /// Steps that wait only for what has ended, be it before the run began or before it was loaded, are ready.
    pub(crate) fn find_ready(&mut self) {
        for (index, step) in self.plan.flow.steps.iter().enumerate() {
            if !matches!(self.steps[index], StepState::Blocked(_)) {
                continue;
            }
            let open = |&&before: &&u32| !matches!(self.steps[before as usize], StepState::Ended(_));
            self.steps[index] = match step.after.iter().filter(open).count() as u32 {
                0 => {
                    self.ready.push_back(index as u32);
                    StepState::Ready
                }
                missing => StepState::Blocked(missing),
            };
        }
    }
}

/// Whether a run fails because of a step that ended so.
pub(crate) fn is_failure(state: State) -> bool {
    matches!(
        state,
        State::Failed
            | State::TimedOut
            | State::Expired
            | State::Cancelled
            | State::Refused
            | State::Replaced
    )
}

#[cfg(test)]
mod tests {
    use crate::core::SLICE;
    use crate::ids::TaskId;
    use crate::model::Step;
    use crate::protocol::{Command, Effect, Evaluation, Question, Write};
    use crate::state::State;
    use crate::testkit::{Kit, flow, step};

    /// A flow of more steps than one command looks after; all come after the first, or none does.
    fn wide(after: Vec<u32>) -> Vec<Step> {
        let others = (1..SLICE + 44).map(|n| Step { after: after.clone(), ..step(&format!("s{n}")) });
        std::iter::once(step("s0")).chain(others).collect()
    }

    #[test]
    fn a_run_opens_its_steps_in_slices() {
        let mut kit = Kit::new(0);
        kit.declare(vec![flow("wide", wide(Vec::new()))], Vec::new(), None);
        kit.run("wide");
        let asked = |kit: &Kit| {
            let of_steps = |effect: &&Effect| matches!(effect, Effect::Ask(Question::Step { .. }));
            kit.effects.iter().filter(of_steps).count() as u32
        };
        assert_eq!((asked(&kit), kit.core.next_wake()), (SLICE, Some(kit.now)));
        kit.apply(Command::Wake);
        assert_eq!(asked(&kit), SLICE + 44);
    }

    #[test]
    fn a_run_is_stopped_in_slices() {
        let mut kit = Kit::new(0);
        kit.declare(vec![flow("wide", wide(vec![0]))], Vec::new(), None);
        let run = kit.run("wide");
        kit.apply(Command::Cancel(TaskId::node(run)));
        assert_eq!((kit.ended(run), kit.core.next_wake()), (None, Some(kit.now)));
        kit.apply(Command::Wake);
        assert_eq!(kit.ended(run).map(|(state, _)| state), Some(State::Cancelled));
    }

    #[test]
    fn a_step_that_is_skipped_is_written_once_with_its_end() {
        let mut kit = Kit::new(0);
        kit.declare(vec![flow("one", vec![step("a")])], Vec::new(), None);
        let run = kit.run("one");
        kit.answer_step(run, 0, Evaluation::Skipped);
        let rows: Vec<_> = kit
            .writes
            .iter()
            .filter_map(|write| match write {
                Write::NodeAdded(row) => Some((row.node, row.life.state, row.life.ended)),
                _ => None,
            })
            .collect();
        assert_eq!(rows, [(run.step(0), State::Skipped, Some(kit.now))]);
    }
}
