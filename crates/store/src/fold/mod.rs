//! What many entries amount to, row by row: a task that was accepted, granted and ended in between is one row.
//!
//! Pure. What is new is kept as [`Tables`], so its meaning is that of the memory store; what was there before is not
//! known here, so it becomes a [`Change`]. Changes come before what is new: one that came earlier than its row was
//! about nothing. Ends are final: a write about something that has ended changes nothing.

mod change;
#[cfg(test)]
mod tests;

pub use change::{Change, End, Entered};

use crate::contract::Entry;
use crate::memory::{Head, Tables};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::admission::LimitKey;
use tidegate_core::ids::{Name, NodeId, TaskId};
use tidegate_core::protocol::Write;
use tidegate_core::state::State;
use tidegate_core::time::Moment;

#[derive(Debug, Default)]
pub struct Fold {
    /// What was not there before, as it is now. Of limits, paces and workers: those that are set.
    pub new: Tables,
    /// What happened to tasks and items that were there before.
    pub changes: BTreeMap<TaskId, Change>,
    /// Items that were there before and ended alike, unless `changes` says more about one of them.
    pub ranges: Vec<Range>,
    pub limits: BTreeSet<LimitKey>,
    pub workers: BTreeSet<Name>,
    pub tokens: BTreeSet<Name>,
}

/// Items `from..to` of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    pub step: NodeId,
    pub from: u32,
    pub to: u32,
    pub state: State,
    pub at: Moment,
}

impl Fold {
    pub fn head(&self) -> &Head {
        &self.new.head
    }

    /// Adds what an entry says. Entries come in their order.
    pub fn add(&mut self, entry: &Entry) {
        self.new.head = Head::of(entry);
        for write in &entry.writes {
            self.new.write(write);
            self.note(write);
        }
    }

    /// What the tables of new rows cannot hold.
    fn note(&mut self, write: &Write) {
        match write {
            Write::Entered { node, state, at } => {
                self.change(TaskId::node(*node), |change| change.enter(*state, *at));
            }
            Write::ItemEntered { step, index, at } => {
                self.change(TaskId::item(*step, *index), |change| change.enter_item(*at));
            }
            Write::Granted { task, grant, number } => {
                self.change(*task, |change| change.grant(grant, *number));
            }
            Write::Moved { task, state, due, tally, error, at: _ } => {
                self.change(*task, |change| change.move_to(*state, *due, *tally, error.as_deref()));
            }
            Write::Ended { task, state, output, error, at } => {
                let end = || End { at: *at, output: output.clone() };
                self.change(*task, |change| change.end(*state, error.clone(), end()));
            }
            Write::ItemsEnded { step, from, to, state, at } => {
                self.end_range(Range { step: *step, from: *from, to: *to, state: *state, at: *at });
            }
            Write::Stopping { task, why, error, at: _ } => {
                self.change(*task, |change| change.stop(*why, error.as_deref()));
            }
            Write::Renewed { leases, until } => {
                for lease in leases {
                    self.change(lease.task, |change| change.renew(lease.epoch, *until));
                }
            }
            Write::Ranked { node, priority, root } => {
                self.change(TaskId::node(*node), |change| change.rank(*priority, *root));
            }
            Write::Paused { node, paused } => {
                self.change(TaskId::node(*node), |change| change.pause(*paused));
            }
            Write::LimitSet(row) => {
                self.limits.insert(row.key.clone());
            }
            Write::WorkerJoined(row) => {
                self.workers.insert(row.worker.clone());
            }
            Write::WorkerGone { worker, at: _ } => {
                self.workers.insert(worker.clone());
            }
            Write::TokenSet(row) => {
                self.tokens.insert(row.id.clone());
            }
            Write::TokenGone { id } => {
                self.tokens.insert(id.clone());
            }
            Write::NodeAdded(_)
            | Write::ItemsAdded { .. }
            | Write::PaceTaken { .. }
            | Write::Declared(_)
            | Write::Audited(_) => {}
        }
    }

    fn change(&mut self, task: TaskId, apply: impl FnOnce(&mut Change)) {
        let is_new = match task.index() {
            None => self.new.tasks.contains_key(&task.node),
            Some(index) => self.new.items.contains_key(&(task.node, index)),
        };
        if !is_new {
            let change = self.changes.entry(task).or_default();
            if change.end.is_none() {
                apply(change);
            }
        }
    }

    fn end_range(&mut self, range: Range) {
        if range.from >= range.to {
            return;
        }
        let items = TaskId::item(range.step, range.from)..TaskId::item(range.step, range.to);
        for (_, change) in self.changes.range_mut(items).filter(|(_, change)| change.end.is_none()) {
            change.end(range.state, None, End { at: range.at, output: None });
        }
        self.ranges.push(range);
    }
}
