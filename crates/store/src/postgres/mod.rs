//! A store in PostgreSQL, for several servers of which one leads.
//!
//! Journal first, tables follow: a commit is one statement that adds an entry, behind a fence; the tables are brought
//! up to date afterwards, by a [projector](projector) that folds many entries into few writes. Nothing here needs a
//! session of its own, so that a pool may stand in between.

mod batch;
mod browse;
mod columns;
mod connect;
mod fault;
mod history;
mod leading;
mod listen;
mod load;
mod mailbox;
mod migrations;
mod overlay;
mod post;
mod project;
mod projector;
mod prune;
mod read;
mod reader;
mod session;
mod settings;

pub use history::PostgresHistory;
pub use post::Post;
pub use reader::PostgresReader;

use crate::codec;
use crate::contract::{
    Commit, Contact, Ended, Entry, Found, InState, Leader, Letter, Loaded, Pruned, Reads, Sought, Store,
    StoreError, Term, Wanted,
};
use crate::retention::Before;
use columns::{Uuid, signed};
use connect::Route;
use overlay::Overlay;
use session::{PATIENCE, Session};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::ids::{Name, NodeId, TaskId};
use tidegate_core::protocol::{AuditRow, DeclaredRow, NodeRow, Payload, TokenRow};
use tidegate_core::time::Span;
use tokio_postgres::types::{ToSql, Type};

/// The statement in `sql/postgres/<name>.sql`.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/postgres/", $name, ".sql"))
    };
}
pub(crate) use sql;

/// What a statement is given, with the types it expects.
type Columns<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

/// Writes that may be committed and not yet be in the tables. More wait, for a while.
const LAG: usize = 50_000;
const LAG_PATIENCE: Duration = Duration::from_millis(500);
const ENTRIES_BYTES: i64 = crate::contract::ENTRIES_BYTES as i64;

/// A server's handle.
#[derive(Debug)]
pub struct PostgresStore {
    session: Session,
    overlay: Arc<Overlay>,
}

impl PostgresStore {
    /// Opens the store in the database of this URL, and makes it if it is not there.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        let mut session = Session::new(Route::parse(url)?)?;
        migrations::migrate(&mut session)?;
        let overlay = Arc::new(Overlay::default());
        projector::start(session.another()?, overlay.clone())?;
        Ok(PostgresStore { session, overlay })
    }

    /// Opens the store to look at it, from a process that does not write.
    pub fn open_reader(url: &str) -> Result<PostgresReader, StoreError> {
        let mut session = Session::new(Route::parse(url)?)?;
        migrations::expect_newest(&mut session)?;
        Ok(PostgresReader::new(session, Arc::default()))
    }

    /// A handle for whoever reads what this one has written, on another thread.
    pub fn reader(&self) -> Result<PostgresReader, StoreError> {
        Ok(PostgresReader::new(self.session.another()?, self.overlay.clone()))
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.overlay.stop();
    }
}

impl Store for PostgresStore {
    fn lead(&mut self, server: &Name, mine: Option<u32>, lease: Span) -> Result<Option<Term>, StoreError> {
        leading::lead(&mut self.session, server, mine, lease)
    }

    fn resign(&mut self, term: u32) -> Result<(), StoreError> {
        leading::resign(&mut self.session, term)
    }

    fn commit(&mut self, entry: &Entry) -> Result<Commit, StoreError> {
        if !self.overlay.wait_for_room(LAG, LAG_PATIENCE)? {
            return Ok(Commit::Later);
        }
        let bytes = codec::encode(entry).map_err(|error| StoreError::Broken(error.to_string()))?;
        let commit = commit(&mut self.session, entry, &bytes)?;
        if commit == Commit::Done {
            self.overlay.committed(entry, bytes.len());
        }
        Ok(commit)
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        self.session.close();
        migrations::migrate(&mut self.session)
    }

    fn announce(&mut self, server: &Name, contact: &Contact) -> Result<(), StoreError> {
        leading::announce(&mut self.session, server, contact)
    }

    fn leader(&mut self) -> Result<Option<Leader>, StoreError> {
        leading::leader(&mut self.session)
    }

    fn letters(&mut self, after: u64, most: usize) -> Result<Vec<Letter>, StoreError> {
        mailbox::letters(&mut self.session, after, most)
    }

    fn set_aside(&mut self, letter: u64, why: &str) -> Result<(), StoreError> {
        mailbox::set_aside(&mut self.session, letter, why)
    }

