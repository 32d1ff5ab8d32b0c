//! `cargo xtask bench`: measures, and sets every figure next to its bar.
//!
//! A benchmark is a program of its own, built with `--release`: this one is a debug build, and so are its
//! dependencies. Figures go to stdout, because they are what was asked for; everything else goes to stderr.

use std::ffi::OsString;

use anyhow::Result;
use clap::Args;

use crate::need::{self, C_COMPILER};
use crate::process;
use crate::services::{self, Services};

#[derive(Args)]
pub struct Options {
    /// What to measure, everything unless told otherwise: see `--list`.
    scenarios: Vec<String>,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
    /// Smaller sizes and fewer turns: to see whether it works, not how fast.
    #[arg(long)]
    quick: bool,
    /// What there is to measure.
    #[arg(long)]
    list: bool,
    /// Also build the programs of others that do the same, and measure them.
    #[arg(long)]
    peers: bool,
}

/// Each is a package outside the workspace, with a lock file of its own.
const GRAPHILE: &str = "cargo build --release --locked --manifest-path bench-peers/graphile/Cargo.toml";

const BENCH: &str = "cargo run --release --quiet --package tidegate-bench --bin bench --";

pub fn run(options: &Options) -> Result<()> {
    need::meet([&C_COMPILER])?;
    let line = command(options);
    if options.list {
        return process::run(&line);
    }
    need::meet(services::NEEDS.iter().copied())?;
    let mut words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    if options.peers {
        let folder = process::target_folder().join("peers");
        process::run_with(GRAPHILE, &["--target-dir".as_ref(), folder.as_os_str()])?;
        words.extend(["--graphile".into(), folder.join("release/bench-peer-graphile").into_os_string()]);
    }
    let services = Services::start()?;
    process::run_words(&words, services.environment())
}

fn command(options: &Options) -> String {
    let flags = [("--json", options.json), ("--quick", options.quick), ("--list", options.list)];
    let flags = flags.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| (*flag).to_owned());
    let words: Vec<String> = flags.chain(options.scenarios.iter().cloned()).collect();
    format!("{BENCH} {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_is_handed_on() {
        let options = Options {
            scenarios: vec!["hop".into(), "high".into()],
            json: true,
            quick: true,
            list: false,
            peers: false,
        };
        assert_eq!(command(&options), format!("{BENCH} --json --quick hop high"));
    }
}
