//! A store in one SQLite file, for one process that owns it and any number that read it.
//!
//! Writes are applied directly: one transaction an entry, flushed to the disk before it is answered. Ownership is a
//! lock that the operating system drops with the process, so there is no lease to wait for, and whoever opens the
//! file may lead. A handle that met a full or broken disk refuses everything until it is opened anew: what its cache
//! believes and what the disk holds may differ, and only a fresh connection finds out. The lock is kept meanwhile.

mod address;
mod apply;
mod attempts;
mod backup;
mod columns;
mod fault;
mod load;
mod lock;
mod migrations;
mod open;
mod presence;
mod prune;
mod reader;
mod shared;
#[cfg(test)]
mod tests;

pub use backup::BackupError;
pub use presence::Presence;
pub use reader::SqliteReader;
pub use shared::SharedSqliteStore;

use crate::contract::{
    Commit, Contact, Ended, Entry, Found, InState, Leader, Letter, Loaded, Pruned, Reads, Sought, Store,
    StoreError, Term, Wanted,
};
use crate::retention::Before;
use columns::{signed, unsigned};
use lock::Lock;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::{AuditRow, DeclaredRow, NodeRow, Payload, TokenRow};
use tidegate_core::time::{Moment, Span};

/// The statement in `sql/sqlite/<name>.sql`.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/sqlite/", $name, ".sql"))
    };
}
pub(crate) use sql;

/// The owner's handle.
#[derive(Debug)]
pub struct SqliteStore {
    /// Closed before the lock is let go, and at once when it cannot be trusted any more; then this is why.
    connection: Result<Connection, StoreError>,
    path: PathBuf,
    _lock: Lock,
}

/// What the file says about its last entry and its leader.
struct Head {
    sequence: u64,
    batch: String,
    term: u32,
    server: Option<Name>,
}

impl Head {
    /// Whether this entry is the last one.
    fn is(&self, entry: &Entry) -> bool {
        entry.sequence == self.sequence && batch(entry) == self.batch
    }
}

fn batch(entry: &Entry) -> String {
    format!("{:032x}", entry.batch)
}

impl SqliteStore {
    /// Opens a store, and makes it if it is not there. It is this process's alone until the handle is dropped.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let lock = Lock::take(path)?;
        let connection = Ok(open::owner(path)?);
        Ok(SqliteStore { connection, path: path.to_owned(), _lock: lock })
    }

    /// Opens a store to look at it, whether or not somebody owns it. One that an earlier version left is brought forward
    /// first, if nobody owns it.
    pub fn open_reader(path: impl AsRef<Path>) -> Result<SqliteReader, StoreError> {
        let path = path.as_ref();
        match SqliteReader::open(path) {
            Err(older @ StoreError::Older { .. }) => {
                drop(SqliteStore::open(path).map_err(|_| older)?);
                SqliteReader::open(path)
            }
            opened => opened,
        }
    }

    /// Leaves something to be submitted by whoever owns the store, from any process.
    pub fn post(path: impl AsRef<Path>, id: RunId, content: &[u8]) -> Result<(), StoreError> {
        let connection = open::visitor(path.as_ref())?;
        connection.execute(sql!("letter_add"), (id.to_string(), content)).map(drop).map_err(fault::said)
    }

    /// Copies a store as it is at one moment, while whoever owns it goes on. A file that is there already is left alone,
    /// unless it is to be replaced.
    pub fn backup(path: impl AsRef<Path>, to: impl AsRef<Path>, replace: bool) -> Result<(), BackupError> {
        backup::backup(path.as_ref(), to.as_ref(), replace)
    }

    /// How many roots [`Store::prune`] would delete, whether or not somebody owns the store.
    pub fn count_prunable(path: impl AsRef<Path>, before: Before) -> Result<u64, StoreError> {
        prune::count(&open::reader(path.as_ref())?, before, wall_clock()).map_err(fault::said)
    }

    /// Works on the file, unless the connection is closed, and closes it if it cannot be trusted afterwards.
    fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let connection = self.connection.as_mut().map_err(|why| why.clone())?;
        work(connection).map_err(fault::said).inspect_err(|error| {
            if !matches!(error, StoreError::Unknown(_)) {
                self.connection = Err(error.clone());
            }
        })
    }
}

impl Store for SqliteStore {
    /// Never refused: who has the file has the lead, for as long as it likes.
    fn lead(&mut self, server: &Name, mine: Option<u32>, _lease: Span) -> Result<Option<Term>, StoreError> {
        let (term, clean) = self.with(|connection| {
            let transaction = begin(connection)?;
            let head = head(&transaction)?;
            let clean = head.server.is_none();
            if head.server.is_some() && mine == Some(head.term) {
                return Ok((head.term, clean));
            }
            let term = head.term + 1;
            transaction.prepare_cached(sql!("lead"))?.execute((term, server.as_str()))?;
            transaction.commit().map(|()| (term, clean))
        })?;
        Ok(Some(Term { term, clock: wall_clock(), alone: true, clean }))
    }

