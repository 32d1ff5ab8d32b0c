//! Runs inside others: of a `flow` step, or of an item of a loop over flows.

use crate::admission::ClassId;
use crate::catalog::Plan;
use crate::core::Core;
use crate::ids::{Name, NodeId, TaskId};
use crate::model::{MAX_DEPTH, Work as StepWork};
use crate::nodes::{Kind, Node, Run, Step, WorkState};
use crate::protocol::{Body, ItemRunBody, Life, NodeRow, Payload, RunBody, Stop, Write};
use crate::state::State;
use crate::time::Moment;
use std::sync::Arc;

impl Core {
    /// The flow that a step, or every item of its loop, runs.
    pub(crate) fn called_flow(&self, node: NodeId) -> Option<&Name> {
        match &self.step_model(node)?.work {
            StepWork::Flow { flow, .. } => Some(flow),
            _ => None,
        }
    }

    /// What runs inside a `flow` step or its items, or why it cannot; nothing if it is no such step. It depends on the
    /// step alone, so all items of a loop fare alike.
    pub(crate) fn sub_flow_of(&self, node: NodeId) -> Option<Result<(RunBody, Arc<Plan>), String>> {
        let flow = self.called_flow(node)?;
        let outer = self.run(self.step(node)?.run)?;
        let (depth, version) = (outer.depth + 1, outer.version);
        let Some((_, plan)) = self.catalog.flow(flow.as_str(), version) else {
            return Some(Err(format!("there is no flow `{flow}`")));
        };
        if depth > MAX_DEPTH {
            return Some(Err(format!("sub-flows are nested more than {MAX_DEPTH} deep")));
        }
        let (id, flow, key, tags, idempotency) = (None, flow.clone(), None, Vec::new(), None);
        Some(Ok((RunBody { id, flow, version, depth, key, tags, idempotency }, plan)))
    }

    pub(crate) fn start_sub_flow(&mut self, node: NodeId, now: Moment) {
        match self.sub_flow_of(node) {
            Some(Ok((body, plan))) => {
                let child = self.add_run_inside(TaskId::node(node), body, plan, now);
                if let Some(Step { kind: Kind::SubFlow { child: inside }, .. }) = self.step_mut(node) {
                    *inside = Some(child);
                }
                self.enter_run(child, now);
            }
            Some(Err(error)) => self.end_step(node, State::Failed, None, Some(error), now),
            None => {}
        }
    }

    /// An item has its place in the window: the flow begins.
    pub(crate) fn start_item_flow(&mut self, task: TaskId, class: ClassId, now: Moment) {
        let Some(index) = task.index() else { return };
        let (body, plan) = match self.sub_flow_of(task.node) {
            Some(Ok(found)) => found,
            Some(Err(error)) => return self.run_inside_ended(task, State::Failed, None, Some(error), now),
            None => return,
        };
        self.write(Write::ItemEntered { step: task.node, index, at: now });
        let child = self.add_run_inside(task, body, plan, now);
        if let Some(work) = self.work_mut(task) {
            (work.class, work.since) = (class, now);
            work.tally.started = 1;
            work.at = WorkState::Inside(child);
        }
        self.enter_run(child, now);
    }

    /// A run without an id of its own. Its inputs are the payload of the step or item around it.
    fn add_run_inside(&mut self, outer: TaskId, body: RunBody, plan: Arc<Plan>, now: Moment) -> NodeId {
        let rank = self.rank(outer);
        let (root, priority) = (rank.root(), rank.priority());
        let child = self.take_numbers(plan.flow.steps.len());
        let stored = match outer.index() {
            None => Body::Run(body.clone()),
            Some(index) => Body::ItemRun(ItemRunBody { index, run: body.clone() }),
        };
        self.write(Write::NodeAdded(Box::new(NodeRow {
            node: child,
            parent: Some(outer.node),
            root,
            priority,
            accepted: now,
            body: stored,
            payload: None,
            life: Life::new(State::Waiting),
        })));
        let run = Run { parent: Some(outer), root, priority, ..Run::new(body, plan, now) };
        self.nodes.insert(child, Node::Run(Box::new(run)));
        child
    }

    /// Stops a run that is inside of what is stopped. Only the run whose own step failed has failed, and only the loop
    /// whose own items did: what is inside of these is cancelled with them.
    pub(crate) fn stop_inside(&mut self, run: NodeId, why: Stop, now: Moment) {
        let why = match why {
            Stop::FailedFast | Stop::LoopFailed => Stop::Cancelled,
            why => why,
        };
        self.stop_run(run, why, now);
    }

