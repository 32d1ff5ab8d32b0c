//! `cargo xtask chaos`: kills programs under load, and judges what became of their jobs.
//!
//! It is a program of its own, built like the simulator: fast, because a slow program is killed before it has anything to
//! lose, and with every assertion on. It prints its ledger, and fails if a promise was broken or never put to the test.

use anyhow::Result;
use clap::Args;

use crate::need::{self, C_COMPILER};
use crate::process;
use crate::services::{self, Services};

#[derive(Args)]
pub struct Options {
    /// Kills of a process that is alone; what is done to a cluster is in proportion.
    #[arg(long, default_value_t = 200)]
    times: u32,
    /// Decides what happens when.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

const BUILD: &str = "cargo build --profile sim --quiet --package tidegate-bench --bin chaos";
const CHAOS: &str = "cargo run --profile sim --quiet --package tidegate-bench --bin chaos --";

/// Built as all tests are, so that it is built once.
const RESUME: &str = "cargo nextest run --workspace --all-features --no-capture kills::";

pub fn run(options: &Options) -> Result<()> {
    need::meet([&C_COMPILER])?;
    need::meet(services::NEEDS.iter().copied())?;
    // Before the servers are up, which would otherwise wait for it.
    process::run(BUILD)?;
    let services = Services::start()?;
    let line = format!("{CHAOS} --times {} --seed {}", options.times, options.seed);
    process::run_among(&line, services.environment())?;
    // The command line is judged by its own tests.
    process::run_among(RESUME, &[("TIDEGATE_KILLS", options.times.to_string())])
}
