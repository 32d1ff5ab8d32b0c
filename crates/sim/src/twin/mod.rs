//! Admission twice: the core's fast version, and a naive twin that finds everything out by looking at everybody.
//!
//! Random commands are given to both. After every one of them both must have started the same tasks in the same
//! order on the same workers, have parked the same heads in the same places, count the same units, and have
//! looked at the same number of heads. At the end everything must start. A seed says which commands.

mod fast;
mod generate;
mod naive;
mod pace;
mod scene;
mod sequence;

pub use fast::Fast;
pub use naive::Twin;
pub use pace::Pace;
pub use scene::{Bound, Command, Need, Parked, Scene, Start};
pub use sequence::{Mismatch, Stats, compare};

/// Commands of a sequence before it is drained, unless told otherwise.
pub const STEPS: usize = 120;

/// Compares `count` sequences, beginning with a seed, up to the first that differs.
pub fn run(first_seed: u64, count: u64) -> Result<Stats, Box<Mismatch>> {
    let mut stats = Stats::default();
    for seed in first_seed..first_seed + count {
        stats.add(&compare(seed, STEPS)?);
    }
    Ok(stats)
}