    fn resign(&mut self, term: u32) -> Result<(), StoreError> {
        self.with(|connection| connection.prepare_cached(sql!("resign"))?.execute([term]).map(drop))
    }

    fn commit(&mut self, entry: &Entry) -> Result<Commit, StoreError> {
        self.with(|connection| {
            let transaction = begin(connection)?;
            let last = head(&transaction)?;
            if last.is(entry) {
                return Ok(Commit::Done);
            }
            if last.server.is_none() || entry.term != last.term {
                return Ok(Commit::Deposed);
            }
            if entry.sequence != last.sequence + 1 {
                return Ok(Commit::Foreign);
            }
            apply::apply(&transaction, entry, &batch(entry))?;
            transaction.commit().map(|()| Commit::Done)
        })
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        self.connection = open::owner(&self.path);
        self.connection.as_ref().map(drop).map_err(StoreError::clone)
    }

    /// There is one server, and whoever wants to reach it looks beside the file.
    fn announce(&mut self, _server: &Name, _contact: &Contact) -> Result<(), StoreError> {
        Ok(())
    }

    fn leader(&mut self) -> Result<Option<Leader>, StoreError> {
        let server = self.with(|connection| head(connection).map(|head| head.server))?;
        Ok(server.map(|server| Leader { server, contact: None }))
    }

    fn letters(&mut self, after: u64, most: usize) -> Result<Vec<Letter>, StoreError> {
        self.with(|connection| load::letters(connection, after, most))
    }

    fn set_aside(&mut self, letter: u64, why: &str) -> Result<(), StoreError> {
        self.with(|connection| {
            connection.prepare_cached(sql!("letter_set_aside"))?.execute((signed(letter), why)).map(drop)
        })
    }

    fn prune(&mut self, before: Before, most: u32) -> Result<Pruned, StoreError> {
        self.with(|connection| prune::prune(connection, before, most, wall_clock()))
    }
}

impl Reads for SqliteStore {
    fn find(&mut self, sought: &[Sought]) -> Result<Vec<Option<Found>>, StoreError> {
        self.with(|connection| load::find(connection, sought))
    }

    fn load(&mut self) -> Result<Loaded, StoreError> {
        // Nobody else commits. Without help it takes longer, that is all.
        let helper = open::reader(&self.path).ok();
        self.with(|connection| load::load(connection, helper))
    }

    fn payload(&mut self, task: TaskId) -> Result<Option<Payload>, StoreError> {
        self.with(|connection| load::payload(connection, task))
    }

    fn ended(&mut self, task: TaskId) -> Result<Option<Ended>, StoreError> {
        self.with(|connection| load::ended(connection, task))
    }

    fn ended_items(&mut self, step: NodeId, from: u32, to: u32) -> Result<Vec<(u32, Ended)>, StoreError> {
        self.with(|connection| load::ended_items(connection, step, from, to))
    }

    fn entries(&mut self, after: u64, most: usize) -> Result<Option<Vec<Arc<Entry>>>, StoreError> {
        self.with(|connection| load::entries(connection, after, most))
    }

    fn submitted(&mut self, wanted: &Wanted, most: u32) -> Result<Vec<NodeRow>, StoreError> {
        self.with(|connection| load::submitted(connection, wanted, most))
    }

    fn tree(&mut self, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
        self.with(|connection| load::tree(connection, root))
    }

    fn outline(&mut self, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
        self.with(|connection| load::outline(connection, root))
    }

    fn item_states(&mut self, step: NodeId) -> Result<Vec<InState>, StoreError> {
        self.with(|connection| load::item_states(connection, step))
    }

    fn declared(&mut self) -> Result<Vec<DeclaredRow>, StoreError> {
        self.with(|connection| load::declared(connection))
    }

    fn tokens(&mut self) -> Result<Vec<TokenRow>, StoreError> {
        self.with(|connection| load::tokens(connection))
    }

    fn audit(&mut self, before: Option<u64>, most: u32) -> Result<Vec<AuditRow>, StoreError> {
        self.with(|connection| load::audit(connection, before, most))
    }

    fn last(&mut self) -> Result<u64, StoreError> {
        self.with(|connection| load::sequence(connection))
    }

    fn reach(&mut self, sequence: u64, _patience: Duration) -> Result<bool, StoreError> {
        self.with(|connection| load::sequence(connection).map(|last| last >= sequence))
    }
}

/// Takes the file's write lock at once, so that what is read in the transaction still holds when it writes.
fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

fn head(connection: &Connection) -> rusqlite::Result<Head> {
    let read = |row: &Row| {
        Ok(Head {
            sequence: unsigned(row.get(0)?),
            batch: row.get(1)?,
            term: row.get(2)?,
            server: columns::name(row, 3)?,
        })
    };
    connection.prepare_cached(sql!("head_get"))?.query_row([], read)
}

/// The machine's clock is the store's: nobody else writes here.
fn wall_clock() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment::default() + Span::from(since)
}
