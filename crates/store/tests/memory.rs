//! The memory store keeps the contract.

mod conformance;

use conformance::{Backend, conformance};
use tidegate_store::MemoryStore;

struct Memory(MemoryStore);

impl Backend for Memory {
    type Store = MemoryStore;

    fn fresh() -> Self {
        Memory(MemoryStore::new())
    }

    fn open(&self) -> MemoryStore {
        self.0.handle()
    }
}

conformance!(Memory);