    /// The step or item around a run that has ended ends alike, and gives back what it held.
    pub(crate) fn run_inside_ended(
        &mut self,
        outer: TaskId,
        state: State,
        output: Option<Payload>,
        error: Option<String>,
        now: Moment,
    ) {
        if let Some(work) = self.work(outer) {
            let (class, ran) = (work.class, now.since(work.since));
            if state == State::Succeeded {
                self.note_duration(outer.node, ran);
            }
            self.release(class, None);
        }
        self.end_task(outer, state, output, error, now);
    }
}

#[cfg(test)]
mod tests {
    use crate::ids::{NodeId, TaskId};
    use crate::model::{EXPAND_SLICE, FLOWS_AT_ONCE, Flow, MAX_DEPTH, OnFailure, Step, Work};
    use crate::protocol::{Answer, Command, Evaluation, Outcome, Pausable, Payload, Question, Write};
    use crate::state::State;
    use crate::testkit::{Kit, doing, flow, looping, rendered, step, template};
    use crate::time::Span;

    fn over(called: &str, window: Option<u32>, on_failure: OnFailure) -> Step {
        let called = doing("each", Work::Flow { flow: called.into(), inputs: template() });
        Step { each: looping("each", window, on_failure).each, ..called }
    }

    /// A run that loops over a flow of two steps, the second after the first.
    fn start(kit: &mut Kit, window: Option<u32>, on_failure: OnFailure, count: u32) -> (NodeId, NodeId) {
        let inner = flow("inner", vec![step("a"), Step { after: vec![0], ..step("b") }]);
        let outer = flow("outer", vec![over("inner", window, on_failure)]);
        kit.declare(vec![inner, outer], Vec::new(), None);
        let run = kit.run("outer");
        (run, kit.answer_loop(run, 0, count))
    }

    fn inside(kit: &Kit, each: NodeId, index: u32) -> NodeId {
        kit.core.inside(TaskId::item(each, index)).expect("a run is inside the item")
    }

    /// The steps of the run inside an item end well, one after the other.
    fn finish(kit: &mut Kit, each: NodeId, index: u32) {
        let child = inside(kit, each, index);
        for step in 0..2 {
            kit.answer_step(child, step, Evaluation::Order(rendered(None)));
            kit.succeed(TaskId::node(child.step(step as usize)));
        }
    }

    /// The first step of the run inside an item fails, and with it the run and the item.
    fn fail(kit: &mut Kit, each: NodeId, index: u32) {
        let first = inside(kit, each, index).step(0);
        kit.answer_step(inside(kit, each, index), 0, Evaluation::Order(rendered(None)));
        let lease = kit.lease(TaskId::node(first));
        kit.finish(lease, Outcome::failed("boom"));
    }

    fn states(kit: &Kit, each: NodeId, count: u32) -> Vec<Option<State>> {
        (0..count).map(|index| kit.state(TaskId::item(each, index))).collect()
    }

    fn ended_items(kit: &Kit) -> Vec<(u32, State)> {
        let end = |write: &Write| match write {
            Write::Ended { task, state, .. } => task.index().map(|index| (index, *state)),
            _ => None,
        };
        kit.writes.iter().filter_map(end).collect()
    }

    #[test]
    fn an_item_asks_for_the_window_and_for_no_worker() {
        let mut kit = Kit::new(0);
        let (_, each) = start(&mut kit, Some(2), OnFailure::STOP, 3);
        let (running, waiting) = (Some(State::Running), Some(State::Waiting));
        assert_eq!(states(&kit, each, 3), [running, running, waiting]);
        let explained = kit.core.explain(TaskId::item(each, 2), kit.now).expect("it waits");
        let holders: Vec<&str> = explained.blockers[0].holders.iter().map(|holder| &*holder.name).collect();
        assert!(holders[0].ends_with("/each#0") && holders[1].ends_with("/each#1"), "{holders:?}");
        assert_eq!(explained.blockers.len(), 1, "{explained}");
    }

    #[test]
    fn a_loop_costs_as_much_memory_as_its_window() {
        let mut kit = Kit::new(9);
        let (_, each) = start(&mut kit, None, OnFailure::STOP, EXPAND_SLICE);
        let around = 2 + FLOWS_AT_ONCE as usize;
        assert_eq!(kit.core.nodes.len(), around, "nothing else bounds them");
        for index in 0..5 {
            finish(&mut kit, each, index);
        }
        assert_eq!(kit.core.nodes.len(), around);
        let record = kit.core.loop_of(each).expect("it is open");
        assert_eq!((record.items.len(), record.segments.len()), (FLOWS_AT_ONCE as usize, 1));
        assert!(record.orders.is_empty(), "no worker is given them");
    }

