//! The memory store keeps the contract.

mod conformance;

use conformance::{Backend, conformance};
use std::sync::mpsc;
use tidegate_core::ids::RunId;
use tidegate_store::{MemoryStore, Store};

struct Memory(MemoryStore);

impl Backend for Memory {
    type Store = MemoryStore;
    const SHARED: bool = true;

    fn fresh() -> Self {
        Memory(MemoryStore::new())
    }

    fn open(&self) -> MemoryStore {
        self.0.handle()
    }

    fn post(&self, id: RunId, content: &str) {
        self.0.post(id, content.as_bytes());
    }
}

conformance!(Memory);

#[test]
fn who_listens_hears_of_letters_and_leaders() {
    let place = Memory::fresh();
    let (heard, hears) = mpsc::channel();
    place.open().listen(Box::new(move || heard.send(()).unwrap()));
    assert!(hears.try_recv().is_err());
    place.post(RunId(1), "{}");
    hears.try_recv().unwrap();
    let term = conformance::ledger::lead(&mut place.open());
    hears.try_recv().unwrap();
    place.open().resign(term).unwrap();
    hears.try_recv().unwrap();
}
