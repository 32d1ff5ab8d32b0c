//! Timers are state: what becomes due, and when. Rebuilt at load from the rows they belong to.

use crate::ids::{NodeId, TaskId};
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
pub struct Timers(BTreeSet<Timer>);

/// By time. The task is taken apart, because a million of these are set at once: together with the alarm its
/// parts need no room for padding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Timer {
    at: Moment,
    node: NodeId,
    /// One more than the item's index, so that a node sorts before its items.
    item: u32,
    alarm: Alarm,
}

impl Timer {
    fn new(at: Moment, task: TaskId, alarm: Alarm) -> Self {
        Timer { at, node: task.node, item: task.index().map_or(0, |index| index + 1), alarm }
    }

    fn task(self) -> TaskId {
        match self.item {
            0 => TaskId::node(self.node),
            item => TaskId::item(self.node, item - 1),
        }
    }
}

impl Timers {
    pub fn set(&mut self, at: Moment, task: TaskId, alarm: Alarm) {
        self.0.insert(Timer::new(at, task, alarm));
    }

    pub fn clear(&mut self, at: Moment, task: TaskId, alarm: Alarm) {
        self.0.remove(&Timer::new(at, task, alarm));
    }

    pub fn next(&self) -> Option<Moment> {
        self.0.first().map(|timer| timer.at)
    }

    /// Takes out the earliest alarm that is due.
    pub fn pop_due(&mut self, now: Moment) -> Option<(TaskId, Alarm)> {
        self.0.first().filter(|timer| timer.at <= now)?;
        self.0.pop_first().map(|timer| (timer.task(), timer.alarm))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        timers.set(Moment(5), TaskId::item(NodeId(1), 7), Alarm::Due);
        assert_eq!(timers.pop_due(Moment(5)), Some((TaskId::item(NodeId(1), 7), Alarm::Due)));
        assert_eq!(std::mem::size_of::<Timer>(), 24);
    }
}