    #[test]
    fn the_loop_ends_when_the_last_run_inside_has() {
        let mut kit = Kit::new(9);
        let (run, each) = start(&mut kit, Some(1), OnFailure::STOP, 2);
        finish(&mut kit, each, 0);
        assert_eq!((ended_items(&kit), kit.ended(each)), (vec![(0, State::Succeeded)], None));
        finish(&mut kit, each, 1);
        assert_eq!(kit.ended(each), Some((State::Succeeded, None)));
        assert_eq!(kit.ended(run), Some((State::Succeeded, None)));
        assert!(kit.core.is_idle());
    }

    #[test]
    fn a_failed_run_stops_the_loop_and_cancels_the_runs_beside_it() {
        let mut kit = Kit::new(9);
        let (run, each) = start(&mut kit, Some(2), OnFailure::STOP, 4);
        let beside = inside(&kit, each, 1);
        kit.answer_step(beside, 0, Evaluation::Order(rendered(None)));
        fail(&mut kit, each, 0);
        let why = |task| move |write: &Write| matches!(write, Write::Ended { task: of, error: Some(error), .. } if *of == task && error == "step `a`: boom");
        assert!(kit.writes.iter().any(why(TaskId::item(each, 0))), "{:?}", kit.writes);
        assert_eq!(kit.ended(each), None, "one is told to stop");
        let lease = kit.lease(TaskId::node(beside.step(0)));
        kit.finish(lease, Outcome::Stopped);
        assert_eq!(kit.ended(beside), Some((State::Cancelled, None)));
        assert_eq!(ended_items(&kit), [(1, State::Cancelled)]);
        assert_eq!(kit.ended(each), Some((State::Failed, Some("1 of 4 items failed".to_owned()))));
        assert_eq!(kit.ended(run).map(|(state, _)| state), Some(State::Failed));
        assert!(kit.core.is_idle());
    }

    #[test]
    fn a_loop_inside_a_stopped_item_was_cancelled_and_has_not_failed() {
        let mut kit = Kit::new(9);
        let inner = flow("inner", vec![looping("deep", None, OnFailure::STOP)]);
        let outer = flow("outer", vec![over("inner", None, OnFailure::STOP)]);
        kit.declare(vec![inner, outer], Vec::new(), None);
        let run = kit.run("outer");
        let each = kit.answer_loop(run, 0, 2);
        let [first, second] = [0, 1].map(|index| inside(&kit, each, index));
        let deep = kit.answer_loop(first, 0, 1);
        let other = kit.answer_loop(second, 0, 1);
        let lease = kit.lease(TaskId::item(deep, 0));
        kit.finish(lease, Outcome::failed("boom"));
        let lease = kit.lease(TaskId::item(other, 0));
        kit.finish(lease, Outcome::Stopped);
        assert_eq!(kit.ended(other), Some((State::Cancelled, None)));
    }

    #[test]
    fn so_many_failures_are_tolerated_and_all_are_continued_after() {
        for (on_failure, end) in [
            (OnFailure::Tolerate(1), (State::Failed, Some("2 of 3 items failed".to_owned()))),
            (OnFailure::Continue, (State::Succeeded, None)),
        ] {
            let mut kit = Kit::new(9);
            let (_, each) = start(&mut kit, Some(1), on_failure, 3);
            fail(&mut kit, each, 0);
            assert_eq!(kit.ended(each), None);
            finish(&mut kit, each, 1);
            fail(&mut kit, each, 2);
            assert_eq!(kit.ended(each), Some(end));
        }
    }

    #[test]
    fn one_item_is_cancelled_with_what_is_inside_and_the_next_takes_its_place() {
        let mut kit = Kit::new(9);
        let (_, each) = start(&mut kit, Some(1), OnFailure::Continue, 3);
        let first = inside(&kit, each, 0);
        kit.answer_step(first, 0, Evaluation::Order(rendered(None)));
        assert_eq!(kit.apply(Command::Cancel(TaskId::item(each, 0))), Answer::Done);
        assert_eq!(states(&kit, each, 2), [Some(State::Running), Some(State::Waiting)]);
        let lease = kit.lease(TaskId::node(first.step(0)));
        kit.finish(lease, Outcome::Stopped);
        assert_eq!(ended_items(&kit), [(0, State::Cancelled)]);
        kit.apply(Command::Cancel(TaskId::item(each, 2)));
        assert_eq!(ended_items(&kit), [(2, State::Cancelled)], "it has never started");
        finish(&mut kit, each, 1);
        assert_eq!(kit.ended(each), Some((State::Succeeded, None)));
    }

