//! A task is cancelled: what waits ends at once, what runs is told to stop.

use crate::core::Core;
use crate::ids::TaskId;
use crate::nodes::{Loop, Node};
use crate::protocol::{Answer, Refusal, Stop};
use crate::state::State;
use crate::time::Moment;

impl Core {
    pub(crate) fn cancel(&mut self, task: TaskId, now: Moment) -> Result<Answer, Refusal> {
        let unknown = Refusal::UnknownTask(task);
        match (self.nodes.get(&task.node), task.index()) {
            (Some(Node::Job(_)), None) => self.stop_work(task, Stop::Cancelled, now),
            (Some(Node::Run(_)), None) => self.stop_run(task.node, Stop::Cancelled, now),
            (Some(Node::Step(_)), None) => self.stop_step(task.node, Stop::Cancelled, now),
            (Some(Node::Step(_)), Some(index)) => {
                if self.work(task).is_some() {
                    self.stop_work(task, Stop::Cancelled, now);
                } else if !self.cancel_unstarted_item(task, index, now) {
                    let is_later = |items: &Loop| (items.expanded..items.count).contains(&index);
                    let later = self.loop_of(task.node).is_some_and(is_later);
                    return Err(if later { Refusal::NotInLine { index } } else { unknown });
                }
            }
            _ => return Err(unknown),
        }
        Ok(Answer::Done)
    }

    /// One item out of a stretch that never started. It gets a record only to end.
    fn cancel_unstarted_item(&mut self, task: TaskId, index: u32, now: Moment) -> bool {
        let rank = self.rank(task);
        let Some(segment) = self.loop_of(task.node).and_then(|items| items.segment_of(index)) else {
            return false;
        };
        let class = segment.class;
        let is_parked = !segment.parked.is_empty();
        let waits =
            if is_parked { self.unpark_item(task, index) } else { self.admission.withdraw(class, rank, now) };
        if waits {
            self.left(class);
            self.open_item(task.node, index, class, now);
            self.end_item(task.node, index, State::Cancelled, None, None, now);
        }
        waits
    }

