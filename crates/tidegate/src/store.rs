//! Addresses of stores.

use crate::error::Error;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate_core::time::{Moment, Span};
use tidegate_engine::Reader;
use tidegate_store::{MemoryStore, PostgresStore, Reads, SharedSqliteStore, SqliteStore, Store, StoreError};

/// Where a store keeps what it keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Memory,
    File(PathBuf),
    Postgres,
}

impl Place {
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

/// How many read at once: for the engine, and for those who follow entries, who may wait for long.
const ENGINE_READS: usize = 4;
const FOLLOWERS_READ: usize = 2;

/// The handles of one store: its server's, some for the engine to read with, and some for who follows entries.
pub(crate) struct Handles {
    pub owner: Box<dyn Store>,
    pub engine: Reader,
    pub reader: Reader,
    pub place: Place,
    /// Other processes may use it too: then they have to find each other.
    pub is_shared: bool,
}

impl Handles {
    fn new<S: Store + 'static, R: Reads + 'static>(
        owner: S,
        another: impl Fn(&S) -> Result<R, StoreError>,
        place: Place,
        is_shared: bool,
    ) -> Result<Handles, Error> {
        let reader = |handles: usize| {
            let handle = |_| another(&owner).map(|handle| Box::new(handle) as Box<dyn Reads>);
            (0..handles).map(handle).collect::<Result<Vec<_>, _>>().map(Reader::from)
        };
        let (engine, reader) = (reader(ENGINE_READS)?, reader(FOLLOWERS_READ)?);
        Ok(Handles { owner: Box::new(owner), engine, reader, place, is_shared })
    }
}

/// Opens (or makes) the store at an address. A file is this process's alone unless it is to be shared.
pub(crate) fn open(address: &str, shares_file: bool) -> Result<Handles, Error> {
    match address.split_once(':') {
        // SQLite would make one for each of the handles, and none of them would last.
        Some(("sqlite", ":memory:")) => Err(Error::Address(address.to_owned())),
        Some(("sqlite", path)) if !path.is_empty() && shares_file => open_shared_sqlite(Path::new(path)),
        Some(("sqlite", path)) if !path.is_empty() => open_sqlite(Path::new(path)),
        Some(("postgres" | "postgresql", _)) => open_postgres(address),
        Some(("memory", "")) => open_memory(),
        _ => Err(Error::Address(address.to_owned())),
    }
}

fn open_sqlite(path: &Path) -> Result<Handles, Error> {
    let another = |_: &SqliteStore| SqliteStore::open_reader(path);
    Handles::new(SqliteStore::open(path)?, another, Place::File(path.to_owned()), false)
}

fn open_shared_sqlite(path: &Path) -> Result<Handles, Error> {
    let another = |_: &SharedSqliteStore| SqliteStore::open_reader(path);
    Handles::new(SharedSqliteStore::open(path)?, another, Place::File(path.to_owned()), true)
}

fn open_postgres(url: &str) -> Result<Handles, Error> {
    Handles::new(PostgresStore::open(url)?, PostgresStore::reader, Place::Postgres, true)
}

fn open_memory() -> Result<Handles, Error> {
    let store = MemoryStore::new();
    store.set_clock(wall_clock(SystemTime::now()));
    Handles::new(store, |store| Ok(store.handle()), Place::Memory, false)
}

/// A time of day in engine time, which counts like the wall clock of whoever keeps the store.
pub(crate) fn wall_clock(time: SystemTime) -> Moment {
    Moment::default() + Span::from(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}
