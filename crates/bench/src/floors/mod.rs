//! The same work by plain programs: what there is to reach.
//!
//! - [`sqlite`]: rows inserted and updated in groups, by nobody who decides anything
//! - [`postgres`]: the same over one connection to PostgreSQL
//! - [`ceiling`]: the very commits of an engine, issued by a loop

pub mod ceiling;
pub mod postgres;
pub mod sqlite;

use std::time::Duration;

/// How many rows or jobs a commit may hold. A floor is the best of these.
pub const GROUPS: [usize; 6] = [100, 200, 500, 1_000, 2_000, 5_000];

/// How long the two halves of the lives of some jobs took.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Halves {
    /// Until all were accepted.
    pub enqueue: Duration,
    /// Then until all had ended.
    pub drain: Duration,
}

impl Halves {
    /// Jobs a second over their whole lives.
    pub fn life_rate(self, jobs: u64) -> f64 {
        jobs as f64 / (self.enqueue + self.drain).as_secs_f64()
    }

    pub fn enqueue_rate(self, jobs: u64) -> f64 {
        jobs as f64 / self.enqueue.as_secs_f64()
    }

    pub fn drain_rate(self, jobs: u64) -> f64 {
        jobs as f64 / self.drain.as_secs_f64()
    }
}

/// The group size with which `rate` is best.
pub async fn best_group(mut rate: impl AsyncFnMut(usize) -> anyhow::Result<f64>) -> anyhow::Result<usize> {
    let mut best = (GROUPS[0], 0.0);
    for group in GROUPS {
        let found = rate(group).await?;
        if found > best.1 {
            best = (group, found);
        }
    }
    Ok(best.0)
}
