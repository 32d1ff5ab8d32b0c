//! One connection to a database, whichever it is.

use super::results::Rows;
use super::trouble::Trouble;
use super::{mysql, postgres, sqlite};
use serde_json::Value as Json;

pub(super) enum Session {
    Postgres(postgres::Session),
    Mysql(mysql::Session),
    Sqlite(sqlite::Session),
}

impl Session {
    pub(super) async fn execute(
        &mut self,
        query: &str,
        params: Vec<Json>,
        rows: Rows,
    ) -> Result<Rows, Trouble> {
        match self {
            Session::Postgres(session) => session.execute(query, params, rows).await,
            Session::Mysql(session) => session.execute(query, params, rows).await,
            Session::Sqlite(session) => session.execute(query, params, rows).await,
        }
    }

    pub(super) async fn begin(&mut self) -> Result<(), Trouble> {
        match self {
            Session::Postgres(session) => session.say("begin").await,
            Session::Mysql(session) => session.say("start transaction").await,
            // Whoever begins by reading could find later that another has written, and could not go on.
            Session::Sqlite(session) => session.say("begin immediate").await,
        }
    }

    pub(super) async fn commit(&mut self) -> Result<(), Trouble> {
        self.say("commit").await
    }

    pub(super) async fn rollback(&mut self) -> Result<(), Trouble> {
        self.say("rollback").await
    }

    async fn say(&mut self, words: &'static str) -> Result<(), Trouble> {
        match self {
            Session::Postgres(session) => session.say(words).await,
            Session::Mysql(session) => session.say(words).await,
            Session::Sqlite(session) => session.say(words).await,
        }
    }

    /// Ends what it is at, in the server.
    pub(super) async fn interrupt(&self) {
        match self {
            Session::Postgres(session) => session.interrupt().await,
            Session::Mysql(session) => session.interrupt().await,
            Session::Sqlite(session) => session.interrupt().await,
        }
    }

    /// Forgets whatever was set, opened or begun on it. False: it cannot be used again.
    pub(super) async fn reset(&mut self) -> bool {
        match self {
            Session::Postgres(session) => session.reset().await,
            Session::Mysql(session) => session.reset().await,
            // A file is opened faster than anything is cleaned up.
            Session::Sqlite(_) => false,
        }
    }

    /// Whether the server is still there, after nobody has used this for a while.
    pub(super) async fn is_alive(&mut self) -> bool {
        match self {
            Session::Postgres(session) => session.is_alive(),
            Session::Mysql(session) => session.is_alive().await,
            Session::Sqlite(_) => true,
        }
    }
}
