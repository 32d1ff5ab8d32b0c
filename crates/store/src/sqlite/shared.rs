//! A store in one SQLite file for several processes of one user on one machine.
//!
//! Whoever leads owns the file as [`SqliteStore`] does, and says where it is reached; the others only read, until the
//! owner resigns or is gone and one of them gets the lock. The operating system drops the lock with its process, so there
//! is no lease to wait for. A leader that is stopped keeps it, and the others wait.

use super::reader::SqliteReader;
use super::{SqliteStore, address, fault, open, prune, wall_clock};
use crate::contract::{
    Commit, Contact, Ended, Entry, Found, InState, Leader, Letter, Loaded, Pruned, Reads, Sought, Store,
    StoreError, Term, Wanted,
};
use crate::retention::Before;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_core::ids::{Name, NodeId, TaskId};
use tidegate_core::protocol::{AuditRow, DeclaredRow, NodeRow, Payload, TokenRow};
use tidegate_core::time::Span;

/// How long whoever has the lock may take to say where it is reached, and how soon to look again.
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// One process's handle.
#[derive(Debug)]
pub struct SharedSqliteStore {
    path: PathBuf,
    /// While it leads, or is about to.
    owner: Option<SqliteStore>,
    reader: SqliteReader,
    /// Where this process is reached.
    announced: Option<(Name, Contact)>,
}

impl SharedSqliteStore {
    /// Opens a store, and makes it if it is not there. If another process has it and does not share it, it is in use.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (owner, reader) = match SqliteStore::open(path) {
                Ok(owner) => (Some(owner), Some(SqliteReader::open(path)?)),
                Err(StoreError::InUse(who)) => (None, follow(path, who, Instant::now() >= deadline)?),
                Err(error) => return Err(error),
            };
            if let Some(reader) = reader {
                return Ok(SharedSqliteStore { path: path.to_owned(), owner, reader, announced: None });
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn reads(&mut self) -> &mut dyn Reads {
        match &mut self.owner {
            Some(owner) => owner,
            None => &mut self.reader,
        }
    }

    /// If it cannot be said, nobody joins; whoever comes is told that the store is in use.
    fn say_where(&self) {
        let Some((server, contact)) = &self.announced else { return };
        let leads = |server: &Name| self.reader.head().is_ok_and(|head| head.server.as_ref() == Some(server));
        if self.owner.is_some() && leads(server) {
            let _ = address::write(&self.path, server, contact);
        }
    }
}

/// A handle to read with, beside `who` has the lock, once it says where it is reached. Until then it may be about to make
/// the store, or about to lead.
fn follow(path: &Path, who: String, is_late: bool) -> Result<Option<SqliteReader>, StoreError> {
    let reader = match SqliteReader::open(path) {
        Ok(reader) => reader,
        Err(StoreError::Broken(_) | StoreError::Unusable(_)) if !is_late => return Ok(None),
        Err(error) => return Err(error),
    };
    match leader(path, &reader)? {
        Ok(Some(Leader { contact: Some(_), .. })) => Ok(Some(reader)),
        Ok(_) if is_late => Err(StoreError::InUse(who)),
        Ok(_) => Ok(None),
        Err(why) => Err(StoreError::InUse(format!("{who}, and {why}"))),
    }
}

/// Who leads, and how it is reached; or why what says so is not believed.
fn leader(path: &Path, reader: &SqliteReader) -> Result<Result<Option<Leader>, String>, StoreError> {
    let Some(server) = reader.head()?.server else { return Ok(Ok(None)) };
    Ok(address::read(path, &server).map(|contact| Some(Leader { server, contact })))
}

impl Drop for SharedSqliteStore {
    fn drop(&mut self) {
        if self.owner.is_some() {
            address::remove(&self.path);
        }
    }
}

impl Store for SharedSqliteStore {
    fn lead(&mut self, server: &Name, mine: Option<u32>, lease: Span) -> Result<Option<Term>, StoreError> {
        let is_new = mine.is_none();
        let owner = match self.owner.take() {
            Some(owner) => owner,
            None => match SqliteStore::open(&self.path) {
                Ok(owner) => owner,
                Err(StoreError::InUse(_)) => return Ok(None),
                Err(error) => return Err(error),
            },
        };
        let term = self.owner.insert(owner).lead(server, mine, lease)?;
        if is_new {
            self.say_where();
        }
        Ok(term.map(|term| Term { alone: false, ..term }))
    }

