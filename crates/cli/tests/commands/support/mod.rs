//! Running the real binary in a directory of its own.

mod background;
mod pipe;
mod test;

pub use test::{Test, golden};
