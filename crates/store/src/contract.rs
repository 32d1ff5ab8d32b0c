//! What every store does: makes a closed list of writes durable in one commit, and gives back what is open.
//!
//! A store decides nothing. It knows one rule only, the fence: an entry of a leader that has been deposed, or that
//! does not follow the last one, is not taken.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::{Payload, Snapshot, Write};
use tidegate_core::state::State;
use tidegate_core::time::{Moment, Span};

/// One commit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// One more than that of the entry before it.
    pub sequence: u64,
    /// The leadership under which it was decided.
    pub term: u32,
    /// Chosen at random for each entry, to recognise one's own after an unknown outcome.
    pub batch: u128,
    /// Engine time when it was decided.
    pub now: Moment,
    /// The next number the core will give out.
    pub next: u64,
    pub writes: Vec<Write>,
}

/// What became of an entry. Asking again with the same entry is always right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Commit {
    /// It is durable, by this call or an earlier one.
    Done,
    /// Another entry has its sequence number: what is in memory is not what is stored.
    Foreign,
    /// Somebody else leads.
    Deposed,
}

/// A leadership: the right to commit, until somebody takes it over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Term {
    /// Higher than any before.
    pub term: u32,
    /// The store's clock when it was given.
    pub clock: Moment,
}

#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum StoreError {
    /// Nobody knows whether it happened. Ask again with the same entry.
    #[error("the store did not answer: {0}")]
    Unknown(String),
    /// The disk is full or does not work, which may pass. Open the store anew and load, now and then until it does.
    #[error("the store cannot be used now: {0}")]
    Unusable(String),
    /// The handle is damaged; open the store anew and load.
    #[error("the store cannot go on: {0}")]
    Broken(String),
    #[error("the store was written by a newer version of Tidegate (schema {found}, this one knows {known})")]
    Newer { found: u32, known: u32 },
    #[error("another process uses this store ({0})")]
    InUse(String),
}

impl StoreError {
    /// Whether the same may work later, without anybody changing what is stored.
    pub fn may_pass(&self) -> bool {
        matches!(self, StoreError::Unknown(_) | StoreError::Unusable(_))
    }
}

/// What a loaded core starts from.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Loaded {
    pub snapshot: Snapshot,
    /// The sequence number of the last entry.
    pub sequence: u64,
}

/// How a task ended, with its output.
#[derive(Clone, PartialEq, Debug)]
pub struct Ended {
    pub state: State,
    pub output: Option<Payload>,
    pub error: Option<String>,
    /// Attempts started.
    pub attempts: u32,
}

/// What can be asked of a store, by its owner and by whoever else looks at it. Blocking; a shell calls it from a
/// thread that may wait.
pub trait Reads: Send {
    fn load(&mut self) -> Result<Loaded, StoreError>;

    /// The node that was accepted under this id, whether or not it has ended.
    fn find(&mut self, id: RunId) -> Result<Option<NodeId>, StoreError>;

    /// The payload of a node (a job's or step's order, a run's inputs, a loop's list) or the order of an item.
    fn payload(&mut self, task: TaskId) -> Result<Option<Payload>, StoreError>;

    /// How a task ended; nothing if it has not.
    fn ended(&mut self, task: TaskId) -> Result<Option<Ended>, StoreError>;

    /// The ended items of a loop `from..to`, in index order; items without a row are left out.
    fn ended_items(&mut self, step: NodeId, from: u32, to: u32) -> Result<Vec<(u32, Ended)>, StoreError>;
}

/// Blocking; a shell calls it from a thread of its own.
pub trait Store: Reads {
    /// Takes the lead, if nobody else has it or the lease of who has it is over. Also the way to extend one's own:
    /// the holder of `mine` keeps its term; a server that asks without it (it was started anew, or never heard
    /// that it leads) gets a new one.
    fn lead(&mut self, server: &Name, mine: Option<u32>, lease: Span) -> Result<Option<Term>, StoreError>;

    /// Gives the lead up, so that another need not wait for the lease to end.
    fn resign(&mut self, term: u32) -> Result<(), StoreError>;

    fn commit(&mut self, entry: &Entry) -> Result<Commit, StoreError>;

    /// Opens the store anew, after it was broken or could not be written.
    fn reopen(&mut self) -> Result<(), StoreError>;
}
