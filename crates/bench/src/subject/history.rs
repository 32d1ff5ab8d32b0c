//! What the store says has ended, asked of its tables and not of the engine.

use anyhow::Result;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tidegate_core::ids::RunId;
use tokio_postgres::NoTls;

/// A row of the history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Past {
    pub order: u64,
    pub id: Option<RunId>,
    /// Nothing if it has not ended.
    pub succeeded: Option<bool>,
}

/// Asked of the file, or of the server.
pub enum History {
    Sqlite(Mutex<Connection>),
    Postgres(tokio_postgres::Client),
}

impl History {
    pub fn of_sqlite(path: &Path) -> Result<History> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Ok(History::Sqlite(Mutex::new(Connection::open_with_flags(path, flags)?)))
    }

    pub async fn of_postgres(url: &str) -> Result<History> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        // It ends with the client.
        tokio::spawn(connection);
        Ok(History::Postgres(client))
    }

    /// Whether everything has ended, and so many jobs have.
    pub async fn is_complete(&self, jobs: u64) -> Result<bool> {
        match self {
            History::Sqlite(file) => ask(file, include_str!("../../sql/sqlite/history_is_complete.sql")),
            History::Postgres(client) => {
                let sql = include_str!("../../sql/postgres/history_is_complete.sql");
                Ok(client.query_one(sql, &[&jobs.cast_signed()]).await?.try_get(0)?)
            }
        }
    }

    /// How many jobs have succeeded.
    pub async fn succeeded(&self) -> Result<u64> {
        let count: i64 = match self {
            History::Sqlite(file) => ask(file, include_str!("../../sql/sqlite/history_succeeded.sql"))?,
            History::Postgres(client) => {
                let sql = include_str!("../../sql/postgres/history_succeeded.sql");
                client.query_one(sql, &[]).await?.try_get(0)?
            }
        };
        Ok(count.cast_unsigned())
    }

    /// Every job with its place in the order of acceptance, and whether it succeeded, if it has ended.
    pub fn jobs(path: &Path) -> Result<Vec<Past>> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let mut statement = connection.prepare(include_str!("../../sql/sqlite/history_jobs.sql"))?;
        let read = |row: &rusqlite::Row| {
            let (order, id): (i64, String) = (row.get(0)?, row.get(1)?);
            Ok(Past { order: order.cast_unsigned(), id: RunId::parse(&id), succeeded: row.get(2)? })
        };
        Ok(statement.query_map([], read)?.collect::<rusqlite::Result<_>>()?)
    }
}

fn ask<T: rusqlite::types::FromSql>(file: &Mutex<Connection>, sql: &str) -> Result<T> {
    let connection = file.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}
