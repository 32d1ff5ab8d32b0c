//! Every lease the worker has to do with, in which state it is, and when it is next to be looked at.

use super::{StopReason, Terms};
use crate::ids::{Epoch, TaskId};
use crate::protocol::{Attempt, Lease, Outcome};
use crate::time::{Moment, Span};
use std::collections::{BTreeMap, BTreeSet};

/// What the worker knows of one lease. Only `Running`, `Stopping` and `GivenUp` have something at the runner,
/// and a task has at most one lease in these three.
#[derive(Debug)]
pub(super) enum State {
    /// Granted, but an older attempt of its task has not ended yet.
    Waiting(Attempt),
    Running,
    /// Told to stop; still the worker's until it has ended.
    Stopping(StopReason),
    /// No longer the worker's. Whatever comes of it is dropped; only its end is awaited.
    GivenUp,
    /// Over; the engine has not acknowledged it yet.
    Ended(Outcome),
}

#[derive(Debug)]
pub(super) struct Held {
    pub(super) terms: Terms,
    pub(super) state: State,
    /// The deadline of what may still run, the time to say it again for what has ended.
    pub(super) due: Moment,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    held: BTreeMap<Lease, Held>,
    due: BTreeSet<(Moment, Lease)>,
    /// How many leases want a heartbeat this often.
    beats: BTreeMap<Span, usize>,
}

impl Table {
    pub(super) fn get(&self, lease: Lease) -> Option<&Held> {
        self.held.get(&lease)
    }

    pub(super) fn insert(&mut self, lease: Lease, held: Held) {
        self.remove(lease);
        self.due.insert((held.due, lease));
        *self.beats.entry(held.terms.beat()).or_default() += 1;
        self.held.insert(lease, held);
    }

    pub(super) fn remove(&mut self, lease: Lease) -> Option<Held> {
        let held = self.held.remove(&lease)?;
        self.due.remove(&(held.due, lease));
        if let Some(count) = self.beats.get_mut(&held.terms.beat()) {
            *count -= 1;
            if *count == 0 {
                self.beats.remove(&held.terms.beat());
            }
        }
        Some(held)
    }

    /// Moves a lease to another state; `due` is when to look at it next.
    pub(super) fn change(&mut self, lease: Lease, state: State, due: Moment) {
        if let Some(held) = self.held.get_mut(&lease) {
            self.due.remove(&(held.due, lease));
            self.due.insert((due, lease));
            held.state = state;
            held.due = due;
        }
    }

    pub(super) fn postpone(&mut self, lease: Lease, due: Moment) {
        if let Some(held) = self.held.get_mut(&lease) {
            self.due.remove(&(held.due, lease));
            self.due.insert((due, lease));
            held.due = due;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Lease, &Held)> {
        self.held.iter().map(|(&lease, held)| (lease, held))
    }

    /// The leases of one task, oldest first.
    pub(super) fn of_task(&self, task: TaskId) -> impl DoubleEndedIterator<Item = (Lease, &Held)> {
        const FIRST: Epoch = Epoch { incarnation: 0, grant: 0 };
        const LAST: Epoch = Epoch { incarnation: u32::MAX, grant: u64::MAX };
        self.held
            .range(Lease { task, epoch: FIRST }..=Lease { task, epoch: LAST })
            .map(|(&lease, held)| (lease, held))
    }

    pub(super) fn next_due(&self) -> Option<Moment> {
        self.due.first().map(|&(moment, _)| moment).filter(|&moment| moment < Moment::MAX)
    }

    pub(super) fn due_by(&self, now: Moment) -> Option<Lease> {
        self.due.first().filter(|&&(moment, _)| moment <= now).map(|&(_, lease)| lease)
    }

    pub(super) fn shortest_beat(&self) -> Option<Span> {
        self.beats.first_key_value().map(|(&beat, _)| beat)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}
