//! Leases that are over, remembered just long enough that a late copy of their delivery starts nothing.
//!
//! A copy that arrives after `length` names a deadline that has passed and is refused for that reason, so
//! nothing needs to be remembered longer. The number kept is bounded too: what is pushed out raises a floor,
//! and an unknown lease at or below the floor is refused. That errs on the safe side: refused work runs out
//! and is granted anew.

use crate::ids::{Epoch, TaskId};
use crate::protocol::Lease;
use crate::time::Moment;
use std::collections::{BTreeMap, VecDeque};

/// Enough for every lease a busy worker can end while one answer is under way.
const MOST: usize = 65_536;

#[derive(Debug, Default)]
pub(super) struct Settled {
    newest: BTreeMap<TaskId, Epoch>,
    order: VecDeque<(Moment, Lease)>,
    floor: Option<Epoch>,
}

impl Settled {
    pub(super) fn insert(&mut self, lease: Lease, until: Moment) {
        let newest = self.newest.entry(lease.task).or_insert(lease.epoch);
        *newest = lease.epoch.max(*newest);
        self.order.push_back((until, lease));
        if self.order.len() > MOST
            && let Some(pushed_out) = self.pop()
        {
            self.floor = self.floor.max(Some(pushed_out));
        }
    }

    /// Whether this lease, or a newer one of its task, is known or must be taken to be over.
    pub(super) fn covers(&self, lease: Lease) -> bool {
        self.newest.get(&lease.task).is_some_and(|&newest| lease.epoch <= newest)
            || self.floor.is_some_and(|floor| lease.epoch <= floor)
    }

    pub(super) fn forget(&mut self, now: Moment) {
        while self.order.front().is_some_and(|&(until, _)| until <= now) {
            self.pop();
        }
    }

    fn pop(&mut self) -> Option<Epoch> {
        let (_, lease) = self.order.pop_front()?;
        // A newer lease of the same task may stand further back; its memory stays.
        if self.newest.get(&lease.task) == Some(&lease.epoch) {
            self.newest.remove(&lease.task);
        }
        Some(lease.epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;

    fn lease(task: u64, grant: u64) -> Lease {
        Lease { task: TaskId::node(NodeId(task)), epoch: Epoch { incarnation: 1, grant } }
    }

    #[test]
    fn remembers_until_the_time_has_passed() {
        let mut settled = Settled::default();
        settled.insert(lease(1, 5), Moment(100));
        settled.forget(Moment(99));
        assert!(settled.covers(lease(1, 5)) && settled.covers(lease(1, 4)));
        assert!(!settled.covers(lease(1, 6)) && !settled.covers(lease(2, 1)));
        settled.forget(Moment(100));
        assert!(!settled.covers(lease(1, 5)));
    }

    #[test]
    fn an_older_lease_does_not_take_the_memory_of_a_newer_one_with_it() {
        let mut settled = Settled::default();
        settled.insert(lease(1, 5), Moment(100));
        settled.insert(lease(1, 6), Moment(200));
        settled.forget(Moment(100));
        assert!(settled.covers(lease(1, 5)) && settled.covers(lease(1, 6)));
    }

    #[test]
    fn what_is_pushed_out_stays_refused() {
        let mut settled = Settled::default();
        for n in 0..=MOST as u64 {
            settled.insert(lease(n, n), Moment::MAX);
        }
        assert_eq!(settled.order.len(), MOST);
        assert!(settled.covers(lease(0, 0)), "below the floor");
        assert!(!settled.covers(lease(MOST as u64 + 1, MOST as u64 + 1)));
    }

    #[test]
    fn an_older_lease_that_ends_later_leaves_the_newer_one_covered() {
        let mut settled = Settled::default();
        settled.insert(lease(1, 6), Moment(100));
        settled.insert(lease(1, 5), Moment(200));
        assert!(settled.covers(lease(1, 6)));
    }
}
