//! The heart of Tidegate: every rule about who may start, in what order, and what comes next.
//!
//! Pure: no I/O, no clock, no randomness, no async. Commands go in with the time; answers, writes and effects
//! come out; the same commands always give the same decisions.

pub mod admission;
mod asked;
pub mod attempts;
mod catalog;
#[cfg(debug_assertions)]
mod checks;
mod classes;
mod commands;
mod core;
mod counts;
mod crowd;
mod declared_limits;
mod demands;
mod digest;
mod durable;
mod ended_ids;
pub mod explain;
mod family;
pub mod ids;
mod leases;
mod lines;
mod load;
mod look;
pub mod model;
mod names;
mod nodes;
mod open;
pub mod overview;
pub mod planted;
mod progress;
pub mod protocol;
pub mod state;
pub mod suggest;
#[cfg(test)]
mod testkit;
pub mod time;
mod timers;
mod workers;
mod works;

pub use asked::{Asked, Called};
pub use core::{Core, SLICE};
pub use counts::{WAIT_BOUNDS, Waits};
pub use demands::{Bound, Demand};
pub use look::{Lost, Waiting};
pub use nodes::LoopTally;
pub use progress::RESIDENT;