    fn resign(&mut self, term: u32) -> Result<(), StoreError> {
        let Some(owner) = &mut self.owner else { return Ok(()) };
        owner.resign(term)?;
        // An older term is not the one that ends here.
        if self.reader.head()?.server.is_none() {
            address::remove(&self.path);
            self.owner = None;
        }
        Ok(())
    }

    fn commit(&mut self, entry: &Entry) -> Result<Commit, StoreError> {
        match &mut self.owner {
            Some(owner) => owner.commit(entry),
            None if self.reader.head()?.is(entry) => Ok(Commit::Done),
            None => Ok(Commit::Deposed),
        }
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        match &mut self.owner {
            Some(owner) => owner.reopen(),
            None => SqliteReader::open(&self.path).map(|reader| self.reader = reader),
        }
    }

    fn announce(&mut self, server: &Name, contact: &Contact) -> Result<(), StoreError> {
        let announced = Some((server.clone(), contact.clone()));
        if self.announced != announced {
            self.announced = announced;
            self.say_where();
        }
        Ok(())
    }

    /// One whose address is not believed is one that cannot be reached.
    fn leader(&mut self) -> Result<Option<Leader>, StoreError> {
        Ok(leader(&self.path, &self.reader)?.unwrap_or_default())
    }

    fn letters(&mut self, after: u64, most: usize) -> Result<Vec<Letter>, StoreError> {
        match &mut self.owner {
            Some(owner) => owner.letters(after, most),
            None => self.reader.letters(after, most),
        }
    }

    fn set_aside(&mut self, letter: u64, why: &str) -> Result<(), StoreError> {
        match &mut self.owner {
            Some(owner) => owner.set_aside(letter, why),
            None => Ok(()),
        }
    }

    /// What has ended is nobody's any more: it goes beside whoever leads.
    fn prune(&mut self, before: Before, most: u32) -> Result<Pruned, StoreError> {
        match &mut self.owner {
            Some(owner) => owner.prune(before, most),
            None => {
                prune::prune(&mut open::visitor(&self.path)?, before, most, wall_clock()).map_err(fault::said)
            }
        }
    }
}

impl Reads for SharedSqliteStore {
    fn load(&mut self) -> Result<Loaded, StoreError> {
        self.reads().load()
    }

    fn find(&mut self, sought: &[Sought]) -> Result<Vec<Option<Found>>, StoreError> {
        self.reads().find(sought)
    }

    fn payload(&mut self, task: TaskId) -> Result<Option<Payload>, StoreError> {
        self.reads().payload(task)
    }

    fn ended(&mut self, task: TaskId) -> Result<Option<Ended>, StoreError> {
        self.reads().ended(task)
    }

    fn ended_items(&mut self, step: NodeId, from: u32, to: u32) -> Result<Vec<(u32, Ended)>, StoreError> {
        self.reads().ended_items(step, from, to)
    }

    fn entries(&mut self, after: u64, most: usize) -> Result<Option<Vec<Arc<Entry>>>, StoreError> {
        self.reads().entries(after, most)
    }

    fn submitted(&mut self, wanted: &Wanted, most: u32) -> Result<Vec<NodeRow>, StoreError> {
        self.reads().submitted(wanted, most)
    }

    fn tree(&mut self, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
        self.reads().tree(root)
    }

    fn outline(&mut self, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
        self.reads().outline(root)
    }

    fn item_states(&mut self, step: NodeId) -> Result<Vec<InState>, StoreError> {
        self.reads().item_states(step)
    }

    fn declared(&mut self) -> Result<Vec<DeclaredRow>, StoreError> {
        self.reads().declared()
    }

    fn tokens(&mut self) -> Result<Vec<TokenRow>, StoreError> {
        self.reads().tokens()
    }

    fn audit(&mut self, before: Option<u64>, most: u32) -> Result<Vec<AuditRow>, StoreError> {
        self.reads().audit(before, most)
    }

    fn last(&mut self) -> Result<u64, StoreError> {
        self.reads().last()
    }

    fn reach(&mut self, sequence: u64, patience: Duration) -> Result<bool, StoreError> {
        self.reads().reach(sequence, patience)
    }
}
