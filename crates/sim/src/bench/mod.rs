//! What the core costs by itself: commands in, encoded entries out; no store, no network, no threads.
//!
//! - [`situation`]: what the waiting tasks wait for, and which commands make up a cycle.
//! - [`station`]: a core that is filled with waiting tasks and then driven, cycle by cycle, against the clock.
//! - [`clock`]: time that other programs do not take part in, and memory as the kernel counts it.
//! - [`figures`]: one situation measured at three sizes that take turns.
//!
//! Everything compared is measured in one process, in turns, so that a machine that slows down slows both sides.

pub mod clock;
pub mod figures;
pub mod situation;
pub mod station;

/// Waiting tasks at each of the sizes that take turns; the first is what the others are compared with.
pub const SIZES: [usize; 3] = [1_000, 100_000, 1_000_000];
