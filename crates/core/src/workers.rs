//! The connected workers and what they were handed.

use crate::ids::{Epoch, Name, TaskId};
use crate::time::Moment;
use std::collections::{BTreeMap, BTreeSet};

/// The incarnation of a worker that was gone before the core was loaded.
pub(crate) const UNKNOWN: u64 = 0;

#[derive(Debug)]
pub(crate) struct Worker {
    pub incarnation: u64,
    pub attempts: BTreeMap<TaskId, Epoch>,
    /// When it was last heard of, or when the core that knows it from the store was loaded.
    pub seen: Moment,
    /// It was heard of by this core.
    pub heard: bool,
    /// It gets nothing new: it has been silent for too long, or has left and attempts of it are still to end.
    pub connected: bool,
    /// When its leases are looked at next: the key of its entry in `checks`.
    check: Moment,
}

#[derive(Debug, Default)]
pub(crate) struct Workers {
    workers: BTreeMap<Name, Worker>,
    checks: BTreeSet<(Moment, Name)>,
}

impl Workers {
    pub fn get(&self, name: &Name) -> Option<&Worker> {
        self.workers.get(name)
    }

    pub fn get_mut(&mut self, name: &Name) -> Option<&mut Worker> {
        self.workers.get_mut(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Worker)> {
        self.workers.iter()
    }

    pub fn insert(&mut self, name: &Name, incarnation: u64, seen: Moment, check: Moment) {
        let (attempts, heard) = (BTreeMap::new(), false);
        let worker = Worker { incarnation, attempts, seen, heard, connected: true, check };
        self.remove(name);
        self.checks.insert((check, name.clone()));
        self.workers.insert(name.clone(), worker);
    }

    pub fn heard_of(&mut self, name: &Name, now: Moment) {
        if let Some(worker) = self.workers.get_mut(name) {
            (worker.seen, worker.heard) = (now, true);
        }
    }

    pub fn remove(&mut self, name: &Name) -> Option<Worker> {
        let worker = self.workers.remove(name)?;
        self.checks.remove(&(worker.check, name.clone()));
        Some(worker)
    }

    pub fn check_at(&mut self, name: &Name, at: Moment) {
        if let Some(worker) = self.workers.get_mut(name)
            && worker.check != at
        {
            self.checks.remove(&(worker.check, name.clone()));
            worker.check = at;
            self.checks.insert((at, name.clone()));
        }
    }

    /// Sees to it that a lease that ends at `at` is not overlooked.
    pub fn check_by(&mut self, name: &Name, at: Moment) {
        if self.workers.get(name).is_some_and(|worker| at < worker.check) {
            self.check_at(name, at);
        }
    }

    pub fn next_check(&self) -> Option<Moment> {
        self.checks.first().map(|&(at, _)| at)
    }

    pub fn due(&self, now: Moment) -> Option<Name> {
        self.checks.first().filter(|(at, _)| *at <= now).map(|(_, name)| name.clone())
    }
}