    /// Takes an item of a paused run out of the ranges that wait outside.
    fn unpark_item(&mut self, task: TaskId, index: u32) -> bool {
        let Some(record) = self.loop_mut(task.node) else { return false };
        let Some((_, segment)) = record.segments.range_mut(..=index).next_back() else { return false };
        let holds = |&(from, count): &(u32, u32)| (from..from + count).contains(&index);
        let Some(at) = segment.parked.iter().position(holds) else { return false };
        let (from, count) = segment.parked.remove(at);
        let rest = [(from, index - from), (index + 1, from + count - index - 1)];
        segment.parked.extend(rest.into_iter().filter(|&(_, count)| count > 0));
        segment.parked.sort_unstable();
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::core::SLICE;
    use crate::ids::{NodeId, TaskId};
    use crate::model::{Flow, OnFailure, Step, Work};
    use crate::protocol::{
        Answer, Command, Effect, Evaluation, Outcome, Pausable, Payload, Question, Refusal,
    };
    use crate::state::State;
    use crate::testkit::{Kit, doing, flow, looping, rendered, step, template};
    use crate::time::Span;

    #[test]
    fn what_is_not_open_cannot_be_cancelled() {
        let mut kit = Kit::new(1);
        kit.declare(vec![flow("one", vec![step("a")])], Vec::new(), None);
        let job = kit.job("work");
        let run = kit.run("one");
        kit.answer_step(run, 0, Evaluation::Order(rendered(None)));
        let nobody = [
            TaskId::node(NodeId(99)),
            TaskId::item(NodeId(99), 0),
            TaskId::item(job, 0),
            TaskId::item(run, 0),
            TaskId::item(run.step(0), 0),
        ];
        for task in nobody {
            assert_eq!(kit.refused(Command::Cancel(task)), Refusal::UnknownTask(task));
        }
    }

    #[test]
    fn items_of_a_paused_loop_are_taken_out_of_the_middle() {
        let mut kit = Kit::new(0);
        kit.declare(vec![flow("big", vec![looping("all", None, OnFailure::STOP)])], Vec::new(), None);
        let run = kit.run("big");
        let each = kit.answer_loop(run, 0, 5);
        kit.apply(Command::Pause(Pausable::Node(run)));
        for index in [2, 0, 4, 3] {
            let item = TaskId::item(each, index);
            assert_eq!(kit.apply(Command::Cancel(item)), Answer::Done);
            assert_eq!(
                kit.refused(Command::Cancel(item)),
                Refusal::UnknownTask(item),
                "item {index} is gone"
            );
        }
        kit.apply(Command::Resume(Pausable::Node(run)));
        assert_eq!(kit.state(TaskId::item(each, 1)), Some(State::Waiting));
        kit.join("v", 1, 9);
        kit.succeed(TaskId::item(each, 1));
        assert_eq!(kit.ended(each), Some((State::Succeeded, None)));
    }

    /// Every item is a stretch of its own, and nobody is there who could run them.
    fn scattered(kit: &mut Kit, count: u32) -> (NodeId, NodeId) {
        kit.declare(vec![flow("big", vec![looping("all", None, OnFailure::STOP)])], Vec::new(), None);
        let run = kit.run("big");
        kit.answer_step(run, 0, Evaluation::List { items: Payload::new("[]"), count });
        let question = Question::Items { step: run.step(0), from: 0, to: count };
        let items = (0..count).map(|index| Ok(rendered(Some(["odd", "even"][index as usize % 2])))).collect();
        kit.apply(Command::Evaluated { question, evaluation: Evaluation::Items(items) });
        (run, run.step(0))
    }

    #[test]
    fn what_is_cancelled_in_slices_does_not_start_in_between() {
        let mut kit = Kit::new(0);
        let (run, each) = scattered(&mut kit, 3 * SLICE);
        kit.apply(Command::Cancel(TaskId::node(run)));
        assert_eq!(kit.core.next_wake(), Some(kit.now), "there is more to do");
        assert_eq!(kit.state(TaskId::item(each, 3 * SLICE - 1)), Some(State::Waiting));
        kit.join("v", 1, 10_000);
        kit.advance(Span::ZERO);
        kit.advance(Span::ZERO);
        assert!(!kit.effects.iter().any(|effect| matches!(effect, Effect::Deliver { .. })));
        assert!(kit.core.is_idle());
    }

    #[test]
    fn what_runs_is_told_before_the_rest_is_ended() {
        let mut kit = Kit::new(9);
        let (run, each) = scattered(&mut kit, 3 * SLICE);
        kit.apply(Command::Cancel(TaskId::node(run)));
        let told = |kit: &Kit| kit.effects.iter().filter(|e| matches!(e, Effect::Stop { .. })).count();
        assert_eq!(told(&kit), 9, "what runs is told at once");
        for index in 0..9 {
            let lease = kit.lease(TaskId::item(each, index));
            kit.finish(lease, Outcome::Stopped);
        }
        assert!(kit.core.is_idle(), "every command goes on with it");
    }

    #[test]
    fn what_runs_inside_does_not_start_while_the_run_around_it_is_cancelled_in_slices() {
        let mut kit = Kit::new(0);
        let blocked = (0..3 * SLICE).map(|_| Step { after: vec![0], ..step("blocked") });
        let inside = doing("inside", Work::Flow { flow: "inner".into(), inputs: template() });
        let steps = [step("first")].into_iter().chain(blocked).chain([inside]).collect();
        kit.declare(vec![flow("inner", vec![step("a")]), flow("outer", steps)], Vec::new(), None);
        let run = kit.run("outer");
        kit.answer_step(run, 3 * SLICE + 1, Evaluation::SubFlow { inputs: Payload::new("{}") });
        let inner = NodeId(run.0 + u64::from(3 * SLICE) + 3);
        kit.answer_step(inner, 0, Evaluation::Order(rendered(None)));
        assert_eq!(kit.state(TaskId::node(inner.step(0))), Some(State::Waiting));
        kit.apply(Command::Cancel(TaskId::node(run)));
        kit.join("v", 1, 9);
        assert_eq!(kit.core.next_wake(), Some(kit.now), "there is more to do");
        while kit.core.next_wake() == Some(kit.now) {
            kit.advance(Span::ZERO);
        }
        assert!(!kit.effects.iter().any(|effect| matches!(effect, Effect::Deliver { .. })));
        assert!(kit.core.is_idle());
    }

    #[test]
    fn what_a_time_out_of_its_run_turns_away_was_cancelled() {
        let mut kit = Kit::new(0);
        let blocked = (0..3 * SLICE).map(|_| Step { after: vec![0], ..step("blocked") });
        let steps = [step("first")].into_iter().chain(blocked).chain([step("last")]).collect();
        let timeout = Some(Span::seconds(5));
        kit.declare(vec![Flow { timeout, ..flow("one", steps) }], Vec::new(), None);
        let run = kit.run("one");
        kit.answer_step(run, 3 * SLICE + 1, Evaluation::Order(rendered(None)));
        kit.advance(Span::seconds(5));
        kit.join("v", 1, 9);
        let last = run.step(3 * SLICE as usize + 1);
        assert_eq!(kit.ended(last), Some((State::Cancelled, None)), "only the run itself timed out");
    }
}
