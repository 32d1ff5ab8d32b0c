//! Attempts that begin and end in one entry: their grants need not be written, the end says it all.

use rustc_hash::FxHashMap;
use tidegate_core::ids::{Epoch, TaskId};
use tidegate_core::protocol::Write;
use tidegate_core::time::Moment;

/// The last grant of each task that the same entry ends, unless something happened in between.
#[derive(Default)]
pub struct Attempts(FxHashMap<TaskId, Attempt>);

pub struct Attempt {
    epoch: Epoch,
    pub number: u32,
    pub granted: Moment,
    has_ended: bool,
}

impl Attempts {
    pub fn of(writes: &[Write]) -> Attempts {
        let mut attempts = FxHashMap::default();
        for write in writes {
            match write {
                Write::Granted { task, grant, number } => {
                    let attempt =
                        Attempt { epoch: grant.epoch, number: *number, granted: grant.at, has_ended: false };
                    attempts.insert(*task, attempt);
                }
                Write::Moved { task, .. } | Write::Stopping { task, .. } => drop(attempts.remove(task)),
                Write::Ended { task, .. } => {
                    attempts.entry(*task).and_modify(|attempt: &mut Attempt| attempt.has_ended = true);
                }
                _ => {}
            }
        }
        attempts.retain(|_, attempt| attempt.has_ended);
        Attempts(attempts)
    }

    /// The attempt that ends the task.
    pub fn get(&self, task: TaskId) -> Option<&Attempt> {
        self.0.get(&task)
    }

    /// Whether the end says what this write does.
    pub fn say(&self, write: &Write) -> bool {
        match write {
            Write::Granted { task, grant, .. } => {
                self.0.get(task).is_some_and(|attempt| attempt.epoch == grant.epoch)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::ids::NodeId;
    use tidegate_core::protocol::{GrantRow, Stop, Tally};
    use tidegate_core::state::State;
    use tidegate_core::time::Span;

    fn granted(node: u64, number: u32) -> Write {
        let epoch = Epoch { incarnation: 1, grant: u64::from(number) };
        let (at, until, length) = (Moment(10), Moment(20), Span::micros(10));
        let grant = GrantRow { epoch, worker: "w".into(), at, until, length };
        Write::Granted { task: TaskId::node(NodeId(node)), grant, number }
    }

    fn ended(node: u64) -> Write {
        let (task, state) = (TaskId::node(NodeId(node)), State::Succeeded);
        Write::Ended { task, state, output: None, error: None, at: Moment(15) }
    }

    #[test]
    fn an_end_says_what_its_own_grant_does() {
        let (task, state) = (TaskId::node(NodeId(1)), State::Waiting);
        let moved = Write::Moved {
            task,
            state,
            due: None,
            tally: Tally { started: 1, failures: 1, losses: 0 },
            error: None,
            at: Moment(12),
        };
        let writes = [granted(1, 1), moved, granted(1, 2), ended(1), granted(2, 1)];
        let attempts = Attempts::of(&writes);
        let said: Vec<bool> = writes.iter().map(|write| attempts.say(write)).collect();
        assert_eq!(said, [false, false, true, false, false]);
        assert_eq!(attempts.get(task).map(|attempt| attempt.number), Some(2));
        assert!(attempts.get(TaskId::node(NodeId(2))).is_none(), "it goes on");
    }

    #[test]
    fn what_was_told_to_stop_is_written_as_it_happened() {
        let task = TaskId::node(NodeId(1));
        let stopping = Write::Stopping { task, why: Stop::Cancelled, error: None, at: Moment(12) };
        let writes = [granted(1, 1), stopping, ended(1)];
        let attempts = Attempts::of(&writes);
        assert!(attempts.get(task).is_none() && !attempts.say(&writes[0]));
    }
}
