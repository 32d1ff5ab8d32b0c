//! A store in memory: the reference that every other store is compared with, and the simulator's disk.
//!
//! Handles share one state, as the servers of a cluster share a database. Time is what [`MemoryStore::set_clock`]
//! says; nothing here looks at a clock. It keeps nothing beyond the process and never answers
//! [`StoreError::Unknown`]: whoever wants lost answers puts something in between.

mod browse;
mod load;
mod mailbox;
mod prune;
mod tables;

pub use tables::{Head, Item, Tables, Task};

use crate::contract::{
    Commit, Contact, Ended, Entry, Found, InState, KEPT_ENTRIES, Leader, Letter, Loaded, Pruned, Reads,
    Sought, Store, StoreError, Term, Wanted,
};
use crate::retention::Before;
use mailbox::Mailbox;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::{AuditRow, DeclaredRow, NodeRow, Payload, TokenRow};
use tidegate_core::time::{Moment, Span};

/// One handle on the shared state.
#[derive(Debug)]
pub struct MemoryStore {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    tables: Tables,
    /// The newest entries, oldest first.
    journal: VecDeque<Arc<Entry>>,
    mailbox: Mailbox,
    clock: Moment,
    term: u32,
    /// Who holds the term. Nobody does once it was given up.
    lead: Option<Lead>,
    contacts: BTreeMap<Name, Contact>,
    listeners: Vec<Listener>,
}

#[derive(Debug)]
struct Lead {
    server: Name,
    until: Moment,
}

#[derive(Clone)]
struct Listener(Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
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

    /// Looks at everything durable where it lies.
    pub fn look<T>(&self, at: impl FnOnce(&Tables) -> T) -> T {
        at(&self.shared().tables)
    }

    /// Leaves something to be submitted, as another program would.
    pub fn post(&self, id: RunId, content: &[u8]) {
        self.shared().mailbox.post(id, content);
        self.wake();
    }

    /// Whoever is woken may ask the store at once, so nothing is held meanwhile.
    fn wake(&self) {
        let listeners = self.shared().listeners.clone();
        listeners.iter().for_each(|listener| (listener.0)());
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
        let clean = self.lead.is_none();
        match &mut self.lead {
            Some(lead) if mine == Some(self.term) => lead.until = until,
            // Who asks anew may have been told nothing of the term it was given: it gets another.
            Some(lead) if lead.until > self.clock && lead.server != *server => return None,
            _ => {
                self.term += 1;
                self.lead = Some(Lead { server: server.clone(), until });
            }
        }
        Some(Term { term: self.term, clock: self.clock, alone: false, clean })
    }

    fn commit(&mut self, entry: &Entry) -> Commit {
        let last = &self.tables.head;
        if (entry.sequence, entry.batch) == (last.sequence, last.batch) {
            return Commit::Done;
        }
        if self.lead.is_none() || entry.term != self.term {
            return Commit::Deposed;
        }
        if entry.sequence != last.sequence + 1 {
            return Commit::Foreign;
        }
        self.tables.apply(entry);
        self.mailbox.take_out(&entry.letters);
        self.journal.push_back(Arc::new(entry.clone()));
        if self.journal.len() as u64 > KEPT_ENTRIES {
            self.journal.pop_front();
        }
        Commit::Done
    }

    fn leader(&self) -> Option<Leader> {
        let lead = self.lead.as_ref().filter(|lead| lead.until > self.clock)?;
        Some(Leader { server: lead.server.clone(), contact: self.contacts.get(&lead.server).cloned() })
    }

    fn entries(&self, after: u64, most: usize) -> Option<Vec<Arc<Entry>>> {
        let first = self.journal.front().map_or(self.tables.head.sequence + 1, |entry| entry.sequence);
        let skipped = (after + 1).checked_sub(first)?;
        Some(self.journal.iter().skip(skipped as usize).take(most).cloned().collect())
    }
}

impl Store for MemoryStore {
    fn lead(&mut self, server: &Name, mine: Option<u32>, lease: Span) -> Result<Option<Term>, StoreError> {
        let (before, term) = {
            let mut shared = self.shared();
            (shared.term, shared.lead(server, mine, lease))
        };
        if term.as_ref().is_some_and(|term| term.term != before) {
            self.wake();
        }
        Ok(term)
    }

