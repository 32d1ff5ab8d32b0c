//! A store that does not always do what it is asked to.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tidegate_core::ids::{Name, NodeId, TaskId};
use tidegate_core::protocol::{AuditRow, DeclaredRow, NodeRow, Payload, TokenRow};
use tidegate_core::time::Span;
use tidegate_store::{
    Before, Commit, Contact, Ended, Entry, Found, InState, Leader, Letter, Loaded, MemoryStore, Pruned,
    Reads, Sought, Store, StoreError, Term, Wanted,
};

/// A disk that can be full. As with SQLite, a handle that met this works again only once it was opened anew.
pub struct Disk {
    pub store: MemoryStore,
    pub is_full: Arc<AtomicBool>,
    is_shut: bool,
    pub opened: Arc<AtomicU32>,
    pub gate: Arc<Gate>,
    /// It has more to do than it can, and puts commits off.
    pub is_behind: Arc<AtomicBool>,
}

/// What commits pass, as many as a test lets through.
#[derive(Default)]
pub struct Gate {
    /// Nothing: all may pass.
    allowed: Mutex<Option<u32>>,
    changed: Condvar,
}

impl Gate {
    /// From now on only so many more may pass.
    pub fn allow(&self, commits: u32) {
        *self.allowed.lock().unwrap() = Some(commits);
        self.changed.notify_all();
    }

    pub fn open(&self) {
        *self.allowed.lock().unwrap() = None;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let allowed = self.allowed.lock().unwrap();
        let mut allowed = self.changed.wait_while(allowed, |allowed| *allowed == Some(0)).unwrap();
        if let Some(left) = &mut *allowed {
            *left -= 1;
        }
    }
}

pub fn full() -> StoreError {
    StoreError::Unusable("disk full".to_owned())
}

impl Disk {
    pub fn new() -> Disk {
        Disk::over(MemoryStore::new())
    }

    pub fn over(store: MemoryStore) -> Disk {
        let (is_full, opened, gate, is_behind) = Default::default();
        Disk { store, is_full, is_shut: false, opened, gate, is_behind }
    }

    fn check(&mut self) -> Result<&mut MemoryStore, StoreError> {
        self.is_shut |= self.is_full.load(Ordering::SeqCst);
        if self.is_shut { Err(full()) } else { Ok(&mut self.store) }
    }
}

impl Reads for Disk {
    fn load(&mut self) -> Result<Loaded, StoreError> {
        self.check()?.load()
    }

    fn find(&mut self, sought: &[Sought]) -> Result<Vec<Option<Found>>, StoreError> {
        self.check()?.find(sought)
    }

    fn payload(&mut self, task: TaskId) -> Result<Option<Payload>, StoreError> {
        self.check()?.payload(task)
    }

    fn ended(&mut self, task: TaskId) -> Result<Option<Ended>, StoreError> {
        self.check()?.ended(task)
    }

    fn ended_items(&mut self, step: NodeId, from: u32, to: u32) -> Result<Vec<(u32, Ended)>, StoreError> {
        self.check()?.ended_items(step, from, to)
    }

    fn entries(&mut self, after: u64, most: usize) -> Result<Option<Vec<Arc<Entry>>>, StoreError> {
        self.check()?.entries(after, most)
    }

    fn submitted(&mut self, wanted: &Wanted, most: u32) -> Result<Vec<NodeRow>, StoreError> {
        self.check()?.submitted(wanted, most)
    }

    fn tree(&mut self, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
        self.check()?.tree(root)
    }

    fn outline(&mut self, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
        self.check()?.outline(root)
    }

    fn item_states(&mut self, step: NodeId) -> Result<Vec<InState>, StoreError> {
        self.check()?.item_states(step)
    }

    fn declared(&mut self) -> Result<Vec<DeclaredRow>, StoreError> {
        self.check()?.declared()
    }

    fn tokens(&mut self) -> Result<Vec<TokenRow>, StoreError> {
        self.check()?.tokens()
    }

    fn audit(&mut self, before: Option<u64>, most: u32) -> Result<Vec<AuditRow>, StoreError> {
        self.check()?.audit(before, most)
    }

    fn last(&mut self) -> Result<u64, StoreError> {
        self.check()?.last()
    }

    fn reach(&mut self, sequence: u64, patience: Duration) -> Result<bool, StoreError> {
        self.check()?.reach(sequence, patience)
    }
}

impl Store for Disk {
    fn lead(&mut self, server: &Name, mine: Option<u32>, lease: Span) -> Result<Option<Term>, StoreError> {
        self.check()?.lead(server, mine, lease)
    }

    fn resign(&mut self, term: u32) -> Result<(), StoreError> {
        self.check()?.resign(term)
    }

    fn commit(&mut self, entry: &Entry) -> Result<Commit, StoreError> {
        self.gate.pass();
        if self.is_behind.load(Ordering::SeqCst) {
            return Ok(Commit::Later);
        }
        self.check()?.commit(entry)
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        self.opened.fetch_add(1, Ordering::SeqCst);
        self.is_shut = false;
        self.check().map(drop)
    }

    fn announce(&mut self, server: &Name, contact: &Contact) -> Result<(), StoreError> {
        self.check()?.announce(server, contact)
    }

    fn leader(&mut self) -> Result<Option<Leader>, StoreError> {
        self.check()?.leader()
    }

    fn letters(&mut self, after: u64, most: usize) -> Result<Vec<Letter>, StoreError> {
        self.check()?.letters(after, most)
    }

    fn set_aside(&mut self, letter: u64, why: &str) -> Result<(), StoreError> {
        self.check()?.set_aside(letter, why)
    }

    fn prune(&mut self, before: Before, most: u32) -> Result<Pruned, StoreError> {
        self.check()?.prune(before, most)
    }
}
