//! `cargo xtask bench`: measures, and sets every figure next to its bar.
//!
//! A benchmark is a program of its own, built with `--release`: this one is a debug build, and so are its
//! dependencies. Figures go to stdout, because they are what was asked for; everything else goes to stderr.

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::process;

#[derive(Args)]
pub struct Options {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Commands a second of the core alone, with a thousand to a million tasks waiting.
    Core {
        /// One JSON object a line instead of a table.
        #[arg(long)]
        json: bool,
    },
}

const CORE: &str = "cargo run --release --quiet --package tidegate-sim --example bench_core --";

pub fn run(options: &Options) -> Result<()> {
    match options.bench {
        Bench::Core { json } => process::run(&format!("{CORE}{}", if json { " --json" } else { "" })),
    }
}
