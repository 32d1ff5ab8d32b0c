//! Timers are state: what becomes due, and when. Rebuilt at load from the rows they belong to.

use crate::ids::TaskId;
use crate::time::Moment;
use std::collections::BTreeSet;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Alarm {
    /// A scheduled task comes due.
    Due,
    /// A task should have started by now.
    StartBy,
    /// An attempt has run long enough.
    Timeout,
    /// A run has run long enough.
    Deadline,
}

#[derive(Debug, Default)]
pub struct Timers(BTreeSet<(Moment, TaskId, Alarm)>);

impl Timers {
    pub fn set(&mut self, at: Moment, task: TaskId, alarm: Alarm) {
        self.0.insert((at, task, alarm));
    }

    pub fn clear(&mut self, at: Moment, task: TaskId, alarm: Alarm) {
        self.0.remove(&(at, task, alarm));
    }

    pub fn next(&self) -> Option<Moment> {
        self.0.first().map(|&(at, _, _)| at)
    }

    /// Takes out the earliest alarm that is due.
    pub fn pop_due(&mut self, now: Moment) -> Option<(TaskId, Alarm)> {
        let &(at, task, alarm) = self.0.first().filter(|(at, _, _)| *at <= now)?;
        self.clear(at, task, alarm);
        Some((task, alarm))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;

    #[test]
    fn alarms_come_in_order_and_can_be_cleared() {
        let mut timers = Timers::default();
        let task = |n| TaskId::node(NodeId(n));
        timers.set(Moment(20), task(1), Alarm::Due);
        timers.set(Moment(10), task(2), Alarm::Timeout);
        timers.set(Moment(10), task(3), Alarm::Due);
        timers.clear(Moment(10), task(3), Alarm::Due);
        assert_eq!(timers.next(), Some(Moment(10)));
        assert_eq!(timers.pop_due(Moment(9)), None);
        assert_eq!(timers.pop_due(Moment(10)), Some((task(2), Alarm::Timeout)));
        assert_eq!(timers.pop_due(Moment(10)), None);
        assert_eq!(timers.pop_due(Moment(99)), Some((task(1), Alarm::Due)));
        assert_eq!(timers.next(), None);
    }
}
