//! Steps: opened by an evaluation, entered when the run has room, ended by their work.

use crate::catalog::Source;
use crate::core::Core;
use crate::ids::{NodeId, TaskId};
use crate::model::{WhenBusy, Work as StepWork};
use crate::nodes::{Kind, Loop, Node, Run, RunState, Step, StepState, Work, WorkState};
use crate::protocol::{
    Body, Effect, Evaluation, Life, NodeRow, Payload, Question, Rendered, RunBody, StepBody, StepKind, Stop,
    Tally, Write,
};
use crate::state::State;
use crate::time::Moment;
use crate::timers::Alarm;
use std::collections::{BTreeMap, VecDeque};

/// Orders up to this size stay in memory; larger ones are read from the store when they are handed out.
pub const RESIDENT: usize = 256;

pub(crate) fn resident(payload: &Payload) -> Option<Payload> {
    (payload.bytes().len() <= RESIDENT).then(|| payload.clone())
}

impl Core {
    /// The answer to what a ready step is to do.
    pub(crate) fn step_evaluated(&mut self, run: NodeId, index: u32, evaluation: Evaluation, now: Moment) {
        let Some(step) = self.run(run).and_then(|run| run.plan.flow.steps.get(index as usize)) else {
            return;
        };
        let is_loop = step.each.is_some();
        let (kind, stored, payload) = match (evaluation, &step.work) {
            (Evaluation::Skipped, _) => {
                return self.close_unopened_step(run, index, State::Skipped, None, now);
            }
            (Evaluation::Failed { error }, _) => {
                return self.close_unopened_step(run, index, State::Failed, Some(error), now);
            }
            (Evaluation::Order(Rendered { order, key }), StepWork::Order(_) | StepWork::Action { .. })
                if !is_loop =>
            {
                let kind = Kind::Plain {
                    key: key.clone(),
                    order: resident(&order),
                    work: None,
                    tally: Tally::default(),
                };
                (kind, StepKind::Plain { key }, Some(order))
            }
            (
                Evaluation::List { items, count },
                StepWork::Order(_) | StepWork::Action { .. } | StepWork::Flow { .. },
            ) if is_loop => {
                let items_of = Loop { count, ..Loop::default() };
                (Kind::Loop(Box::new(items_of)), StepKind::Loop { count }, Some(items))
            }
            (Evaluation::SubFlow { inputs }, StepWork::Flow { .. }) if !is_loop => {
                (Kind::SubFlow { child: None }, StepKind::SubFlow, Some(inputs))
            }
            (Evaluation::Until(until), StepWork::Wait(_)) if !is_loop => {
                (Kind::Wait { until }, StepKind::Wait { until }, None)
            }
            (other, _) => {
                let error = format!("its templates gave something else than its work needs: {other:?}");
                return self.close_unopened_step(run, index, State::Failed, Some(error), now);
            }
        };
        self.add_step(run, index, kind, stored, payload, now);
    }

    fn add_step(
        &mut self,
        run_node: NodeId,
        index: u32,
        kind: Kind,
        stored: StepKind,
        payload: Option<Payload>,
        now: Moment,
    ) {
        let Some(run) = self.run_mut(run_node) else { return };
        run.steps[index as usize] = StepState::Open;
        let (root, priority) = (run.root, run.priority);
        let parallel = run.plan.flow.parallel_steps.filter(|_| kind.takes_a_place());
        let start_by = run.plan.flow.steps[index as usize].start_within.map(|within| now + within);
        let node = run_node.step(index as usize);
        self.write(Write::NodeAdded(Box::new(NodeRow {
            node,
            parent: Some(run_node),
            root,
            priority,
            accepted: now,
            body: Body::Step(StepBody { index, kind: stored, start_by }),
            payload,
            life: Life::new(State::Waiting),
        })));
        let step = Step { run: run_node, index, start_by, class: None, entered: false, kind, since: now };
        self.nodes.insert(node, Node::Step(Box::new(step)));
        if let Some(at) = start_by {
            self.timers.set(at, TaskId::node(node), Alarm::StartBy);
        }
        match parallel {
            Some(parallel) => {
                let class = self.enqueue(TaskId::node(node), Source::Step { run: run_node, parallel });
                if let Some(step) = self.step_mut(node) {
                    step.class = Some(class);
                }
            }
            None => self.enter_step(node, now),
        }
    }

    /// The step has what it needs of its run: its work may ask, expand or begin.
    pub(crate) fn enter_step(&mut self, node: NodeId, now: Moment) {
        let Some(step) = self.step_mut(node) else { return };
        step.entered = true;
        step.since = now;
        let holds = step.class.is_some();
        match &step.kind {
            Kind::Plain { .. } => {
                if holds {
                    self.write(Write::Entered { node, state: State::Waiting, at: now });
                }
                self.ask_for_step(node, now);
            }
            Kind::Loop(items) => {
                let count = items.count;
                self.write(Write::Entered { node, state: State::Running, at: now });
                self.begin_unbounded(node);
                if count == 0 {
                    self.end_step(node, State::Succeeded, None, None, now);
                } else if let Some(Err(error)) = self.sub_flow_of(node) {
                    self.end_step(node, State::Failed, None, Some(error), now);
                } else {
                    self.ask_for_items(node);
                }
            }
            Kind::SubFlow { .. } => {
                self.write(Write::Entered { node, state: State::Running, at: now });
                self.begin_unbounded(node);
                self.start_sub_flow(node, now);
            }
            Kind::Wait { until } => {
                let until = *until;
                self.write(Write::Entered { node, state: State::Scheduled, at: now });
                self.begin_unbounded(node);
                self.timers.set(until, TaskId::node(node), Alarm::Due);
            }
        }
    }

