//! YAML as a tree in which every key and value knows its place, before anybody asks what it means.
//!
//! Bounded: size, depth and the number of values (aliases expanded) all have a limit.

mod read;
mod scalar;
mod tree;

pub use read::MAX_BYTES;
pub(crate) use read::read;
pub(crate) use tree::{Entry, Node, Value, json_kind};
