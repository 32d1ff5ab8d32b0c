//! The stores: contract, memory, SQLite.