    #[test]
    fn a_run_is_cancelled_while_outputs_are_rendered_inside_an_item() {
        let mut kit = Kit::new(9);
        let inner = Flow { outputs: Some(template()), ..flow("inner", vec![step("a")]) };
        kit.declare(vec![inner, flow("outer", vec![over("inner", None, OnFailure::STOP)])], Vec::new(), None);
        let run = kit.run("outer");
        let each = kit.answer_loop(run, 0, 2);
        let child = inside(&kit, each, 0);
        kit.answer_step(child, 0, Evaluation::Skipped);
        kit.apply(Command::Cancel(TaskId::node(run)));
        assert_eq!(kit.ended(run).map(|(state, _)| state), Some(State::Cancelled));
        let outputs = Evaluation::Outputs(Payload::null());
        kit.refused(Command::Evaluated { question: Question::Outputs { run: child }, evaluation: outputs });
        assert!(kit.core.is_idle() && kit.core.timers.next().is_none());
    }

    #[test]
    fn while_it_is_paused_no_item_and_nothing_inside_one_starts() {
        let mut kit = Kit::new(9);
        let (run, each) = start(&mut kit, Some(1), OnFailure::Continue, 2);
        let first = inside(&kit, each, 0);
        kit.apply(Command::Pause(Pausable::Node(run)));
        kit.answer_step(first, 0, Evaluation::Order(rendered(None)));
        assert_eq!(kit.state(TaskId::node(first.step(0))), Some(State::Waiting));
        kit.apply(Command::Cancel(TaskId::item(each, 0)));
        assert_eq!(kit.state(TaskId::item(each, 1)), Some(State::Waiting), "the window is free");
        kit.apply(Command::Resume(Pausable::Node(run)));
        finish(&mut kit, each, 1);
        assert_eq!(kit.ended(run), Some((State::Succeeded, None)));
    }

    #[test]
    fn a_priority_is_that_of_all_that_is_inside() {
        let mut kit = Kit::new(0);
        let (run, each) = start(&mut kit, Some(2), OnFailure::Continue, 3);
        kit.apply(Command::SetPriority { node: run, priority: 7 });
        let [first, second] = [0, 1].map(|index| inside(&kit, each, index));
        let ranked = |node| Write::Ranked { node, priority: 7, root: run.0 };
        assert_eq!(kit.writes, [run, first, second].map(ranked));
    }

    #[test]
    fn the_time_of_a_flow_counts_from_its_start_inside_the_item() {
        let mut kit = Kit::new(0);
        let inner = Flow { timeout: Some(Span::seconds(10)), ..flow("inner", vec![step("a")]) };
        let outer = flow("outer", vec![over("inner", Some(1), OnFailure::Continue)]);
        kit.declare(vec![inner, outer], Vec::new(), None);
        let run = kit.run("outer");
        let each = kit.answer_loop(run, 0, 2);
        for index in 0..2 {
            kit.advance(Span::seconds(10));
            assert_eq!(ended_items(&kit), [(index, State::TimedOut)]);
        }
        assert_eq!(kit.ended(each), Some((State::Succeeded, None)));
    }

    #[test]
    fn an_empty_list_is_done_however_deep_and_a_longer_one_fails_the_step_at_once() {
        for (count, ends_well) in [(0, true), (2, false)] {
            let mut kit = Kit::new(0);
            let again = flow("again", vec![over("again", Some(1), OnFailure::Continue)]);
            kit.declare(vec![again], Vec::new(), None);
            let mut run = kit.run("again");
            for _ in 0..MAX_DEPTH {
                let each = kit.answer_loop(run, 0, 1);
                run = inside(&kit, each, 0);
            }
            kit.answer_step(run, 0, Evaluation::List { items: Payload::new("[]"), count });
            let error = format!("sub-flows are nested more than {MAX_DEPTH} deep");
            let (state, error) =
                if ends_well { (State::Succeeded, None) } else { (State::Failed, Some(error)) };
            assert_eq!(kit.ended(run.step(0)), Some((state, error)));
            assert!(kit.core.is_idle());
        }
    }

    #[test]
    fn a_flow_that_does_not_exist_fails_the_step_with_the_words_of_a_plain_one() {
        let mut kit = Kit::new(0);
        kit.declare(vec![flow("outer", vec![over("nobody", None, OnFailure::Continue)])], Vec::new(), None);
        let run = kit.run("outer");
        kit.answer_step(run, 0, Evaluation::List { items: Payload::new("[]"), count: 2 });
        let error = Some("there is no flow `nobody`".to_owned());
        assert_eq!(kit.ended(run.step(0)), Some((State::Failed, error)));
    }
}
