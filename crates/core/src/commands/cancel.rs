//! A task is cancelled: what waits ends at once, what runs is told to stop.

use crate::core::Core;
use crate::ids::TaskId;
use crate::nodes::Node;
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
                    return Err(unknown);
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
        let rank = self.rank(task);
        let Some(record) = self.loop_mut(task.node) else { return false };
        let Some((_, segment)) = record.segments.range_mut(..=index).next_back() else { return false };
        let Some(at) = segment
            .parked
            .iter()
            .position(|&(first, count)| first.places_to(rank).is_some_and(|offset| offset < count))
        else {
            return false;
        };
        let (first, count) = segment.parked.remove(at);
        let offset = first.places_to(rank).unwrap_or(0);
        let rest = [(first, offset), (rank.behind(1), count - offset - 1)];
        segment.parked.extend(rest.into_iter().filter(|&(_, count)| count > 0));
        segment.parked.sort_unstable();
        true
    }
}
