//! Addresses of stores.

use crate::error::Error;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate_core::time::{Moment, Span};
use tidegate_engine::Reader;
use tidegate_store::{MemoryStore, PostgresStore, Reads, SqliteStore, Store};

/// Where a store keeps what it keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Memory,
    File(PathBuf),
    Postgres,
}

impl Place {
    /// Other processes may use it too: then they have to find each other.
    pub fn is_shared(&self) -> bool {
        *self == Place::Postgres
    }

    /// Copies it as it is at one moment into a file that is not there yet.
    pub fn back_up(&self, to: &Path) -> Result<(), Error> {
        match self {
            Place::Memory => Err(Error::BackupElsewhere("a store in memory has nothing to back up")),
            Place::File(path) => Ok(SqliteStore::backup(path, to, false)?),
            Place::Postgres => Err(Error::BackupElsewhere(
                "a store on PostgreSQL is backed up with the database: `pg_dump --schema=tidegate`",
            )),
        }
    }
}

/// The handles of one store: its owner's, one for the engine to read with, and one for who follows entries.
pub(crate) struct Handles {
    pub owner: Box<dyn Store>,
    pub engine: Box<dyn Reads>,
    pub reader: Reader,
    pub place: Place,
}

impl Handles {
    fn new(owner: impl Store + 'static, readers: [Box<dyn Reads>; 2], place: Place) -> Handles {
        let [engine, reader] = readers;
        Handles { owner: Box::new(owner), engine, reader: Reader::new(reader), place }
    }
}

/// Opens (or makes) the store at an address.
pub(crate) fn open(address: &str) -> Result<Handles, Error> {
    match address.split_once(':') {
        Some(("sqlite", path)) if !path.is_empty() => open_sqlite(Path::new(path)),
        Some(("postgres" | "postgresql", _)) => open_postgres(address),
        Some(("memory", "")) => Ok(open_memory()),
        _ => Err(Error::Address(address.to_owned())),
    }
}

fn open_sqlite(path: &Path) -> Result<Handles, Error> {
    let owner = SqliteStore::open(path)?;
    let reader = || SqliteStore::open_reader(path);
    Ok(Handles::new(owner, [Box::new(reader()?), Box::new(reader()?)], Place::File(path.to_owned())))
}

fn open_postgres(url: &str) -> Result<Handles, Error> {
    let owner = PostgresStore::open(url)?;
    let readers: [Box<dyn Reads>; 2] = [Box::new(owner.reader()?), Box::new(owner.reader()?)];
    Ok(Handles::new(owner, readers, Place::Postgres))
}

fn open_memory() -> Handles {
    let store = MemoryStore::new();
    store.set_clock(wall_clock(SystemTime::now()));
    let readers: [Box<dyn Reads>; 2] = [Box::new(store.handle()), Box::new(store.handle())];
    Handles::new(store, readers, Place::Memory)
}

/// A time of day in engine time, which counts like the wall clock of whoever keeps the store.
pub(crate) fn wall_clock(time: SystemTime) -> Moment {
    Moment::default() + Span::from(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}