    /// A loop, sub-flow or pause has started as soon as it is entered: it can no longer expire.
    fn begin_unbounded(&mut self, node: NodeId) {
        if let Some(at) = self.step_mut(node).and_then(|step| step.start_by.take()) {
            self.timers.clear(at, TaskId::node(node), Alarm::StartBy);
        }
    }

    /// A plain step asks for all it needs to run.
    pub(crate) fn ask_for_step(&mut self, node: NodeId, now: Moment) {
        let Some(Step { kind: Kind::Plain { key, tally, .. }, .. }) = self.step(node) else { return };
        let (key, tally) = (key.clone(), *tally);
        let Some(source) = self.step_source(node, &key) else { return };
        if let Some(refusal) = self.refuses(&source).or_else(|| self.rejects_step(node, &source, now)) {
            return self.end_step(node, State::Refused, None, Some(refusal), now);
        }
        let class = self.enqueue(TaskId::node(node), source);
        if let Some(Step { kind: Kind::Plain { work, .. }, .. }) = self.step_mut(node) {
            *work = Some(Work { class, tally, since: now, at: WorkState::Waiting });
        }
    }

    /// A step of an action that says `reject` does not wait for the action's own limit.
    fn rejects_step(&self, node: NodeId, source: &Source, now: Moment) -> Option<String> {
        let action = self.action_of(node)?;
        let own = self.own_limit(source)?;
        let busy = self.catalog.action(action).when_busy == WhenBusy::Reject
            && self.is_busy(&own, self.rank(TaskId::node(node)), now);
        busy.then(|| self.busy_at(&own).to_string())
    }

    pub(crate) fn ask_for_items(&mut self, node: NodeId) {
        let slice = self.slice;
        let Some(Step { kind: Kind::Loop(items), .. }) = self.step_mut(node) else { return };
        items.asking = true;
        let (from, to) = (items.expanded, (items.expanded + slice).min(items.count));
        self.effect(Effect::Ask(Question::Items { step: node, from, to }));
    }

    /// Numbers for a run and its steps.
    pub(crate) fn take_numbers(&mut self, steps: usize) -> NodeId {
        let node = NodeId(self.next);
        self.next += 1 + steps as u64;
        node
    }

    /// The step is over: what it holds of its run is free, and the run goes on.
    pub(crate) fn end_step(
        &mut self,
        node: NodeId,
        state: State,
        output: Option<Payload>,
        error: Option<String>,
        now: Moment,
    ) {
        let Some(Node::Step(step)) = self.nodes.remove(&node) else { return };
        if let (Some(class), true) = (step.class, step.entered) {
            self.release(class, None);
        }
        if let Some(at) = step.start_by {
            self.timers.clear(at, TaskId::node(node), Alarm::StartBy);
        }
        self.busy.remove(&node);
        self.note_step_error(step.run, step.index, state, error.as_deref());
        self.write(Write::Ended { task: TaskId::node(node), state, output, error, at: now });
        self.step_is_closed(step.run, step.index, state, now);
    }

    /// Stops a step, wherever it is: what runs of it is told to, the rest ends at once.
    pub(crate) fn stop_step(&mut self, node: NodeId, why: Stop, now: Moment) {
        let Some(step) = self.step(node) else { return };
        if !step.entered {
            if let Some(class) = step.class {
                self.withdraw(TaskId::node(node), class, now);
            }
            return self.end_step(node, why.end(), None, None, now);
        }
        match &step.kind {
            Kind::Plain { .. } => self.stop_work(TaskId::node(node), why, now),
            Kind::Loop(_) => self.stop_loop(node, why, now),
            Kind::SubFlow { child: Some(child) } => self.stop_inside(*child, why, now),
            Kind::SubFlow { child: None } => self.end_step(node, why.end(), None, None, now),
            Kind::Wait { until } => {
                self.timers.clear(*until, TaskId::node(node), Alarm::Due);
                self.end_step(node, why.end(), None, None, now);
            }
        }
    }
}

impl Run {
    /// A run that has just been accepted, before it asks.
    pub(crate) fn new(body: RunBody, plan: std::sync::Arc<crate::catalog::Plan>, now: Moment) -> Run {
        let steps: Vec<StepState> =
            plan.flow.steps.iter().map(|step| StepState::Blocked(step.after.len() as u32)).collect();
        Run {
            id: body.id,
            parent: None,
            root: 0,
            priority: 0,
            paused: false,
            version: body.version,
            depth: body.depth,
            key: body.key,
            tags: body.tags,
            idempotency: body.idempotency.map(Box::new),
            since: now,
            state: RunState::Waiting,
            class: None,
            open: steps.len() as u32,
            steps,
            reused: BTreeMap::new(),
            ready: VecDeque::new(),
            stop: None,
            sweep: None,
            deadline: None,
            ending: false,
            error: None,
            plan,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RESIDENT, resident};
    use crate::model::{OnFailure, Step};
    use crate::protocol::Payload;
    use crate::testkit::{Kit, flow, looping};
    use crate::time::Span;

    #[test]
    fn only_small_orders_stay_in_memory() {
        let [small, large] = [RESIDENT, RESIDENT + 1].map(|size| Payload::new("x".repeat(size)));
        assert_eq!((resident(&small), resident(&large)), (Some(small), None));
    }

    #[test]
    fn a_loop_that_was_entered_is_not_watched_for_its_start() {
        let mut kit = Kit::new(0);
        let start_within = Some(Span::seconds(5));
        let each = Step { start_within, ..looping("each", None, OnFailure::STOP) };
        kit.declare(vec![flow("one", vec![each])], Vec::new(), None);
        let run = kit.run("one");
        kit.answer_loop(run, 0, 2);
        assert_eq!(kit.core.next_wake(), Some(kit.now + Span::seconds(30)), "only the worker is watched");
    }
}
