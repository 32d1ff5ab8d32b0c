//! One file a scenario. Each sets its own two sides side by side and says what came out.

mod drain_embedded;
mod drain_pg;
mod enqueue;
mod hand_off;
mod hop;
mod limited;
mod load;
pub mod memory;
pub mod million;
mod pool_storm;
mod reload;
mod window;

use crate::report::Finding;
use anyhow::Result;
use std::path::PathBuf;

/// How large to measure, and with whom.
#[derive(Clone, Debug)]
pub struct Scale {
    /// A tenth of everything, to see whether it works.
    pub quick: bool,
    /// The program that takes graphile_worker through the same, if it is to be measured.
    pub graphile: Option<PathBuf>,
}

impl Scale {
    /// A number of jobs, or tasks, or steps.
    pub fn size(&self, full: u64) -> u64 {
        if self.quick { full / 10 } else { full }
    }

    /// Alternations for a bar: a bar close to 1 needs more to be told from 1.
    pub fn times(&self, bar: f64) -> usize {
        match (self.quick, (bar - 1.0).abs() <= 0.03) {
            (true, _) => 3,
            (false, true) => 15,
            (false, false) => 5,
        }
    }
}

/// A name, and what it is about.
pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
}

pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "drain-embedded", about: "no-op jobs, enqueued first, then drained, on SQLite" },
    Scenario { name: "drain-pg", about: "no-op jobs, enqueued first, then drained, on PostgreSQL" },
    Scenario { name: "enqueue", about: "submissions one by one and many at once, on SQLite" },
    Scenario { name: "limited", about: "one action with a limit of 10" },
    Scenario { name: "mixed", about: "100 actions, one of them with a limit" },
    Scenario { name: "high", about: "one action with a limit of 500" },
    Scenario { name: "million", about: "the core alone with a million tasks waiting" },
    Scenario { name: "reload", about: "a start with a million open tasks, and what they cost at rest" },
    Scenario { name: "pool-storm", about: "a run whose steps all want a pool of 4" },
    Scenario { name: "hand-off", about: "a pool of 1 from one holder to the next" },
    Scenario { name: "hop", about: "a chain of steps that do nothing" },
    Scenario { name: "window", about: "a loop over items that do nothing" },
    Scenario { name: "load", about: "a flow of 1,000 steps, from the text of its file" },
    Scenario { name: "memory", about: "a loop over many items, next to one over few" },
];

pub async fn run(name: &str, scale: &Scale) -> Result<Vec<Finding>> {
    match name {
        "drain-embedded" => drain_embedded::run(scale).await,
        "drain-pg" => drain_pg::run(scale).await,
        "enqueue" => enqueue::run(scale).await,
        "limited" => limited::limited(scale).await,
        "mixed" => limited::mixed(scale).await,
        "high" => limited::high(scale).await,
        "million" => million::run(),
        "reload" => reload::run(scale).await,
        "pool-storm" => pool_storm::run(scale).await,
        "hand-off" => hand_off::run(scale).await,
        "hop" => hop::run(scale).await,
        "window" => window::run(scale).await,
        "load" => load::run(scale),
        "memory" => memory::run(scale),
        other => anyhow::bail!("there is no scenario `{other}`"),
    }
}
