//! What this process committed and the tables do not hold yet, for those who read their own writes.
//!
//! Look here first and into the tables afterwards: something leaves this place only once the tables hold it. It is
//! also where the writer waits when the tables are too far behind, and where whoever projects waits for work.

use crate::contract::{Entry, Found, Sought, StoreError};
use crate::identity;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidegate_core::ids::{NodeId, TaskId};
use tidegate_core::protocol::{NodeRow, Payload, Write};
use tidegate_core::state::State;

/// Writes of more bytes than this count as several.
const BYTES_A_WRITE: usize = 4 * 1024;

#[derive(Debug, Default)]
pub struct Overlay {
    state: Mutex<Recent>,
    changed: Condvar,
}

/// How a task ended; how often it was started may only be known to the tables.
#[derive(Clone, PartialEq, Debug)]
pub struct RecentEnd {
    pub state: State,
    pub output: Option<Payload>,
    pub error: Option<String>,
    pub attempts: Option<u32>,
}

/// What whoever projects is woken for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    Work,
    Nothing,
    Stop,
}

#[derive(Debug, Default)]
struct Recent {
    /// The newest entry that this process committed or loaded.
    committed: u64,
    /// Up to where the tables are known to be.
    position: u64,
    writes: usize,
    entries: VecDeque<Touched>,
    tasks: BTreeMap<TaskId, Known>,
    roots: BTreeMap<Sought, (u64, Found)>,
    is_stopped: bool,
    /// Why the tables do not follow.
    problem: Option<StoreError>,
}

/// What is known because of one entry.
#[derive(Debug)]
struct Touched {
    sequence: u64,
    writes: usize,
    tasks: Vec<TaskId>,
    roots: Vec<Sought>,
}

#[derive(Debug, Default)]
struct Known {
    /// The newest entry that says something.
    sequence: u64,
    /// Whether the tables have never heard of it.
    is_new: bool,
    /// Of a new one: what it is inside of.
    parent: Option<NodeId>,
    payload: Option<Payload>,
    attempts: Option<u32>,
    end: Option<(State, Option<Payload>, Option<String>)>,
}

impl Overlay {
    /// The entry is durable; so many bytes were written for it.
    pub fn committed(&self, entry: &Entry, bytes: usize) {
        let mut recent = self.recent();
        if entry.sequence > recent.committed {
            recent.add(entry, weight(entry, bytes));
            self.changed.notify_all();
        }
    }

    /// The tables hold everything up to this entry.
    pub fn settle(&self, position: u64) {
        let mut recent = self.recent();
        recent.settle(position);
        recent.problem = None;
        self.changed.notify_all();
    }

    /// What was loaded holds everything up to this entry.
    pub fn loaded(&self, sequence: u64) {
        let mut recent = self.recent();
        recent.committed = recent.committed.max(sequence);
        recent.settle(sequence);
        self.changed.notify_all();
    }

    pub fn failed(&self, problem: StoreError) {
        self.recent().problem = Some(problem);
    }

