//! What every store does: makes a closed list of writes durable in one commit, and gives back what is open.
//!
//! A store decides nothing. It knows one rule only, the fence: an entry of a leader that has been deposed, or that
//! does not follow the last one, is not taken.

use crate::retention::Before;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::{AuditRow, DeclaredRow, NodeRow, Payload, Snapshot, TokenRow, Write};
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
    /// Letters that leave the mailbox with this entry.
    pub letters: Vec<u64>,
    /// What the durable state amounts to after it; only where tests ask for it.
    pub digest: Option<u64>,
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
    /// It was not even tried: the store has too much to do with what it took before.
    Later,
}

/// A leadership: the right to commit, until somebody takes it over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Term {
    /// Higher than any before.
    pub term: u32,
    /// The store's clock when it was given.
    pub clock: Moment,
    /// Nobody else can lead while this process lives.
    pub alone: bool,
    /// Whoever led before has resigned, or nobody ever led.
    pub clean: bool,
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
    /// Whoever owns it brings it forward.
    #[error("the store is of an earlier version of Tidegate (schema {found}, this one knows {known})")]
    Older { found: u32, known: u32 },
    #[error("this store is in use ({0})")]
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
    /// That of the last entry.
    pub digest: Option<u64>,
}

/// By what something that was accepted can be looked for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sought {
    Id(RunId),
    /// An idempotency key.
    Key(Name),
    /// A node of it: the root itself, or anything below it.
    Part(NodeId),
}

/// What was accepted: a root. If there were several under a key, it is the latest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    pub node: NodeId,
    pub id: RunId,
    /// Digest of what was submitted, if under an idempotency key.
    pub content: Option<u64>,
}

/// Something that another program left to be submitted, inside a transaction of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Letter {
    pub number: u64,
    pub id: RunId,
    /// JSON.
    pub content: Vec<u8>,
}

/// Where the other servers reach one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contact {
    pub address: String,
    pub token: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leader {
    pub server: Name,
    pub contact: Option<Contact>,
}

/// How many bytes of letters are read at once; one letter is in any case.
pub const LETTERS_BYTES: usize = 8 * 1024 * 1024;

/// About how many bytes of entries are read at once from a database; one entry is in any case.
pub const ENTRIES_BYTES: usize = 64 * 1024 * 1024;

/// Entries that stay readable after they were made, for whoever follows them.
pub const KEPT_ENTRIES: u64 = 1_000;

/// How long a root with an idempotency key is kept after its end, whatever is asked.
pub const KEYS_STAY: Span = Span::hours(24);

/// History is kept at least for so long where somebody may be at work: results are asked for, and submissions repeated,
/// after the end.
pub const KEEP_AT_LEAST: Span = Span::seconds(60);

/// How long it is kept who changed what. A store forgets the rest when the next change is written down.
pub const AUDIT_STAYS: Span = Span::days(400);

/// What one call of [`Store::prune`] deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pruned {
    /// Roots of which nothing is left.
    pub roots: u64,
    /// Jobs, runs, steps and items.
    pub rows: u64,
}

/// Which of all that was submitted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// Only what was submitted before this.
    pub before: Option<NodeId>,
    pub state: Option<State>,
    /// Of a flow or an action.
    pub name: Option<Name>,
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

/// Items of a loop that are in one state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InState {
    pub state: State,
    pub items: u32,
    /// The index of the first of them.
    pub first: u32,
}

/// What can be asked of a store, by its owner and by whoever else looks at it. Blocking; a shell calls it from a
/// thread that may wait.
pub trait Reads: Send {
    fn load(&mut self) -> Result<Loaded, StoreError>;

    /// What was accepted under each id or key, or around each node, ended or not, in the order in which it is asked.
    fn find(&mut self, sought: &[Sought]) -> Result<Vec<Option<Found>>, StoreError>;

    /// The payload of a node (a job's or step's order, a run's inputs, a loop's list) or the order of an item.
    fn payload(&mut self, task: TaskId) -> Result<Option<Payload>, StoreError>;

    /// How a task ended; nothing if it has not.
    fn ended(&mut self, task: TaskId) -> Result<Option<Ended>, StoreError>;

    /// The ended items of a loop `from..to`, in index order; items without a row are left out.
    fn ended_items(&mut self, step: NodeId, from: u32, to: u32) -> Result<Vec<(u32, Ended)>, StoreError>;

