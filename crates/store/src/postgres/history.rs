//! The history of a store, for who looks after it without working on it.

use super::connect::Route;
use super::session::Session;
use super::{migrations, prune};
use crate::contract::{Pruned, StoreError};
use crate::retention::Before;

/// What has ended, in the database of a URL. Servers may be at work there all the while.
#[derive(Debug)]
pub struct PostgresHistory {
    session: Session,
}

impl PostgresHistory {
    /// The tables must be there, and be those of this version.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        let mut session = Session::new(Route::parse(url)?)?;
        migrations::expect_newest(&mut session)?;
        Ok(PostgresHistory { session })
    }

    /// How many roots [`PostgresHistory::prune`] would delete.
    pub fn count_prunable(&mut self, before: Before) -> Result<u64, StoreError> {
        prune::count(&mut self.session, before)
    }

    /// As [`Store::prune`](crate::Store::prune).
    pub fn prune(&mut self, before: Before, most: u32) -> Result<Pruned, StoreError> {
        prune::prune(&mut self.session, before, most)
    }
}
