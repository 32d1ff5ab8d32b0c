//! Programs that are killed under load, over and over, and what became of their jobs.
//!
//! - [`application`]: a program that embeds Tidegate, submits and works; it expects to be killed
//! - [`lane`]: one of them after the other over the same store, until its jobs are drained
//! - [`ledger`]: what the kills hit, and what the judge found
//!
//! A [`Victim`] is what is killed; what is common to all of them is here and in [`lane`].

pub mod application;
pub mod lane;
pub mod ledger;

use crate::subject::Past;
use anyhow::{Context, Result};
use lane::Lane;
use ledger::Ledger;
use std::process::Child;
use tidegate_core::ids::RunId;
use tidegate_observer::Case;

/// Something that can be started, killed and started again over what it left.
pub trait Victim: Send {
    /// Goes on from what was asked for and acknowledged before.
    fn start(&self, orders: &Orders) -> Result<Child>;

    /// What the store says, once nobody uses it any more.
    fn history(&self) -> Result<Vec<Past>>;

    /// What is promised about its jobs.
    fn case(&self) -> Case;

    /// Where it and its jobs write down what they did.
    fn records(&self) -> &std::path::Path;
}

/// Submitters of a victim: each submits every so many jobs, in the order of their numbers.
pub const SUBMITTERS: u64 = 4;

/// The id of a job, the same for every attempt to submit it.
pub fn run_id(number: u64) -> RunId {
    RunId(0x0199_0000_0000 << 80 | 7 << 76 | u128::from(number))
}

/// The number of the job that was submitted under this id.
pub fn number(id: RunId) -> u64 {
    id.0 as u64
}

/// What a start of a victim has to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Orders {
    /// Of this start; no other has it.
    pub process: u32,
    /// The number of the first job that each submitter has not been told about.
    pub next: Vec<u64>,
    /// Jobs that were asked for and have not been executed.
    pub backlog: u64,
    /// Ask for nothing new, and end when everything has.
    pub drain: bool,
}

/// Kills that many times, in so many lanes side by side.
pub fn campaign(times: u32, lanes: u32, seed: u64) -> Result<Ledger> {
    let mut ledgers = Vec::new();
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..lanes)
            .map(|number| {
                let kills = times / lanes + u32::from(number < times % lanes);
                scope.spawn(move || {
                    let folder = tempfile::tempdir()?;
                    let victim = application::Embedded::new(folder.path())?;
                    Lane::new(&victim, seed.wrapping_add(u64::from(number))).play(kills)
                })
            })
            .collect();
        ledgers.extend(running.into_iter().map(|lane| lane.join()));
    });
    let mut sum = Ledger::default();
    for ledger in ledgers {
        sum.add(ledger.ok().context("a lane panicked")??);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_known_by_the_id_it_was_submitted_under() {
        assert_eq!(number(run_id(123_456)), 123_456);
    }
}
