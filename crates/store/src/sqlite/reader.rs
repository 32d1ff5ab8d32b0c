//! A look at a store that somebody else may own. It writes nothing and takes no lock, so it is never in the way.

use super::fault::said;
use super::{Head, head, load, open};
use crate::contract::{Ended, Entry, Found, InState, Letter, Loaded, Reads, Sought, StoreError, Wanted};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::ids::{NodeId, TaskId};
use tidegate_core::protocol::{AuditRow, DeclaredRow, NodeRow, Payload, TokenRow};

/// Reads as [`Store`](crate::Store) does; each answer is of one moment between two entries.
#[derive(Debug)]
pub struct SqliteReader {
    connection: Connection,
}

impl SqliteReader {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        open::reader(path).map(|connection| SqliteReader { connection })
    }

    pub(super) fn letters(&self, after: u64, most: usize) -> Result<Vec<Letter>, StoreError> {
        load::letters(&self.connection, after, most).map_err(said)
    }

    /// What the file says about its last entry and its leader.
    pub(super) fn head(&self) -> Result<Head, StoreError> {
        head(&self.connection).map_err(said)
    }
}

impl Reads for SqliteReader {
    fn find(&mut self, sought: &[Sought]) -> Result<Vec<Option<Found>>, StoreError> {
        load::find(&self.connection, sought).map_err(said)
    }

    fn load(&mut self) -> Result<Loaded, StoreError> {
        load::load(&mut self.connection, None).map_err(said)
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

    fn entries(&mut self, after: u64, most: usize) -> Result<Option<Vec<Arc<Entry>>>, StoreError> {
        load::entries(&mut self.connection, after, most).map_err(said)
    }

    fn submitted(&mut self, wanted: &Wanted, most: u32) -> Result<Vec<NodeRow>, StoreError> {
        load::submitted(&self.connection, wanted, most).map_err(said)
    }

    fn tree(&mut self, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
        load::tree(&self.connection, root).map_err(said)
    }

    fn outline(&mut self, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
        load::outline(&self.connection, root).map_err(said)
    }

    fn item_states(&mut self, step: NodeId) -> Result<Vec<InState>, StoreError> {
        load::item_states(&self.connection, step).map_err(said)
    }

    fn declared(&mut self) -> Result<Vec<DeclaredRow>, StoreError> {
        load::declared(&self.connection).map_err(said)
    }

    fn tokens(&mut self) -> Result<Vec<TokenRow>, StoreError> {
        load::tokens(&self.connection).map_err(said)
    }

    fn audit(&mut self, before: Option<u64>, most: u32) -> Result<Vec<AuditRow>, StoreError> {
        load::audit(&self.connection, before, most).map_err(said)
    }

    fn last(&mut self) -> Result<u64, StoreError> {
        load::sequence(&self.connection).map_err(said)
    }

    /// Every look is at the last commit, so there is nothing to wait for.
    fn reach(&mut self, sequence: u64, _patience: Duration) -> Result<bool, StoreError> {
        load::sequence(&self.connection).map(|last| last >= sequence).map_err(said)
    }
}
