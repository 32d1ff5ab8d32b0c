//! Stores: the contract, and what keeps it. The only place with SQL about our own state.

pub mod codec;
pub mod contract;
pub mod memory;
mod reads;
pub mod sqlite;

pub use contract::{Commit, Ended, Entry, Loaded, Store, StoreError, Term};
pub use memory::MemoryStore;
pub use reads::Reads;
pub use sqlite::{SqliteReader, SqliteStore};
