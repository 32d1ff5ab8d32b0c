//! What started before its grant was durable: where that is allowed, and how often it makes a task start once more.
//!
//! - Only functions of a process that has its store for itself may, and only those that no rate or quota counts.
//! - After a process that ended without resigning nobody may, for a minute.
//! - A start that was aborted, or whose grant was not durable when its process ended, counts for nothing: its task may
//!   start once more for each of them. These are the only starts that running ahead gives a task beyond its attempts, its
//!   losses and what was handed back.

use super::{Oracle, Violation, label_of};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::ids::{Epoch, TaskId};
use tidegate_core::protocol::{Body, Lease, Write};
use tidegate_core::time::{Moment, Span};
use tidegate_store::memory::Tables;
use tidegate_store::{Entry, Term};

const GATED: Span = Span::minutes(1);

#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Grants that the store has.
    durable: BTreeSet<Lease>,
    /// Started, and their grants may still become durable.
    started: BTreeMap<Lease, String>,
    /// Given up, perhaps before they started.
    aborted: BTreeSet<Lease>,
    /// Durable, and lost.
    lost: BTreeSet<Lease>,
    term: u32,
    /// The last leader of the store resigned.
    clean: bool,
    /// From when on functions may start before their grants are durable.
    from: Option<Moment>,
}

impl Oracle {
    /// The store gave or extended a lead.
    pub fn leads(&mut self, term: &Term, tables: &Tables, now: Moment) {
        if term.alone && term.term > self.ahead.term {
            // What an earlier core granted and never handed over may be taken for lost.
            self.lose_what_runs(tables, |oracle, lease| !oracle.handed.contains_key(&lease));
            let from = if term.clean { now } else { now + GATED };
            (self.ahead.term, self.ahead.clean, self.ahead.from) = (term.term, term.clean, Some(from));
        }
    }

    pub fn made_durable(&mut self, entry: &Entry) {
        for write in &entry.writes {
            if let Write::Granted { task, grant, .. } = write {
                let lease = Lease { task: *task, epoch: grant.epoch };
                self.ahead.durable.insert(lease);
                self.ahead.started.remove(&lease);
            }
        }
    }

    pub(super) fn no_start_ahead_of_its_time(
        &mut self,
        label: &str,
        lease: Lease,
        now: Moment,
    ) -> Result<(), Violation> {
        let granted = self.handed.get(&lease).map_or(now, |handed| handed.at);
        self.handed.get_mut(&lease).into_iter().for_each(|handed| handed.started = true);
        self.deeds(label).undone += u32::from(self.ahead.aborted.contains(&lease));
        let is_open = self.ahead.from.is_some_and(|from| from <= granted);
        if self.ahead.durable.contains(&lease) {
            if self.ahead.from.is_some() && !is_open {
                self.test("waited for its commit after a kill");
            }
            return Ok(());
        }
        let paced = self.kind_of(label).is_some_and(|kind| kind.rate.is_some() || kind.quota.is_some());
        if paced || !is_open {
            let what = format!("{label} started, and its grant {} is not durable", lease.epoch);
            return Err(Violation::new("I11", what, now));
        }
        self.test("started ahead of its commit");
        if self.ahead.clean && self.ahead.term > 1 {
            self.test("started ahead of its commit after a clean end");
        }
        if !self.ahead.aborted.contains(&lease) {
            self.ahead.started.insert(lease, label.to_owned());
        }
        Ok(())
    }

    /// A core was given up that had granted these, and nobody knew whether that was durable. Where it was after all they
    /// may be taken for lost, or for what never reached its worker.
    pub fn aborted(&mut self, leases: &[Lease]) {
        for &lease in leases {
            self.ahead.aborted.insert(lease);
            self.ahead.started.remove(&lease);
            self.take_back(lease.task);
            let Some(handed) = self.handed.get_mut(&lease) else { continue };
            handed.answered = true;
            let (label, started) = (handed.label.clone(), handed.started);
            self.deeds(&label).undone += u32::from(started);
            self.may_be_lost(&label);
        }
    }

    /// Nothing of the process is left: what was not durable never will be, and what runs according to the store is lost.
    pub fn process_is_gone(&mut self, tables: &Tables) {
        self.lose_what_runs(tables, |_, _| true);
        let started = std::mem::take(&mut self.ahead.started);
        if !started.is_empty() {
            self.test("process killed with work ahead of its commit");
        }
        for label in started.into_values() {
            self.deeds(&label).undone += 1;
        }
        let tasks: Vec<TaskId> = self.newest.keys().copied().collect();
        tasks.into_iter().for_each(|task| self.take_back(task));
    }

    /// Jobs that run according to the store are lost, once for each grant.
    fn lose_what_runs(&mut self, tables: &Tables, is_lost: impl Fn(&Oracle, Lease) -> bool) {
        for (node, task) in &tables.tasks {
            let (Some(grant), Body::Job(_)) = (&task.row.life.grant, &task.row.body) else { continue };
            let lease = Lease { task: TaskId::node(*node), epoch: grant.epoch };
            if is_lost(self, lease) && self.ahead.lost.insert(lease) {
                let label = task.row.payload.as_ref().map(label_of).unwrap_or_default();
                self.deeds(&label).lost += 1;
                self.granted(&label, grant.epoch, grant.at);
            }
        }
    }

    /// Grants that will never be durable are as good as never made: the newest one is the newest that is.
    fn take_back(&mut self, task: TaskId) {
        const FIRST: Epoch = Epoch { incarnation: 0, grant: 0 };
        let Some(&epoch) = self.newest.get(&task) else { return };
        let granted = Lease { task, epoch: FIRST }..=Lease { task, epoch };
        match self.ahead.durable.range(granted).next_back() {
            Some(lease) => self.newest.insert(task, lease.epoch),
            None => self.newest.remove(&task),
        };
    }
}
