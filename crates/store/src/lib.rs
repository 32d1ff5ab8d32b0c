//! Stores: the contract, and what keeps it. The only place with SQL about our own state.

pub mod codec;
pub mod contract;
pub mod memory;
pub mod sqlite;

pub use contract::{Commit, Ended, Entry, Loaded, Reads, Store, StoreError, Term};
pub use memory::MemoryStore;
pub use sqlite::{SqliteReader, SqliteStore};
