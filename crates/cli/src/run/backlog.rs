//! What the attempts of a run wrote and has not been shown yet.
//!
//! Every attempt has room of its own, so that one that writes a lot takes nothing from the others. What does not fit
//! is counted, and the count is shown in its place.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidegate_core::ids::{RunId, TaskId};
use tidegate_core::protocol::Lease;
use tidegate_worker::LogLine;
use tokio::sync::Notify;

/// Lines of one attempt that may wait to be shown. With one more the older half gives way: what a program says last
/// matters most.
pub const ROOM: usize = 1_000;

#[derive(Default)]
pub struct Backlog {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Default)]
struct Waiting {
    /// The run that is shown; until that is known, any may be.
    run: Option<RunId>,
    attempts: BTreeMap<Lease, Written>,
}

struct Written {
    run: RunId,
    lines: VecDeque<LogLine>,
    /// Lines before these that gave way.
    missed: usize,
}

/// What is to be shown of an attempt next.
pub struct Taken {
    pub task: TaskId,
    /// So many lines before these cannot be shown.
    pub missed: usize,
    pub lines: Vec<LogLine>,
}

impl Backlog {
    pub fn push(&self, line: LogLine) {
        let mut waiting = self.waiting();
        if waiting.run.is_some_and(|run| run != line.run) {
            return;
        }
        let new = || Written { run: line.run, lines: VecDeque::new(), missed: 0 };
        let written = waiting.attempts.entry(line.lease).or_insert_with(new);
        if written.lines.len() == ROOM {
            written.lines.drain(..ROOM / 2);
            written.missed += ROOM / 2;
        }
        written.lines.push_back(line);
        drop(waiting);
        self.arrived.notify_one();
    }

    /// From now on only lines of this run are kept.
    pub fn keep_only(&self, run: RunId) {
        let mut waiting = self.waiting();
        waiting.run = Some(run);
        waiting.attempts.retain(|_, written| written.run == run);
    }

    /// Something may have arrived since this was last asked.
    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Up to `most` lines of each attempt of the tasks that `may_show` names.
    pub fn take(&self, most: usize, may_show: impl Fn(TaskId) -> bool) -> Vec<Taken> {
        let mut taken = Vec::new();
        self.waiting().attempts.retain(|lease, written| {
            if !may_show(lease.task) {
                return true;
            }
            let lines: Vec<LogLine> = written.lines.drain(..most.min(written.lines.len())).collect();
            taken.push(Taken { task: lease.task, missed: std::mem::take(&mut written.missed), lines });
            if !written.lines.is_empty() {
                self.arrived.notify_one();
            }
            !written.lines.is_empty()
        });
        taken
    }

    /// A line is whole or not there, whatever happened to a thread that held this.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::ids::{Epoch, NodeId};
    use tidegate_core::time::Moment;
    use tidegate_worker::Stream;

    const RUN: RunId = RunId(1);

    fn line(run: RunId, node: u64, number: usize) -> LogLine {
        let lease = Lease { task: TaskId::node(NodeId(node)), epoch: Epoch { incarnation: 1, grant: node } };
        let (at, stream, text) = (Moment(0), Stream::Stdout, number.to_string());
        LogLine { run, lease, at, stream, text, newline: true }
    }

    /// The missed lines and the numbers of those that are there, in order.
    fn shown(taken: &[Taken], node: u64) -> (usize, Vec<usize>) {
        let of_node = taken.iter().filter(|taken| taken.task == TaskId::node(NodeId(node)));
        of_node.fold((0, Vec::new()), |(missed, mut numbers), taken| {
            numbers.extend(taken.lines.iter().map(|line| line.text.parse::<usize>().unwrap()));
            (missed + taken.missed, numbers)
        })
    }

    #[test]
    fn a_noisy_step_takes_no_room_from_a_quiet_one_and_every_line_is_counted() {
        let backlog = Backlog::default();
        backlog.push(line(RUN, 2, 0));
        (0..300_000).for_each(|number| backlog.push(line(RUN, 1, number)));
        backlog.push(line(RUN, 2, 1));
        let taken = backlog.take(usize::MAX, |_| true);
        assert_eq!(shown(&taken, 2), (0, vec![0, 1]));
        let (missed, numbers) = shown(&taken, 1);
        assert_eq!(missed + numbers.len(), 300_000);
        assert_eq!(numbers, (missed..300_000).collect::<Vec<_>>(), "the last ones");
        assert!((ROOM / 2..=ROOM).contains(&numbers.len()), "{}", numbers.len());
    }

    #[test]
    fn what_may_not_be_shown_yet_waits_and_the_rest_comes_in_slices() {
        let backlog = Backlog::default();
        (0..10).for_each(|number| backlog.push(line(RUN, 1, number)));
        backlog.push(line(RUN, 2, 0));
        let first = |task| task == TaskId::node(NodeId(1));
        assert_eq!(shown(&backlog.take(4, first), 1), (0, vec![0, 1, 2, 3]));
        assert_eq!(shown(&backlog.take(100, first), 1), (0, vec![4, 5, 6, 7, 8, 9]));
        assert!(backlog.take(100, first).is_empty());
        assert_eq!(shown(&backlog.take(100, |_| true), 2), (0, vec![0]));
    }

    #[test]
    fn lines_of_other_runs_are_not_kept() {
        let backlog = Backlog::default();
        backlog.push(line(RunId(2), 7, 0));
        backlog.push(line(RUN, 1, 0));
        backlog.keep_only(RUN);
        backlog.push(line(RunId(2), 7, 1));
        let taken = backlog.take(100, |_| true);
        assert_eq!((taken.len(), shown(&taken, 1)), (1, (0, vec![0])));
    }
}