    /// Waits while more than this many writes, large ones counted as several, are not in the tables. False if that lasts too long; an error if whoever
    /// projects has one.
    pub fn wait_for_room(&self, most: usize, patience: Duration) -> Result<bool, StoreError> {
        let full = |recent: &mut Recent| recent.writes > most;
        let waited = self.changed.wait_timeout_while(self.recent(), patience, full);
        let (recent, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &recent.problem {
            _ if recent.writes <= most => Ok(true),
            None => Ok(false),
            Some(problem) => Err(StoreError::Unknown(format!("the tables are behind: {problem}"))),
        }
    }

    /// Waits until there is work (and a little longer, so that more of it comes together), until `patience` is over, or
    /// until all is over.
    pub fn wait_for_work(&self, patience: Duration, gather: Duration, enough: usize) -> Wake {
        let idle = |recent: &mut Recent| recent.entries.is_empty() && !recent.is_stopped;
        let waited = self.changed.wait_timeout_while(self.recent(), patience, idle);
        let (recent, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_idle = recent.entries.is_empty();
        let gathering = |recent: &mut Recent| !is_idle && !recent.is_stopped && recent.writes < enough;
        let waited = self.changed.wait_timeout_while(recent, gather, gathering);
        let (recent, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match (recent.is_stopped, is_idle) {
            (true, _) => Wake::Stop,
            (false, true) => Wake::Nothing,
            (false, false) => Wake::Work,
        }
    }

    /// Waits until the tables are known to hold this entry, or `until`.
    pub fn wait_for_position(&self, sequence: u64, until: Instant) -> bool {
        let patience = until.saturating_duration_since(Instant::now());
        let behind = |recent: &mut Recent| recent.position < sequence && !recent.is_stopped;
        let waited = self.changed.wait_timeout_while(self.recent(), patience, behind);
        waited.unwrap_or_else(PoisonError::into_inner).0.position >= sequence
    }

    /// Waits until the tables hold everything that was committed here so far, or not much longer. Whether they do.
    pub fn wait_for_tables(&self, patience: Duration) -> bool {
        let committed = self.recent().committed;
        self.wait_for_position(committed, Instant::now() + patience)
    }

    pub fn stop(&self) {
        self.recent().is_stopped = true;
        self.changed.notify_all();
    }

    pub fn is_stopped(&self) -> bool {
        self.recent().is_stopped
    }

    /// Whether this entry can be read, here or in the tables.
    pub fn holds(&self, sequence: u64) -> bool {
        let recent = self.recent();
        recent.committed.max(recent.position) >= sequence
    }

    /// The payload, or that there is none, of what the tables have never heard of.
    pub fn payload(&self, task: TaskId) -> Option<Option<Payload>> {
        self.recent().tasks.get(&task).filter(|known| known.is_new).map(|known| known.payload.clone())
    }

    pub fn ended(&self, task: TaskId) -> Option<RecentEnd> {
        self.recent().tasks.get(&task).and_then(Known::ended)
    }

    pub fn ended_items(&self, step: NodeId, from: u32, to: u32) -> BTreeMap<u32, RecentEnd> {
        let items = TaskId::item(step, from)..TaskId::item(step, to.max(from));
        let recent = self.recent();
        let ended =
            recent.tasks.range(items).filter_map(|(task, known)| Some((task.index()?, known.ended()?)));
        ended.collect()
    }

    pub fn find(&self, sought: &Sought) -> Option<Found> {
        self.recent().roots.get(sought).map(|(_, found)| *found)
    }

    /// What a node that the tables have never heard of is inside of.
    pub fn around(&self, node: NodeId) -> Option<NodeId> {
        self.recent().tasks.get(&TaskId::node(node))?.parent
    }

    /// A thread that panicked between two writes is a failure of its own; others go on.
    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many writes an entry counts as: large ones are several, so that a bound on writes is one on bytes too.
fn weight(entry: &Entry, bytes: usize) -> usize {
    entry.writes.len().max(bytes / BYTES_A_WRITE)
}

impl Known {
    fn ended(&self) -> Option<RecentEnd> {
        let (state, output, error) = self.end.clone()?;
        Some(RecentEnd { state, output, error, attempts: self.attempts })
    }
}

impl Recent {
    fn add(&mut self, entry: &Entry, writes: usize) {
        self.committed = entry.sequence;
        self.writes += writes;
        let touched = Touched { sequence: entry.sequence, writes, tasks: Vec::new(), roots: Vec::new() };
        self.entries.push_back(touched);
        for write in &entry.writes {
            self.note(entry.sequence, write);
        }
    }

    fn note(&mut self, sequence: u64, write: &Write) {
        match write {
            Write::NodeAdded(row) => self.add_node(sequence, row),
            Write::ItemsAdded { step, from, items, .. } => {
                for (index, item) in (*from..).zip(items) {
                    let known = self.touch(sequence, TaskId::item(*step, index));
                    (known.is_new, known.attempts) = (true, Some(0));
                    known.payload = Some(item.order.clone());
                }
            }
            Write::Granted { task, number, .. } => self.touch(sequence, *task).attempts = Some(*number),
            Write::ItemEntered { step, index, .. } => {
                self.touch(sequence, TaskId::item(*step, *index)).attempts = Some(1);
            }
            Write::Moved { task, tally, .. } => self.touch(sequence, *task).attempts = Some(tally.started),
            Write::Ended { task, state, output, error, .. } => {
                self.touch(sequence, *task).end = Some((*state, output.clone(), error.clone()));
            }
            Write::ItemsEnded { step, from, to, state, .. } => {
                for index in *from..*to {
                    self.touch(sequence, TaskId::item(*step, index)).end = Some((*state, None, None));
                }
            }
            Write::Entered { .. }
            | Write::Stopping { .. }
            | Write::Renewed { .. }
            | Write::Ranked { .. }
            | Write::Paused { .. }
            | Write::LimitSet(_)
            | Write::PaceTaken { .. }
            | Write::Declared(_)
            | Write::WorkerJoined(_)
            | Write::WorkerGone { .. }
            | Write::TokenSet(_)
            | Write::TokenGone { .. }
            | Write::Audited(_) => {}
        }
    }

    fn add_node(&mut self, sequence: u64, row: &NodeRow) {
        let known = self.touch(sequence, TaskId::node(row.node));
        (known.is_new, known.attempts) = (true, Some(row.life.tally.started));
        (known.payload, known.parent) = (row.payload.clone(), row.parent);
        if row.life.ended.is_some() {
            known.end = Some((row.life.state, None, row.life.error.clone()));
        }
        let Some(found) = identity::found(row.node, &row.body) else { return };
        let key = identity::idempotency(&row.body).map(|key| Sought::Key(key.key.clone()));
        for sought in key.into_iter().chain([Sought::Id(found.id), Sought::Part(found.node)]) {
            self.roots.insert(sought.clone(), (sequence, found));
            if let Some(entry) = self.entries.back_mut() {
                entry.roots.push(sought);
            }
        }
    }

    fn touch(&mut self, sequence: u64, task: TaskId) -> &mut Known {
        let known = self.tasks.entry(task).or_default();
        if known.sequence < sequence {
            known.sequence = sequence;
            if let Some(entry) = self.entries.back_mut() {
                entry.tasks.push(task);
            }
        }
        known
    }

    fn settle(&mut self, position: u64) {
        self.position = self.position.max(position);
        while self.entries.front().is_some_and(|entry| entry.sequence <= position) {
            let Some(entry) = self.entries.pop_front() else { return };
            self.writes -= entry.writes;
            for task in &entry.tasks {
                if self.tasks.get(task).is_some_and(|known| known.sequence <= position) {
                    self.tasks.remove(task);
                }
            }
            for sought in &entry.roots {
                if self.roots.get(sought).is_some_and(|(sequence, _)| *sequence <= position) {
                    self.roots.remove(sought);
                }
            }
        }
    }
}
