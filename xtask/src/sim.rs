//! `cargo xtask sim`: many simulated worlds, or one of them told step by step, or the planted bugs.

use anyhow::{Result, bail};
use clap::Args;
use std::io::Write;
use std::time::Instant;
use tidegate_sim::campaign::{Ledger, campaign};
use tidegate_sim::world::{Watch, play};

#[derive(Args)]
pub struct Sim {
    /// How many seeds to play.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    first_seed: u64,
    /// Replays one seed and prints what happened.
    #[arg(long)]
    seed: Option<u64>,
    /// Plants bugs and prints the seed at which each was found: `all`, or the name of one.
    #[arg(long)]
    canary: Option<String>,
}

/// In so many seeds everything must have happened that is to be tested.
const ENOUGH: u64 = 1_000;

/// Seeds within which a planted bug must be found.
#[cfg(feature = "planted-bugs")]
const CANARY_SEEDS: u64 = 500;

pub fn run(sim: &Sim) -> Result<()> {
    if !cfg!(feature = "sim") {
        return again(sim);
    }
    if let Some(seed) = sim.seed {
        return replay(seed);
    }
    match &sim.canary {
        Some(name) => canaries(name),
        None => seeds(sim.first_seed, sim.seeds),
    }
}

/// Simulation wants speed and every assertion, and canaries want their bugs: a build of its own.
fn again(sim: &Sim) -> Result<()> {
    let features = if sim.canary.is_some() { "sim,planted-bugs" } else { "sim" };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = std::process::Command::new(cargo);
    command.args(["run", "--quiet", "--profile", "sim", "--package", "xtask", "--features", features, "--"]);
    command.args(std::env::args_os().skip(1));
    let status = command.status()?;
    std::process::exit(status.code().unwrap_or(1));
}

fn replay(seed: u64) -> Result<()> {
    let outcome = play(seed, None, Watch::Trace);
    let mut out = std::io::stdout().lock();
    for line in &outcome.trace {
        writeln!(out, "{line}")?;
    }
    match outcome.violation {
        Some(violation) => bail!("seed {seed}: {violation}"),
        None => {
            Ok(writeln!(out, "seed {seed}: nothing was broken in {} of virtual time", outcome.virtual_time)?)
        }
    }
}

fn seeds(first: u64, count: u64) -> Result<()> {
    let start = Instant::now();
    let ledger = campaign(first, count, None, |done| {
        if done.is_multiple_of(1_000) {
            eprintln!("{done} seeds, {:.0} s", start.elapsed().as_secs_f64());
        }
    });
    print(&ledger, start);
    if let Some((seed, violation)) = &ledger.violation {
        bail!("seed {seed}: {violation}\nreplay: cargo xtask sim --seed {seed}");
    }
    let untested = ledger.untested();
    if !untested.is_empty() && count >= ENOUGH {
        bail!("never tested while it mattered: {}", untested.join(", "));
    }
    Ok(())
}

fn print(ledger: &Ledger, start: Instant) {
    let seeds = ledger.seeds.max(1);
    let faults: u64 = ledger.faults.values().sum();
    let per_second = ledger.seeds as f64 / start.elapsed().as_secs_f64();
    println!("{} seeds, {per_second:.0} a second, {} of virtual time", ledger.seeds, ledger.virtual_time);
    println!("{} commands, {} a seed", ledger.commands, ledger.commands / seeds);
    println!("{faults} faults, {} a seed", faults / seeds);
    for (fault, times) in &ledger.faults {
        println!("  {times:>9}  {fault}");
    }
    println!("promises tested while it mattered");
    for (promise, times) in &ledger.tested {
        println!("  {times:>9}  {promise}");
    }
}

#[cfg(not(feature = "planted-bugs"))]
fn canaries(_: &str) -> Result<()> {
    bail!("this build has no planted bugs")
}

#[cfg(feature = "planted-bugs")]
fn canaries(name: &str) -> Result<()> {
    use tidegate_core::planted::Bug;
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        let bug_name = format!("{bug:?}");
        if name != "all" && name != bug_name {
            continue;
        }
        let ledger = campaign(0, CANARY_SEEDS, Some(bug), |_| {});
        match ledger.violation {
            Some((seed, violation)) => println!("{bug_name:<22} found at seed {seed:>3}: {violation}"),
            None => {
                println!("{bug_name:<22} NOT FOUND in {CANARY_SEEDS} seeds");
                missed.push(bug_name);
            }
        }
    }
    if missed.is_empty() { Ok(()) } else { bail!("not found: {}", missed.join(", ")) }
}
