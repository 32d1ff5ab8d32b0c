//! Running the real binary in a directory of its own.

mod background;
mod pipe;
mod server;
mod test;

pub use server::{Server, answer};
pub use test::{Test, golden, golden_as_it_is};
