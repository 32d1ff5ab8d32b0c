//! A leader that writes what a test tells it to.

use super::Backend;
use tidegate_core::ids::Name;
use tidegate_core::protocol::{ItemRow, NodeRow, Snapshot, Write};
use tidegate_core::time::{Moment, Span};
use tidegate_store::{Commit, Entry, Reads, Store};

pub const LEASE: Span = Span::seconds(10);

pub struct Ledger<B: Backend> {
    pub place: B,
    pub store: B::Store,
    pub term: u32,
    pub sequence: u64,
}

impl<B: Backend> Ledger<B> {
    /// A fresh store, led.
    pub fn open() -> Self {
        let place = B::fresh();
        let mut store = place.open();
        let term = lead(&mut store);
        Ledger { place, store, term, sequence: 0 }
    }

    /// The entry that follows the last one.
    pub fn entry(&self, writes: Vec<Write>) -> Entry {
        let sequence = self.sequence + 1;
        let batch = u128::from(sequence) << 64 | 7;
        let now = Moment(1_000 * sequence as i64);
        let (term, next) = (self.term, 10 * sequence);
        Entry { sequence, term, batch, now, next, letters: Vec::new(), digest: None, writes }
    }

    pub fn write(&mut self, writes: impl IntoIterator<Item = Write>) {
        let entry = self.entry(writes.into_iter().collect());
        assert_eq!(self.store.commit(&entry).unwrap(), Commit::Done);
        self.sequence = entry.sequence;
    }

    pub fn load(&mut self) -> Snapshot {
        let loaded = self.store.load().unwrap();
        assert_eq!(loaded.sequence, self.sequence);
        loaded.snapshot
    }

    /// The only node that is loaded.
    pub fn node(&mut self) -> NodeRow {
        let nodes = self.load().nodes;
        assert_eq!(nodes.len(), 1, "{nodes:?}");
        nodes[0].clone()
    }

    pub fn items(&mut self) -> Vec<ItemRow> {
        self.load().items
    }
}

pub fn lead(store: &mut impl Store) -> u32 {
    store.lead(&Name::new("server"), None, LEASE).unwrap().expect("nobody leads").term
}
