//! The workers of a scenario: what they were handed, and which of them are heard of.

use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::Core;
use tidegate_core::ids::{Epoch, Name, TaskId};
use tidegate_core::protocol::{Heartbeat, Lease};

#[derive(Default)]
pub struct Workers {
    known: BTreeMap<Name, Worker>,
    /// Who was handed each lease, for ever.
    leases: BTreeMap<Lease, Name>,
}

struct Worker {
    incarnation: u64,
    has: BTreeSet<Lease>,
    /// It beats by itself while time passes.
    beats: bool,
}

impl Workers {
    /// A process starts under this name; says which incarnation it is.
    pub fn start(&mut self, name: &Name) -> u64 {
        let incarnation = self.incarnation(name) + 1;
        self.known.insert(name.clone(), Worker { incarnation, has: BTreeSet::new(), beats: true });
        incarnation
    }

    pub fn incarnation(&self, name: &Name) -> u64 {
        self.known.get(name).map_or(0, |worker| worker.incarnation)
    }

    /// Whether it beats by itself from now on.
    pub fn set_beating(&mut self, name: &Name, beats: bool) -> Result<(), String> {
        let worker = self.known.get_mut(name).ok_or_else(|| format!("there is no worker `{name}`"))?;
        worker.beats = beats;
        Ok(())
    }

    pub fn deliver(&mut self, name: &Name, lease: Lease) {
        self.leases.insert(lease, name.clone());
        if let Some(worker) = self.known.get_mut(name) {
            worker.has.insert(lease);
        }
    }

    pub fn is_done_with(&mut self, lease: Lease) {
        for worker in self.known.values_mut() {
            worker.has.remove(&lease);
        }
    }

    /// `a` is the newest lease of a task, `a(1.2)` a certain one.
    pub fn lease(&self, task: TaskId, epoch: Option<&str>) -> Result<(Name, Lease), String> {
        let wanted =
            |lease: &Lease| lease.task == task && epoch.is_none_or(|epoch| lease.epoch.to_string() == epoch);
        let newest = self.leases.iter().rfind(|(lease, _)| wanted(lease));
        newest.map(|(lease, worker)| (worker.clone(), *lease)).ok_or_else(|| "it never started".to_owned())
    }

    /// The lists that are due, of everybody who beats by itself. What was taken from a worker it has dropped.
    pub fn heartbeats(&mut self, core: &Core) -> Vec<Heartbeat> {
        let beating = self.known.iter_mut().filter(|(_, worker)| worker.beats);
        let heartbeats = beating.map(|(name, worker)| {
            worker.has.retain(|lease| core.is_live(*lease));
            let has = worker.has.iter().copied().collect();
            Heartbeat { worker: name.clone(), incarnation: worker.incarnation, has }
        });
        heartbeats.collect()
    }
}

/// Splits `a(1.2)` into the name and the epoch.
pub fn with_epoch(word: &str) -> (&str, Option<&str>) {
    match word.strip_suffix(')').and_then(|word| word.split_once('(')) {
        Some((name, epoch)) => (name, Some(epoch)),
        None => (word, None),
    }
}

/// An epoch that no core gives out.
pub const NEVER: Epoch = Epoch { incarnation: 0, grant: 0 };
