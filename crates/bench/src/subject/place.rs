//! Where a scenario takes place: over a file of its own, or over a database of its own.

use super::{Setting, Subject};
use crate::database::Database;
use crate::floors::ceiling;
use crate::ratio::median;
use anyhow::Result;
use std::path::PathBuf;
use tempfile::TempDir;
use tidegate_store::PostgresStore;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// SQLite. Functions need not wait for the commit of their grant.
    Embedded,
    /// PostgreSQL, which others may share: every grant waits for its commit.
    Postgres,
}

/// Commits that are measured.
const COMMITS: usize = 500;

impl Place {
    /// The name of a scenario here.
    pub fn name(self, scenario: &str) -> String {
        match self {
            Place::Embedded => scenario.to_owned(),
            Place::Postgres => format!("{scenario}-pg"),
        }
    }

    pub async fn site(self) -> Result<Site> {
        let database = match self {
            Place::Embedded => None,
            Place::Postgres => Some(Database::fresh().await?),
        };
        Ok(Site { folder: tempfile::tempdir()?, database })
    }
}

/// The place of one turn.
pub struct Site {
    folder: TempDir,
    database: Option<Database>,
}

impl Site {
    /// Where the jobs of this turn write down what they did.
    pub fn records(&self) -> PathBuf {
        self.folder.path().join("records")
    }

    pub async fn subject(&self, setting: Setting) -> Result<Subject> {
        match &self.database {
            Some(database) => Subject::open(database.url(), setting).await,
            None => Subject::embedded(self.folder.path(), setting).await,
        }
    }

    pub async fn clear(self) -> Result<()> {
        match self.database {
            Some(database) => database.drop().await,
            None => Ok(()),
        }
    }
}

/// Seconds that PostgreSQL takes for a commit in which so many jobs end and as many begin: the median.
pub async fn commit_time(jobs: usize) -> Result<f64> {
    let database = Database::fresh().await?;
    let url = database.url().to_owned();
    let times = tokio::task::spawn_blocking(move || {
        let script = ceiling::script((jobs * COMMITS) as u64, jobs)?;
        ceiling::time_commits(&mut PostgresStore::open(&url)?, &script)
    });
    let times = times.await??;
    database.drop().await?;
    Ok(median(&times))
}
