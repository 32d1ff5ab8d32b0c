//! The durable state as plain maps, and what each write does to it. This is the meaning of a write; a store with
//! another opinion is wrong.
//!
//! Nothing is checked here: a write about a row that is not there changes nothing, because a store decides nothing.

use crate::contract::{AUDIT_STAYS, Entry};
use crate::words::of_declared;
use std::collections::BTreeMap;
use tidegate_core::admission::LimitKey;
use tidegate_core::ids::{Name, NodeId, TaskId};
use tidegate_core::protocol::{
    AuditRow, Body, DeclaredRow, GrantRow, Lease, Life, LimitRow, NodeRow, Pace, Payload, Rendered, Tally,
    TokenRow, WorkerRow, Write,
};
use tidegate_core::state::State;
use tidegate_core::time::Moment;

/// Everything durable, history included. Equal tables are equal states.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Tables {
    pub head: Head,
    pub tasks: BTreeMap<NodeId, Task>,
    pub items: BTreeMap<(NodeId, u32), Item>,
    pub limits: BTreeMap<LimitKey, LimitRow>,
    pub paces: BTreeMap<LimitKey, Pace>,
    /// In the order of their last declaration.
    pub declared: Vec<DeclaredRow>,
    pub workers: BTreeMap<Name, WorkerRow>,
    pub tokens: BTreeMap<Name, TokenRow>,
    pub audit: BTreeMap<u64, AuditRow>,
}

/// What the last entry said of itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Head {
    pub sequence: u64,
    pub batch: u128,
    pub next: u64,
    pub now: Moment,
    pub digest: Option<u64>,
}

impl Head {
    pub(crate) fn of(entry: &Entry) -> Self {
        let &Entry { sequence, batch, next, now, digest, .. } = entry;
        Head { sequence, batch, next, now, digest }
    }
}

/// A job, run or step.
#[derive(Clone, PartialEq, Debug)]
pub struct Task {
    pub row: NodeRow,
    pub output: Option<Payload>,
}

/// An item of a loop.
#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    pub order: Rendered,
    pub accepted: Moment,
    pub life: Life,
    pub output: Option<Payload>,
}

impl Tables {
    /// Makes all of an entry's writes, in order.
    pub fn apply(&mut self, entry: &Entry) {
        self.head = Head::of(entry);
        for write in &entry.writes {
            self.write(write);
        }
    }

    pub(crate) fn write(&mut self, write: &Write) {
        match write {
            Write::NodeAdded(row) => {
                self.tasks.insert(row.node, Task { row: (**row).clone(), output: None });
            }
            Write::ItemsAdded { step, from, items, at } => self.add_items(*step, *from, items, *at),
            Write::Entered { node, state, at } => self.enter(*node, *state, *at),
            Write::Granted { task, grant, number } => self.grant(*task, grant, *number),
            Write::Moved { task, state, due, tally, error, at: _ } => {
                self.move_to(*task, *state, *due, *tally, error.as_deref());
            }
            Write::Ended { task, state, output, error, at } => {
                if let Some(life) = self.life(*task) {
                    end(life, *state, error.clone(), *at);
                    self.set_output(*task, output.clone());
                }
            }
            Write::ItemsEnded { step, from, to, state, at } => {
                for (_, item) in self.items.range_mut((*step, *from)..(*step, *to.max(from))) {
                    end(&mut item.life, *state, None, *at);
                }
            }
            Write::Stopping { task, why, error, at: _ } => {
                if let Some(life) = self.life(*task) {
                    life.stop = Some(*why);
                    life.error = error.clone().or(life.error.take());
                }
            }
            Write::Renewed { leases, until } => self.renew(leases, *until),
            Write::Ranked { node, priority, root } => {
                if let Some(task) = self.tasks.get_mut(node) {
                    (task.row.priority, task.row.root) = (*priority, *root);
                }
            }
            Write::Paused { node, paused } => {
                if let Some(task) = self.tasks.get_mut(node) {
                    task.row.life.paused = *paused;
                }
            }
            Write::LimitSet(row) => self.set_limit(row),
            Write::PaceTaken { key, pace } => {
                self.paces.insert(key.clone(), pace.clone());
            }
            Write::Declared(row) => self.declare(row),
            Write::WorkerJoined(row) => {
                self.workers.insert(row.worker.clone(), (**row).clone());
            }
            Write::WorkerGone { worker, at: _ } => {
                self.workers.remove(worker);
            }
            Write::ItemEntered { step, index, at } => {
                if let Some(life) = self.life(TaskId::item(*step, *index)) {
                    life.state = State::Running;
                    life.tally.started = 1;
                    life.started.get_or_insert(*at);
                }
            }
            Write::TokenSet(row) => {
                self.tokens.insert(row.id.clone(), (**row).clone());
            }
            Write::TokenGone { id } => {
                self.tokens.remove(id);
            }
            Write::Audited(row) => {
                self.audit.insert(row.number, (**row).clone());
                self.audit.retain(|_, known| known.at >= row.at - AUDIT_STAYS);
            }
        }
    }

