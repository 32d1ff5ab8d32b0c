//! What the store says has ended, asked of its tables and not of the engine.

use anyhow::Result;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tidegate_core::ids::RunId;

/// A row of the history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Past {
    pub order: u64,
    pub id: Option<RunId>,
    /// Nothing if it has not ended.
    pub succeeded: Option<bool>,
}

pub struct History(Mutex<Connection>);

impl History {
    pub fn of_sqlite(path: &Path) -> Result<History> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Ok(History(Mutex::new(Connection::open_with_flags(path, flags)?)))
    }

    /// Whether everything has ended.
    pub fn is_complete(&self) -> Result<bool> {
        self.ask(include_str!("../../sql/sqlite/history_is_complete.sql"))
    }

    /// How many jobs have succeeded.
    pub fn succeeded(&self) -> Result<u64> {
        let count: i64 = self.ask(include_str!("../../sql/sqlite/history_succeeded.sql"))?;
        Ok(count.cast_unsigned())
    }

    /// Every job with its place in the order of acceptance, and whether it succeeded, if it has ended.
    pub fn jobs(&self) -> Result<Vec<Past>> {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut statement = connection.prepare(include_str!("../../sql/sqlite/history_jobs.sql"))?;
        let read = |row: &rusqlite::Row| {
            let (order, id): (i64, String) = (row.get(0)?, row.get(1)?);
            Ok(Past { order: order.cast_unsigned(), id: RunId::parse(&id), succeeded: row.get(2)? })
        };
        Ok(statement.query_map([], read)?.collect::<rusqlite::Result<_>>()?)
    }

    fn ask<T: rusqlite::types::FromSql>(&self, sql: &str) -> Result<T> {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
    }
}
