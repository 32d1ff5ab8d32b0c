//! From entries to events. Pure: the same entries give the same events.
//!
//! A write names a task by its number only. So that an event can say to which run it belongs, and whether a lease ran
//! out, what is open and what runs is remembered, as far as it was seen; the rest is [asked for](Derivation::unknown).

use super::{Event, Happening, Position};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::admission::SlotCounts;
use tidegate_core::ids::{Epoch, Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::{
    Body, GrantRow, Lease, LimitRow, NodeRow, StepBody, StepKind, WorkerRow, Write,
};
use tidegate_core::state::State;
use tidegate_core::time::Moment;
use tidegate_store::{Entry, Found as Root};

/// What was submitted that a node is, or is a part of.
#[derive(Clone, Copy, Debug)]
struct Kin {
    run: RunId,
    root: NodeId,
}

#[derive(Debug)]
struct Grant {
    /// Nothing if only its renewal was seen.
    worker: Option<Name>,
    epoch: Epoch,
    until: Moment,
}

impl Grant {
    fn new(row: &GrantRow) -> Grant {
        Grant { worker: Some(row.worker.clone()), epoch: row.epoch, until: row.until }
    }
}

/// Derives events from one entry after the other.
#[derive(Debug, Default)]
pub struct Derivation {
    open: BTreeMap<NodeId, Kin>,
    /// The other nodes of each root. Those that have ended are forgotten: a loop over flows makes many.
    parts: BTreeMap<NodeId, BTreeSet<NodeId>>,
    running: BTreeMap<TaskId, Grant>,
}

/// The events of one entry, as they are found.
struct Found {
    entry: u64,
    events: Vec<Event>,
}

impl Found {
    fn push(&mut self, at: Moment, run: Option<RunId>, task: Option<TaskId>, what: Happening) {
        let position = Position { entry: self.entry, index: self.events.len() as u32 + 1 };
        self.events.push(Event { position, at, run, task, what });
    }
}

impl Derivation {
    /// Nodes of an entry of which it is not known to what they belong. Whoever knows says so with
    /// [`Derivation::learn`] before the entry is handed over.
    pub fn unknown(&self, entry: &Entry) -> Vec<NodeId> {
        let (mut added, mut unknown) = (BTreeSet::new(), BTreeSet::new());
        for write in &entry.writes {
            let node = match write {
                Write::NodeAdded(row) => {
                    added.insert(row.node);
                    let Some(parent) = row.parent else { continue };
                    parent
                }
                Write::Entered { node, .. } | Write::ItemsEnded { step: node, .. } => *node,
                Write::Granted { task, .. } | Write::Moved { task, .. } | Write::Ended { task, .. } => {
                    task.node
                }
                _ => continue,
            };
            if !added.contains(&node) && !self.open.contains_key(&node) {
                unknown.insert(node);
            }
        }
        unknown.into_iter().collect()
    }

    /// A node belongs to this root.
    pub fn learn(&mut self, node: NodeId, root: Root) {
        self.know(node, Kin { run: root.id, root: root.node });
    }

    pub fn events(&mut self, entry: &Entry) -> Vec<Event> {
        let mut found = Found { entry: entry.sequence, events: Vec::new() };
        for write in &entry.writes {
            self.write(write, entry.now, &mut found);
        }
        found.events
    }

    fn write(&mut self, write: &Write, now: Moment, found: &mut Found) {
        match write {
            Write::NodeAdded(row) => self.added(row, found),
            Write::Entered { node, state: State::Running, at } => {
                let task = TaskId::node(*node);
                if self.is_root(task) {
                    found.push(*at, self.run_of(task), Some(task), Happening::RunStarted);
                }
            }
            Write::Granted { task, grant, number } => self.granted(*task, grant, *number, found),
            Write::Renewed { leases, until } => {
                leases.iter().for_each(|lease| self.renewed(*lease, *until));
            }
            Write::Moved { task, due, error, at, .. } => {
                let (run, grant) = (self.run_of(*task), self.running.remove(task));
                let is_expired = grant.as_ref().is_some_and(|grant| self.expired(*task, grant, *at, found));
                let what = match (due, grant) {
                    (Some(at), _) => Happening::TaskRetrying { at: *at, reason: error.clone() },
                    (None, Some(Grant { worker, epoch, .. })) if !is_expired => {
                        Happening::TaskReturned { worker, epoch }
                    }
                    // Its pause is over, or its lease was.
                    (None, _) => return,
                };
                found.push(*at, run, Some(*task), what);
            }
            Write::Ended { task, state, error, at, .. } => self.ended(*task, *state, error, *at, found),
            Write::ItemsEnded { step, from, to, state, at } => {
                let task = TaskId::item(*step, *from);
                let what = Happening::TaskFinished { state: *state, error: None, count: to - from };
                found.push(*at, self.run_of(task), Some(task), what);
            }
            Write::LimitSet(row) => found.push(now, None, None, limit_changed(row)),
            Write::WorkerJoined(row) => found.push(now, None, None, joined(row)),
            Write::WorkerGone { worker, at } => {
                found.push(*at, None, None, Happening::WorkerLost { worker: worker.clone() });
            }
            Write::Entered { .. }
            | Write::ItemsAdded { .. }
            | Write::ItemEntered { .. }
            | Write::Stopping { .. }
            | Write::Ranked { .. }
            | Write::Paused { .. }
            | Write::PaceTaken { .. }
            | Write::Declared(_)
            | Write::TokenSet(_)
            | Write::TokenGone { .. }
            | Write::Audited(_) => {}
        }
    }

    fn is_root(&self, task: TaskId) -> bool {
        self.open.get(&task.node).is_some_and(|kin| TaskId::node(kin.root) == task)
    }

    fn run_of(&self, task: TaskId) -> Option<RunId> {
        self.open.get(&task.node).map(|kin| kin.run)
    }

    fn know(&mut self, node: NodeId, kin: Kin) {
        if self.open.insert(node, kin).is_none() && kin.root != node {
            self.parts.entry(kin.root).or_default().insert(node);
        }
    }

    /// A node has ended: nothing more is said of it, and of a root nothing more of all that belongs to it.
    fn forget(&mut self, node: NodeId) {
        let Some(kin) = self.open.remove(&node) else { return };
        if let Some(parts) = self.parts.get_mut(&kin.root) {
            parts.remove(&node);
        }
        if kin.root == node {
            for part in self.parts.remove(&node).into_iter().flatten() {
                self.open.remove(&part);
            }
        }
    }

    fn renewed(&mut self, lease: Lease, until: Moment) {
        let Lease { task, epoch } = lease;
        self.running.entry(task).or_insert(Grant { worker: None, epoch, until }).until = until;
    }

    fn added(&mut self, row: &NodeRow, found: &mut Found) {
        let (task, around) = (TaskId::node(row.node), row.parent.and_then(|parent| self.open.get(&parent)));
        let (run, name, tags) = match &row.body {
            Body::Job(body) => (Some(body.id), &body.action, &body.tags),
            Body::Run(body) if body.id.is_some() => (body.id, &body.flow, &body.tags),
            Body::Run(_) | Body::Step(_) | Body::ItemRun(_) => {
                if let Some(kin) = around.copied() {
                    self.know(row.node, kin);
                }
                let state = row.life.state;
                match &row.body {
                    &Body::Step(StepBody { kind: StepKind::Reused { run, .. }, .. }) => {
                        let what = Happening::TaskReused { state, run };
                        found.push(row.accepted, self.run_of(task), Some(task), what);
                    }
                    // A step that was skipped, say, comes with its end.
                    _ if state.is_end() => self.ended(task, state, &row.life.error, row.accepted, found),
                    _ => {}
                }
                return;
            }
        };
        if let Some(run) = run {
            self.know(row.node, Kin { run, root: row.node });
        }
        let (name, tags, due) = (name.clone(), tags.clone(), row.life.due);
        let what = Happening::RunQueued { name, priority: row.priority, tags, due };
        found.push(row.accepted, run, Some(task), what);
    }

    fn granted(&mut self, task: TaskId, row: &GrantRow, attempt: u32, found: &mut Found) {
        self.running.insert(task, Grant::new(row));
        let run = self.run_of(task);
        // What was submitted is itself granted only if it is a job.
        if attempt == 1 && self.is_root(task) {
            found.push(row.at, run, Some(task), Happening::RunStarted);
        }
        let what = Happening::TaskGranted { worker: row.worker.clone(), epoch: row.epoch, attempt };
        found.push(row.at, run, Some(task), what);
    }

    /// Whether an attempt is over because nobody renewed its lease.
    fn expired(&self, task: TaskId, grant: &Grant, at: Moment, found: &mut Found) -> bool {
        let is_expired = grant.until <= at;
        if is_expired {
            let what = Happening::LeaseExpired { worker: grant.worker.clone(), epoch: grant.epoch };
            found.push(at, self.run_of(task), Some(task), what);
        }
        is_expired
    }

    fn ended(&mut self, task: TaskId, state: State, error: &Option<String>, at: Moment, found: &mut Found) {
        if let Some(grant) = self.running.remove(&task) {
            self.expired(task, &grant, at, found);
        }
        let run = self.run_of(task);
        let what = Happening::TaskFinished { state, error: error.clone(), count: 1 };
        found.push(at, run, Some(task), what);
        if self.is_root(task) {
            found.push(at, run, Some(task), Happening::RunFinished { state, error: error.clone() });
        }
        if task.index().is_none() {
            self.forget(task.node);
        }
    }
}

fn limit_changed(row: &LimitRow) -> Happening {
    let set = row.set.as_ref();
    Happening::LimitChanged {
        limit: row.key.clone(),
        to: set.map(|set| set.value.clone()),
        by: set.map(|set| set.by.clone()),
        until: set.and_then(|set| set.until),
        paused: row.paused,
    }
}

fn joined(row: &WorkerRow) -> Happening {
    let (worker, slots) = (row.worker.clone(), row.slots);
    match slots == SlotCounts::default() {
        true => Happening::WorkerDrained { worker },
        false => Happening::WorkerJoined { worker, slots },
    }
}
