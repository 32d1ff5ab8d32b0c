//! Stores: the contract, and what keeps it. The only place with SQL about our own state.

pub mod codec;
pub mod contract;
mod fold;
mod identity;
pub mod memory;
mod migrations;
pub mod postgres;
mod retention;
mod rows_of;
pub mod sqlite;
mod words;

pub use contract::{
    AUDIT_STAYS, Commit, Contact, ENTRIES_BYTES, Ended, Entry, Found, InState, KEEP_AT_LEAST, KEPT_ENTRIES,
    KEYS_STAY, LETTERS_BYTES, Leader, Letter, Loaded, Pruned, Reads, Sought, Store, StoreError, Term, Wanted,
};
pub use memory::MemoryStore;
pub use postgres::{Post, PostgresHistory, PostgresReader, PostgresStore};
pub use retention::{Before, Retention};
pub use rows_of::rows_of;
pub use sqlite::{BackupError, Presence, SharedSqliteStore, SqliteReader, SqliteStore};
