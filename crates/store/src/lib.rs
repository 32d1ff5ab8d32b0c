//! Stores: the contract, and what keeps it. The only place with SQL about our own state.

pub mod contract;

pub use contract::{Commit, Ended, Entry, Loaded, Store, StoreError, Term};
