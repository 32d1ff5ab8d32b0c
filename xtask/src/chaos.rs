//! `cargo xtask chaos`: kills programs under load, and judges what became of their jobs.
//!
//! Like a benchmark it is a program of its own, built with `--release`: a slow program is killed before it has anything
//! to lose. It prints its ledger, and fails if a promise was broken or never put to the test.

use anyhow::Result;
use clap::Args;

use crate::need::{self, C_COMPILER};
use crate::process;

#[derive(Args)]
pub struct Options {
    /// How many kills.
    #[arg(long, default_value_t = 200)]
    times: u32,
    /// Decides when to kill.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

const CHAOS: &str = "cargo run --release --quiet --package tidegate-bench --bin chaos --";

pub fn run(options: &Options) -> Result<()> {
    need::meet([&C_COMPILER])?;
    process::run(&format!("{CHAOS} --times {} --seed {}", options.times, options.seed))
}
