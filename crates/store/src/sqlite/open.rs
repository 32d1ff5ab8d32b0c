//! Connections, set up for what they are for.

use super::fault::said;
use super::migrations;
use crate::contract::StoreError;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// Readers only ever make a writer wait while a crashed owner's log is recovered.
const PATIENCE: Duration = Duration::from_secs(5);
/// More than there are statements, so that each is prepared once.
const STATEMENTS: usize = 96;

/// A commit is on the disk when it returns: the log is flushed, on a Mac through the drive's cache too. Foreign keys
/// are the core's business.
const SETTINGS: &[(&str, &str)] = &[
    ("synchronous", "full"),
    ("fullfsync", "on"),
    ("checkpoint_fullfsync", "on"),
    ("foreign_keys", "off"),
    // In KiB, hence negative: the pages of a commit and of the indexes it touches; the system keeps the others.
    ("cache_size", "-16384"),
];

pub fn owner(path: &Path) -> Result<Connection, StoreError> {
    let mut connection = Connection::open(path).map_err(said)?;
    write_ahead(&connection).map_err(said)?;
    migrations::migrate(&mut connection)?;
    Ok(connection)
}

pub fn reader(path: &Path) -> Result<Connection, StoreError> {
    existing(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// For who writes a letter into a store that may be somebody else's.
pub fn visitor(path: &Path) -> Result<Connection, StoreError> {
    let connection = existing(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    set_up(&connection).map_err(said)?;
    Ok(connection)
}

fn existing(path: &Path, access: OpenFlags) -> Result<Connection, StoreError> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(said)?;
    connection.busy_timeout(PATIENCE).map_err(said)?;
    migrations::expect_newest(&connection)?;
    Ok(connection)
}

/// A log beside the file: readers see the last commit while the next one is written.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    set_up(connection)
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    SETTINGS.iter().try_for_each(|(name, value)| connection.pragma_update(None, name, value))
}
