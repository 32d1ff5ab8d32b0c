//! A store in memory: the reference that every other store is compared with, and the simulator's disk.
//!
//! Handles share one state, as the servers of a cluster share a database. Time is what [`MemoryStore::set_clock`]
//! says; nothing here looks at a clock. It keeps nothing beyond the process and never answers
//! [`StoreError::Unknown`]: whoever wants lost answers puts something in between.

mod load;
mod tables;

pub use tables::Tables;

use crate::contract::{Commit, Ended, Entry, Loaded, Reads, Store, StoreError, Term};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::Payload;
use tidegate_core::time::{Moment, Span};

/// One handle on the shared state.
#[derive(Debug)]
pub struct MemoryStore {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    tables: Tables,
    clock: Moment,
    term: u32,
    /// Who holds the term. Nobody does once it was given up.
    leader: Option<Leader>,
}

#[derive(Debug)]
struct Leader {
    server: Name,
    until: Moment,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        MemoryStore { shared: Arc::default() }
    }

    /// Another handle on the same store.
    pub fn handle(&self) -> Self {
        MemoryStore { shared: self.shared.clone() }
    }

    /// Says what time it is, for all handles.
    pub fn set_clock(&self, now: Moment) {
        self.shared().clock = now;
    }

    /// Everything durable, to be compared, printed or kept.
    pub fn dump(&self) -> Tables {
        self.shared().tables.clone()
    }

    /// Who leads, by the store's clock.
    pub fn leader(&self) -> Option<Name> {
        let shared = self.shared();
        let live = |leader: &&Leader| leader.until > shared.clock;
        shared.leader.as_ref().filter(live).map(|leader| leader.server.clone())
    }

    /// A thread that panicked between two writes is a failed test already; others may still look at what it left.
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::new()
    }
}

impl Shared {
    fn lead(&mut self, server: &Name, mine: Option<u32>, lease: Span) -> Option<Term> {
        let until = self.clock + lease;
        match &mut self.leader {
            Some(leader) if mine == Some(self.term) => leader.until = until,
            // Who asks anew may have been told nothing of the term it was given: it gets another.
            Some(leader) if leader.until > self.clock && leader.server != *server => return None,
            _ => {
                self.term += 1;
                self.leader = Some(Leader { server: server.clone(), until });
            }
        }
        Some(Term { term: self.term, clock: self.clock })
    }

    fn commit(&mut self, entry: &Entry) -> Commit {
        let last = &self.tables.head;
        if (entry.sequence, entry.batch) == (last.sequence, last.batch) {
            return Commit::Done;
        }
        if self.leader.is_none() || entry.term != self.term {
            return Commit::Deposed;
        }
        if entry.sequence != last.sequence + 1 {
            return Commit::Foreign;
        }
        self.tables.apply(entry);
        Commit::Done
    }
}

impl Store for MemoryStore {
    fn lead(&mut self, server: &Name, mine: Option<u32>, lease: Span) -> Result<Option<Term>, StoreError> {
        Ok(self.shared().lead(server, mine, lease))
    }

    fn resign(&mut self, term: u32) -> Result<(), StoreError> {
        let mut shared = self.shared();
        if shared.term == term {
            shared.leader = None;
        }
        Ok(())
    }

    fn commit(&mut self, entry: &Entry) -> Result<Commit, StoreError> {
        Ok(self.shared().commit(entry))
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Reads for MemoryStore {
    fn find(&mut self, id: RunId) -> Result<Option<NodeId>, StoreError> {
        Ok(self.shared().tables.find(id))
    }

    fn load(&mut self) -> Result<Loaded, StoreError> {
        Ok(self.shared().tables.load())
    }

    fn payload(&mut self, task: TaskId) -> Result<Option<Payload>, StoreError> {
        Ok(self.shared().tables.payload(task))
    }

    fn ended(&mut self, task: TaskId) -> Result<Option<Ended>, StoreError> {
        Ok(self.shared().tables.ended(task))
    }

    fn ended_items(&mut self, step: NodeId, from: u32, to: u32) -> Result<Vec<(u32, Ended)>, StoreError> {
        Ok(self.shared().tables.ended_items(step, from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Span = Span::seconds(10);

    #[test]
    fn one_handle_leads_until_its_lease_is_over() {
        let (mut first, server) = (MemoryStore::new(), Name::new("a"));
        let (mut second, other) = (first.handle(), Name::new("b"));
        first.set_clock(Moment(1_000_000));
        let term = first.lead(&server, None, LEASE).unwrap().unwrap();
        assert_eq!(term, Term { term: 1, clock: Moment(1_000_000) });
        assert_eq!(second.lead(&other, None, LEASE).unwrap(), None);
        assert_eq!(second.leader(), Some(server.clone()));

        first.set_clock(Moment(9_000_000));
        assert_eq!(first.lead(&server, Some(1), LEASE).unwrap().unwrap().term, 1, "extended");
        first.set_clock(Moment(18_999_999));
        assert_eq!(second.lead(&other, None, LEASE).unwrap(), None);
        first.set_clock(Moment(19_000_000));
        assert_eq!(second.leader(), None);
        assert_eq!(second.lead(&other, None, LEASE).unwrap().unwrap().term, 2);
        assert_eq!(first.lead(&server, Some(1), LEASE).unwrap(), None, "too late to extend");
    }

    #[test]
    fn a_late_holder_keeps_its_term_if_nobody_took_it() {
        let (mut store, server) = (MemoryStore::new(), Name::new("a"));
        store.lead(&server, None, LEASE).unwrap();
        store.set_clock(Moment(60_000_000));
        assert_eq!(store.lead(&server, Some(1), LEASE).unwrap().unwrap().term, 1);
    }
}
