//! Programs that are killed under load, over and over, and what became of their jobs.
//!
//! - [`application`]: a program that embeds Tidegate, submits and works; it expects to be killed. [`submitter`]: what asks
//!   for jobs in it; [`workload`]: what they are
//! - [`lane`]: one of them after the other over the same SQLite file
//! - [`cluster`]: three of them over one PostgreSQL ([`server`]), and the [`faults`] that hit them
//! - [`trail`]: what they left behind; [`ledger`]: what was done to them, and what the judge found

pub mod application;
pub mod cluster;
pub mod faults;
pub mod lane;
pub mod ledger;
pub mod server;
pub mod submitter;
pub mod trail;
pub mod workload;

use anyhow::{Context, Result, bail};
use faults::Doses;
use lane::Lane;
use ledger::Ledger;
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};
use tidegate_core::ids::RunId;

/// Kills of which something rare must have come.
const MANY: u32 = 100;

/// The id of a job, the same for every attempt to submit it.
pub fn run_id(number: u64) -> RunId {
    RunId(0x0199_0000_0000 << 80 | 7 << 76 | u128::from(number))
}

/// The number of the job that was submitted under this id.
pub fn number(id: RunId) -> u64 {
    id.0 as u64
}

/// Does all of it, prints what came of it, and fails if that was not good.
pub fn campaign(kills: u32, lanes: u32, seed: u64) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let played = play(folder.path(), kills, lanes, seed);
    if played.is_err() {
        eprintln!("what the jobs wrote down is in {}", folder.keep().display());
    }
    played
}

fn play(folder: &Path, kills: u32, lanes: u32, seed: u64) -> Result<()> {
    let embedded = embedded(folder, kills, lanes, seed)?;
    print!("{embedded}");
    let cluster = faults::play(&made(folder.join("cluster"))?, Doses::beside(kills), seed)?;
    print!("{cluster}");
    embedded.judge(kills >= MANY)?;
    cluster.judge(kills >= MANY)
}

fn made(folder: PathBuf) -> Result<PathBuf> {
    std::fs::create_dir(&folder)?;
    Ok(folder)
}

/// Kills that many times, in so many lanes side by side.
fn embedded(folder: &Path, kills: u32, lanes: u32, seed: u64) -> Result<Ledger> {
    let mut ledgers = Vec::new();
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..lanes)
            .map(|number| {
                let kills = kills / lanes + u32::from(number < kills % lanes);
                scope.spawn(move || {
                    let folder = made(folder.join(format!("lane-{number}")))?;
                    Lane::new(&folder, seed.wrapping_add(u64::from(number)))?.play(&folder, kills)
                })
            })
            .collect();
        ledgers.extend(running.into_iter().map(|lane| lane.join()));
    });
    let mut sum = Ledger::new("one process over SQLite");
    for ledger in ledgers {
        sum.add(ledger.ok().context("a lane panicked")??);
    }
    Ok(sum)
}

fn signal(child: &Child, signal: Signal) -> Result<()> {
    Ok(kill_process(Pid::from_child(child), signal)?)
}

/// Waits until a process has ended by itself, which it must do well and in time.
fn exit_within(child: &mut Child, patience: Duration) -> Result<()> {
    let begin = Instant::now();
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => bail!("it ended with {status}"),
            None if begin.elapsed() > patience => {
                child.kill()?;
                child.wait()?;
                bail!("it did not end in {patience:?}");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_known_by_the_id_it_was_submitted_under() {
        assert_eq!(number(run_id(123_456)), 123_456);
    }
}