    /// The entries after `after`, oldest first, at most `most` and fewer if they are large; nothing if some of them are
    /// not kept any more ([`KEPT_ENTRIES`] always are).
    fn entries(&mut self, after: u64, most: usize) -> Result<Option<Vec<Arc<Entry>>>, StoreError>;

    /// What was submitted and is wanted, newest first, without payloads.
    fn submitted(&mut self, wanted: &Wanted, most: u32) -> Result<Vec<NodeRow>, StoreError>;

    /// A root and everything below it, in the order of their numbers, without payloads. Nothing if it is not there.
    fn tree(&mut self, root: NodeId) -> Result<Vec<NodeRow>, StoreError>;

    /// A root and, of a run, its own steps, in the order of their numbers, without payloads: those of flows inside it are
    /// left out. Nothing if it is not there.
    fn outline(&mut self, root: NodeId) -> Result<Vec<NodeRow>, StoreError>;

    /// The items of a loop that have a row, by their states.
    fn item_states(&mut self, step: NodeId) -> Result<Vec<InState>, StoreError>;

    /// Every version of everything that was declared and is kept.
    fn declared(&mut self) -> Result<Vec<DeclaredRow>, StoreError>;

    /// Tokens that were made and not revoked, in the order of their ids.
    fn tokens(&mut self) -> Result<Vec<TokenRow>, StoreError>;

    /// Who changed what, newest first, with numbers below `before`.
    fn audit(&mut self, before: Option<u64>, most: u32) -> Result<Vec<AuditRow>, StoreError>;

    /// The sequence number of the last entry; 0 if there was none.
    fn last(&mut self) -> Result<u64, StoreError>;

    /// How many entries are committed and not seen yet by whoever reads the tables.
    fn behind(&mut self) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// Waits until what is read holds this entry; false if it does not within `patience`.
    fn reach(&mut self, sequence: u64, patience: Duration) -> Result<bool, StoreError>;
}

/// Blocking; a shell calls it from a thread of its own.
pub trait Store: Reads {
    /// Takes the lead, if nobody else has it or the lease of who has it is over. Also the way to extend one's own:
    /// the holder of `mine` keeps its term; a server that asks without it (it was started anew, or never heard
    /// that it leads) gets a new one.
    fn lead(&mut self, server: &Name, mine: Option<u32>, lease: Span) -> Result<Option<Term>, StoreError>;

    /// Gives the lead up, so that another need not wait for the lease to end.
    fn resign(&mut self, term: u32) -> Result<(), StoreError>;

    /// All of the entry or nothing, the letters it takes out included.
    fn commit(&mut self, entry: &Entry) -> Result<Commit, StoreError>;

    /// Opens the store anew, after it was broken or could not be written.
    fn reopen(&mut self) -> Result<(), StoreError>;

    /// Says where this server can be reached, for stores that several servers share.
    fn announce(&mut self, server: &Name, contact: &Contact) -> Result<(), StoreError>;

    /// Who leads now, by the store's clock.
    fn leader(&mut self) -> Result<Option<Leader>, StoreError>;

    /// Letters after this number, in the order of their numbers, at most `most`, and no more than [`LETTERS_BYTES`] of
    /// them, but one in any case. They stay until an entry takes them
    /// out. One with a smaller number may still come, if the transaction that wrote it lasts longer: ask from the
    /// beginning now and then.
    fn letters(&mut self, after: u64, most: usize) -> Result<Vec<Letter>, StoreError>;

    /// A letter that cannot be read: kept with the reason, and never given out again.
    fn set_aside(&mut self, letter: u64, why: &str) -> Result<(), StoreError>;

    /// Deletes roots that ended before `before`, with everything below them: those that succeeded, then the others, and
    /// of each those that ended first first. It stops when it has deleted `most` rows, also in the middle of a root, and
    /// the next call goes on there. Ask again until no row goes. Of a root its items go first, then its steps and
    /// sub-runs, deepest first, and itself last: until then it is found, and how it ended can be asked. Roots with an
    /// idempotency key stay at least [`KEYS_STAY`] after their end, and those whose steps an open run reuses stay until it
    /// has ended.
    fn prune(&mut self, before: Before, most: u32) -> Result<Pruned, StoreError>;

    /// `wake` is called, from any thread, when a letter or a change of the lead may have come. Only a hint.
    fn listen(&mut self, _wake: Box<dyn Fn() + Send + Sync>) {}
}