    fn resign(&mut self, term: u32) -> Result<(), StoreError> {
        let is_its = self.shared().term == term;
        if is_its {
            self.shared().lead = None;
            self.wake();
        }
        Ok(())
    }

    fn commit(&mut self, entry: &Entry) -> Result<Commit, StoreError> {
        Ok(self.shared().commit(entry))
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn announce(&mut self, server: &Name, contact: &Contact) -> Result<(), StoreError> {
        self.shared().contacts.insert(server.clone(), contact.clone());
        Ok(())
    }

    fn leader(&mut self) -> Result<Option<Leader>, StoreError> {
        Ok(self.shared().leader())
    }

    fn letters(&mut self, after: u64, most: usize) -> Result<Vec<Letter>, StoreError> {
        Ok(self.shared().mailbox.letters(after, most))
    }

    fn set_aside(&mut self, letter: u64, why: &str) -> Result<(), StoreError> {
        self.shared().mailbox.set_aside(letter, why);
        Ok(())
    }

    fn prune(&mut self, before: Before, most: u32) -> Result<Pruned, StoreError> {
        let mut shared = self.shared();
        let clock = shared.clock;
        Ok(shared.tables.prune(before, most, clock))
    }

    fn listen(&mut self, wake: Box<dyn Fn() + Send + Sync>) {
        self.shared().listeners.push(Listener(wake.into()));
    }
}

impl Reads for MemoryStore {
    fn find(&mut self, sought: &[Sought]) -> Result<Vec<Option<Found>>, StoreError> {
        let shared = self.shared();
        Ok(sought.iter().map(|sought| shared.tables.find(sought)).collect())
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

    fn entries(&mut self, after: u64, most: usize) -> Result<Option<Vec<Arc<Entry>>>, StoreError> {
        Ok(self.shared().entries(after, most))
    }

    fn submitted(&mut self, wanted: &Wanted, most: u32) -> Result<Vec<NodeRow>, StoreError> {
        Ok(self.shared().tables.submitted(wanted, most))
    }

    fn tree(&mut self, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
        Ok(self.shared().tables.rows_of(root))
    }

    fn outline(&mut self, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
        Ok(self.shared().tables.outline(root))
    }

    fn item_states(&mut self, step: NodeId) -> Result<Vec<InState>, StoreError> {
        Ok(self.shared().tables.item_states(step))
    }

    fn declared(&mut self) -> Result<Vec<DeclaredRow>, StoreError> {
        Ok(self.shared().tables.declared.clone())
    }

    fn tokens(&mut self) -> Result<Vec<TokenRow>, StoreError> {
        Ok(self.shared().tables.tokens.values().cloned().collect())
    }

    fn audit(&mut self, before: Option<u64>, most: u32) -> Result<Vec<AuditRow>, StoreError> {
        let shared = self.shared();
        let rows = shared.tables.audit.range(..before.unwrap_or(u64::MAX)).rev();
        Ok(rows.take(most as usize).map(|(_, row)| row.clone()).collect())
    }

    fn last(&mut self) -> Result<u64, StoreError> {
        Ok(self.shared().tables.head.sequence)
    }

    fn reach(&mut self, sequence: u64, _patience: Duration) -> Result<bool, StoreError> {
        Ok(self.shared().tables.head.sequence >= sequence)
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
        assert_eq!(term, Term { term: 1, clock: Moment(1_000_000), alone: false, clean: true });
        assert_eq!(second.lead(&other, None, LEASE).unwrap(), None);
        let leader = Leader { server: server.clone(), contact: None };
        assert_eq!(second.leader().unwrap(), Some(leader));

        first.set_clock(Moment(9_000_000));
        assert_eq!(first.lead(&server, Some(1), LEASE).unwrap().unwrap().term, 1, "extended");
        first.set_clock(Moment(18_999_999));
        assert_eq!(second.lead(&other, None, LEASE).unwrap(), None);
        first.set_clock(Moment(19_000_000));
        assert_eq!(second.leader().unwrap(), None);
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
