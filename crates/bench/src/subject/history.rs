//! What the store says has ended, asked of its tables and not of the engine.

use anyhow::Result;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tidegate_core::ids::RunId;
use tidegate_observer::Fact;
use tokio_postgres::NoTls;

/// A row of the history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Past {
    pub order: u64,
    pub id: Option<RunId>,
    /// Nothing if it has not ended.
    pub succeeded: Option<bool>,
}

impl Past {
    /// How it ended, for the observer.
    pub fn fact(&self) -> Option<Fact> {
        self.succeeded.map(|succeeded| if succeeded { Fact::Finished } else { Fact::GivenUp })
    }
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

    /// Every job in the file of a store that nobody uses any more.
    pub fn jobs_of_sqlite(path: &Path) -> Result<Vec<Past>> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let mut statement = connection.prepare(include_str!("../../sql/sqlite/history_jobs.sql"))?;
        let read = |row: &rusqlite::Row| {
            let (order, id): (i64, String) = (row.get(0)?, row.get(1)?);
            Ok(Past { order: order.cast_unsigned(), id: RunId::parse(&id), succeeded: row.get(2)? })
        };
        Ok(statement.query_map([], read)?.collect::<rusqlite::Result<_>>()?)
    }

    /// Every job in the tables of a database.
    pub async fn jobs_of_postgres(client: &tokio_postgres::Client) -> Result<Vec<Past>> {
        let rows = client.query(include_str!("../../sql/postgres/history_jobs.sql"), &[]).await?;
        let read = |row: &tokio_postgres::Row| {
            let (order, id): (i64, &str) = (row.try_get(0)?, row.try_get(1)?);
            let id = uuid::Uuid::parse_str(id).ok().map(|id| RunId(id.as_u128()));
            Ok(Past { order: order.cast_unsigned(), id, succeeded: row.try_get(2)? })
        };
        rows.iter().map(read).collect()
    }

    /// Whether whoever loads this file can compare it with what was written.
    pub fn has_digest_of_sqlite(path: &Path) -> Result<bool> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        ask(&Mutex::new(connection), include_str!("../../sql/sqlite/history_digest.sql"))
    }
}

fn ask<T: rusqlite::types::FromSql>(file: &Mutex<Connection>, sql: &str) -> Result<T> {
    let connection = file.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}