    fn prune(&mut self, before: Before, most: u32) -> Result<Pruned, StoreError> {
        // What ended a moment ago may be meant too; what is still on its way is left for the next time.
        self.overlay.wait_for_tables(LAG_PATIENCE);
        prune::prune(&mut self.session, before, most)
    }

    fn listen(&mut self, wake: Box<dyn Fn() + Send + Sync>) {
        listen::start(self.session.route().clone(), self.overlay.clone(), wake);
    }
}

/// Sends the entry, and looks for the reason if it was not taken. The same entry under its number is as good as taken.
fn commit(session: &mut Session, entry: &Entry, bytes: &[u8]) -> Result<Commit, StoreError> {
    let (sequence, term, batch) = (signed(entry.sequence), i64::from(entry.term), Uuid(entry.batch));
    let writes = i32::try_from(entry.writes.len()).unwrap_or(i32::MAX);
    let letters: Vec<i64> = entry.letters.iter().copied().map(signed).collect();
    session.call(PATIENCE, async |client| {
        let columns: Columns = &[
            (&sequence, Type::INT8),
            (&term, Type::INT8),
            (&batch, Type::UUID),
            (&writes, Type::INT4),
            (&bytes, Type::BYTEA),
            (&letters, Type::INT8_ARRAY),
        ];
        if client.query_typed_opt(sql!("commit"), columns).await?.is_some() {
            return Ok(Commit::Done);
        }
        let row = client.query_typed_one(sql!("commit_look"), &columns[..2]).await?;
        Ok(match (row.try_get::<_, Option<Uuid>>(0)?, row.try_get(1)?) {
            (Some(found), _) if found == batch => Commit::Done,
            (_, false) => Commit::Deposed,
            (_, true) => Commit::Foreign,
        })
    })
}

impl Reads for PostgresStore {
    fn find(&mut self, sought: &[Sought]) -> Result<Vec<Option<Found>>, StoreError> {
        read::find(&mut self.session, &self.overlay, sought)
    }

    fn load(&mut self) -> Result<Loaded, StoreError> {
        let loaded = load::load(&mut self.session)?;
        self.overlay.loaded(loaded.sequence);
        Ok(loaded)
    }

    fn payload(&mut self, task: TaskId) -> Result<Option<Payload>, StoreError> {
        read::payload_of(&mut self.session, &self.overlay, task)
    }

    fn ended(&mut self, task: TaskId) -> Result<Option<Ended>, StoreError> {
        read::ended(&mut self.session, &self.overlay, task)
    }

    fn ended_items(&mut self, step: NodeId, from: u32, to: u32) -> Result<Vec<(u32, Ended)>, StoreError> {
        read::ended_items(&mut self.session, &self.overlay, step, from, to)
    }

    fn entries(&mut self, after: u64, most: usize) -> Result<Option<Vec<Arc<Entry>>>, StoreError> {
        read::entries(&mut self.session, after, most)
    }

    fn submitted(&mut self, wanted: &Wanted, most: u32) -> Result<Vec<NodeRow>, StoreError> {
        browse::submitted(&mut self.session, &self.overlay, wanted, most)
    }

    fn tree(&mut self, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
        browse::tree(&mut self.session, &self.overlay, root)
    }

    fn outline(&mut self, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
        browse::outline(&mut self.session, &self.overlay, root)
    }

    fn item_states(&mut self, step: NodeId) -> Result<Vec<InState>, StoreError> {
        browse::item_states(&mut self.session, &self.overlay, step)
    }

    fn declared(&mut self) -> Result<Vec<DeclaredRow>, StoreError> {
        browse::declared(&mut self.session, &self.overlay)
    }

    fn tokens(&mut self) -> Result<Vec<TokenRow>, StoreError> {
        browse::tokens(&mut self.session, &self.overlay)
    }

    fn audit(&mut self, before: Option<u64>, most: u32) -> Result<Vec<AuditRow>, StoreError> {
        browse::audit(&mut self.session, &self.overlay, before, most)
    }

    fn last(&mut self) -> Result<u64, StoreError> {
        read::last(&mut self.session)
    }

    fn behind(&mut self) -> Result<u64, StoreError> {
        read::behind(&mut self.session)
    }

    fn reach(&mut self, sequence: u64, patience: Duration) -> Result<bool, StoreError> {
        read::reach(&mut self.session, &self.overlay, sequence, patience)
    }
}
