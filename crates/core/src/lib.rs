//! The heart of Tidegate: every rule about who may start, in what order, and what comes next.
//!
//! Pure: no I/O, no clock, no randomness, no async. Commands go in with the time; answers, writes and effects
//! come out; the same commands always give the same decisions.

pub mod attempts;
pub mod ids;
pub mod model;
pub mod protocol;
pub mod time;
