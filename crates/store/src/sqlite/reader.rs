//! A look at a store that somebody else may own. It writes nothing and takes no lock, so it is never in the way.

use super::fault::said;
use super::{load, open};
use crate::contract::{Ended, Loaded, Reads, StoreError};
use rusqlite::Connection;
use std::path::Path;
use tidegate_core::ids::{NodeId, RunId, TaskId};
use tidegate_core::protocol::Payload;

/// Reads as [`Store`](crate::Store) does; each answer is of one moment between two entries.
#[derive(Debug)]
pub struct SqliteReader {
    connection: Connection,
}

impl SqliteReader {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        open::reader(path).map(|connection| SqliteReader { connection })
    }
}

impl Reads for SqliteReader {
    fn find(&mut self, id: RunId) -> Result<Option<NodeId>, StoreError> {
        load::find(&self.connection, id).map_err(said)
    }

    fn load(&mut self) -> Result<Loaded, StoreError> {
        load::load(&mut self.connection).map_err(said)
    }

    fn payload(&mut self, task: TaskId) -> Result<Option<Payload>, StoreError> {
        load::payload(&self.connection, task).map_err(said)
    }

    fn ended(&mut self, task: TaskId) -> Result<Option<Ended>, StoreError> {
        load::ended(&self.connection, task).map_err(said)
    }

    fn ended_items(&mut self, step: NodeId, from: u32, to: u32) -> Result<Vec<(u32, Ended)>, StoreError> {
        load::ended_items(&self.connection, step, from, to).map_err(said)
    }
}
