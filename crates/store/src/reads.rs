//! Reading only: what a second handle can do while somebody else writes.

use crate::contract::{Ended, Loaded, Store, StoreError};
use crate::sqlite::SqliteReader;
use tidegate_core::ids::{NodeId, TaskId};
use tidegate_core::protocol::Payload;

/// The reading half of [`Store`]; every store has it.
pub trait Reads: Send {
    fn load(&mut self) -> Result<Loaded, StoreError>;
    fn payload(&mut self, task: TaskId) -> Result<Option<Payload>, StoreError>;
    fn ended(&mut self, task: TaskId) -> Result<Option<Ended>, StoreError>;
    fn ended_items(&mut self, step: NodeId, from: u32, to: u32) -> Result<Vec<(u32, Ended)>, StoreError>;
}

impl<S: Store> Reads for S {
    fn load(&mut self) -> Result<Loaded, StoreError> {
        Store::load(self)
    }
    fn payload(&mut self, task: TaskId) -> Result<Option<Payload>, StoreError> {
        Store::payload(self, task)
    }
    fn ended(&mut self, task: TaskId) -> Result<Option<Ended>, StoreError> {
        Store::ended(self, task)
    }
    fn ended_items(&mut self, step: NodeId, from: u32, to: u32) -> Result<Vec<(u32, Ended)>, StoreError> {
        Store::ended_items(self, step, from, to)
    }
}

impl Reads for SqliteReader {
    fn load(&mut self) -> Result<Loaded, StoreError> {
        SqliteReader::load(self)
    }
    fn payload(&mut self, task: TaskId) -> Result<Option<Payload>, StoreError> {
        SqliteReader::payload(self, task)
    }
    fn ended(&mut self, task: TaskId) -> Result<Option<Ended>, StoreError> {
        SqliteReader::ended(self, task)
    }
    fn ended_items(&mut self, step: NodeId, from: u32, to: u32) -> Result<Vec<(u32, Ended)>, StoreError> {
        SqliteReader::ended_items(self, step, from, to)
    }
}