    fn life(&mut self, task: TaskId) -> Option<&mut Life> {
        match task.index() {
            None => self.tasks.get_mut(&task.node).map(|task| &mut task.row.life),
            Some(index) => self.items.get_mut(&(task.node, index)).map(|item| &mut item.life),
        }
    }

    fn add_items(&mut self, step: NodeId, from: u32, items: &[Rendered], accepted: Moment) {
        for (index, order) in (from..).zip(items) {
            let item = Item { order: order.clone(), accepted, life: Life::new(State::Waiting), output: None };
            self.items.insert((step, index), item);
        }
    }

    fn enter(&mut self, node: NodeId, state: State, at: Moment) {
        let Some(task) = self.tasks.get_mut(&node) else { return };
        let life = &mut task.row.life;
        // A root that came due stands in line and holds nothing; a step that waits is past the limit of its run.
        life.entered = state != State::Waiting || matches!(task.row.body, Body::Step(_));
        life.state = state;
        life.due = None;
        if state == State::Running {
            life.started.get_or_insert(at);
        }
    }

    fn grant(&mut self, task: TaskId, grant: &GrantRow, number: u32) {
        let Some(life) = self.life(task) else { return };
        life.state = State::Running;
        life.due = None;
        life.tally.started = number;
        life.started.get_or_insert(grant.at);
        life.grant = Some(grant.clone());
        // What an earlier attempt was told is not told to this one.
        life.stop = None;
    }

    fn move_to(
        &mut self,
        task: TaskId,
        state: State,
        due: Option<Moment>,
        tally: Tally,
        error: Option<&str>,
    ) {
        let Some(life) = self.life(task) else { return };
        life.state = state;
        life.due = due;
        life.tally = tally;
        life.grant = None;
        life.stop = None;
        // A move that is nobody's fault leaves the last error to be seen.
        if let Some(error) = error {
            life.error = Some(error.to_owned());
        }
    }

    fn set_output(&mut self, task: TaskId, output: Option<Payload>) {
        match task.index() {
            None => {
                if let Some(task) = self.tasks.get_mut(&task.node) {
                    task.output = output;
                }
            }
            Some(index) => {
                if let Some(item) = self.items.get_mut(&(task.node, index)) {
                    item.output = output;
                }
            }
        }
    }

    fn renew(&mut self, leases: &[Lease], until: Moment) {
        for lease in leases {
            let grant = self.life(lease.task).and_then(|life| life.grant.as_mut());
            if let Some(grant) = grant.filter(|grant| grant.epoch == lease.epoch) {
                grant.until = until;
            }
        }
    }

    /// A row that says nothing any more goes.
    fn set_limit(&mut self, row: &LimitRow) {
        if row.set.is_some() || row.paused {
            self.limits.insert(row.key.clone(), row.clone());
        } else {
            self.limits.remove(&row.key);
        }
    }

    /// What was declared under the same name and version before goes; what is new stands last.
    fn declare(&mut self, row: &DeclaredRow) {
        self.declared.retain(|known| of_declared(known) != of_declared(row));
        self.declared.push(row.clone());
    }
}

/// What is kept of an end: the reason to stop stays, what it held and waited for does not.
fn end(life: &mut Life, state: State, error: Option<String>, at: Moment) {
    life.state = state;
    life.due = None;
    life.grant = None;
    life.ended = Some(at);
    life.error = error;
}
