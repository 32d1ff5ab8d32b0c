//! A handle that only reads. Those that share a process with the store they were made from read its writes at once.

use super::overlay::Overlay;
use super::session::Session;
use super::{browse, load, read};
use crate::contract::{Ended, Entry, Found, InState, Loaded, Reads, Sought, StoreError, Wanted};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::ids::{NodeId, TaskId};
use tidegate_core::protocol::{AuditRow, DeclaredRow, NodeRow, Payload, TokenRow};

#[derive(Debug)]
pub struct PostgresReader {
    session: Session,
    overlay: Arc<Overlay>,
}

impl PostgresReader {
    pub(super) fn new(session: Session, overlay: Arc<Overlay>) -> Self {
        PostgresReader { session, overlay }
    }
}

impl Reads for PostgresReader {
    fn load(&mut self) -> Result<Loaded, StoreError> {
        load::load(&mut self.session)
    }

    fn find(&mut self, sought: &[Sought]) -> Result<Vec<Option<Found>>, StoreError> {
        read::find(&mut self.session, &self.overlay, sought)
    }

    fn payload(&mut self, task: TaskId) -> Result<Option<Payload>, StoreError> {
        read::payload_of(&mut self.session, &self.overlay, task)
    }

    fn ended(&mut self, task: TaskId) -> Result<Option<Ended>, StoreError> {
        read::ended(&mut self.session, &self.overlay, task)
    }

    fn ended_items(&mut self, step: NodeId, from: u32, to: u32) -> Result<Vec<(u32, Ended)>, StoreError> {
        read::ended_items(&mut self.session, &self.overlay, step, from, to)
    }

    fn entries(&mut self, after: u64, most: usize) -> Result<Option<Vec<Arc<Entry>>>, StoreError> {
        read::entries(&mut self.session, after, most)
    }

    fn submitted(&mut self, wanted: &Wanted, most: u32) -> Result<Vec<NodeRow>, StoreError> {
        browse::submitted(&mut self.session, &self.overlay, wanted, most)
    }

    fn tree(&mut self, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
        browse::tree(&mut self.session, &self.overlay, root)
    }

    fn outline(&mut self, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
        browse::outline(&mut self.session, &self.overlay, root)
    }

    fn item_states(&mut self, step: NodeId) -> Result<Vec<InState>, StoreError> {
        browse::item_states(&mut self.session, &self.overlay, step)
    }

    fn declared(&mut self) -> Result<Vec<DeclaredRow>, StoreError> {
        browse::declared(&mut self.session, &self.overlay)
    }

    fn tokens(&mut self) -> Result<Vec<TokenRow>, StoreError> {
        browse::tokens(&mut self.session, &self.overlay)
    }

    fn audit(&mut self, before: Option<u64>, most: u32) -> Result<Vec<AuditRow>, StoreError> {
        browse::audit(&mut self.session, &self.overlay, before, most)
    }

    fn last(&mut self) -> Result<u64, StoreError> {
        read::last(&mut self.session)
    }

    fn behind(&mut self) -> Result<u64, StoreError> {
        read::behind(&mut self.session)
    }

    fn reach(&mut self, sequence: u64, patience: Duration) -> Result<bool, StoreError> {
        read::reach(&mut self.session, &self.overlay, sequence, patience)
    }
}
