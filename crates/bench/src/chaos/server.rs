//! The PostgreSQL that a cluster shares: stopped, started again, and asked who leads.

use crate::database::{Database, connect};
use crate::subject::{History, Past};
use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};
use tokio::runtime::Runtime;

/// A command line that stops and starts the server, once it is told which: `cargo xtask` knows how it was started.
const CONTROL: &str = "TIDEGATE_TEST_POSTGRES_CONTROL";

pub struct Server {
    runtime: Runtime,
    /// Of a database that is dropped with the server.
    url: String,
    control: String,
}

/// Who leads, and since when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leader {
    pub name: String,
    pub term: u64,
}

/// What the journal says about those who wrote it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// Entries of the newest term.
    pub newest: u64,
    /// Entries that follow one of a later term than their own.
    pub too_late: u64,
}

impl Server {
    pub fn with_fresh_database() -> Result<Server> {
        let control = std::env::var(CONTROL)
            .with_context(|| format!("{CONTROL} says nothing: use `cargo xtask chaos`"))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let url = runtime.block_on(Database::fresh())?.url().to_owned();
        Ok(Server { runtime, url, control })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// As if its machine had lost its power: nothing is finished, nothing is put away.
    pub fn stop_at_once(&self) -> Result<()> {
        self.control(&["stop", "--mode=immediate"])
    }

    /// Until it answers again.
    pub fn start(&self) -> Result<()> {
        self.control(&["start"])
    }

    fn control(&self, what: &[&str]) -> Result<()> {
        let mut words = self.control.split_whitespace();
        let mut command = Command::new(words.next().context("the command line is empty")?);
        let status = command.args(words).args(what).stdin(Stdio::null()).status()?;
        ensure!(status.success(), "`{} {}` ended with {status}", self.control, what.join(" "));
        Ok(())
    }

    pub fn leader(&self) -> Result<Option<Leader>> {
        self.runtime.block_on(async {
            let client = connect(&self.url).await?;
            let row = client.query_opt(include_str!("../../sql/postgres/leader.sql"), &[]).await?;
            let Some(row) = row else { return Ok(None) };
            let (name, term): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
            Ok(Some(Leader { name, term: term.cast_unsigned() }))
        })
    }

    pub fn terms(&self) -> Result<Terms> {
        self.runtime.block_on(async {
            let client = connect(&self.url).await?;
            let row = client.query_one(include_str!("../../sql/postgres/journal_terms.sql"), &[]).await?;
            let count = |column: usize| row.try_get(column).map(i64::cast_unsigned);
            Ok(Terms { newest: count(0)?, too_late: count(1)? })
        })
    }

    /// What the store says, once nobody uses it any more.
    pub fn history(&self) -> Result<Vec<Past>> {
        self.runtime.block_on(async {
            let client = connect(&self.url).await?;
            let sql = include_str!("../../sql/postgres/history_digest.sql");
            let has_digest: bool = client.query_one(sql, &[]).await?.try_get(0)?;
            ensure!(has_digest, "what was written was never compared");
            History::jobs_of_postgres(&client).await
        })
    }
}
