//! Many seeds, on all cores, added up.

use crate::oracle::Violation;
use crate::world::{BEGIN, Outcome, Watch, play};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tidegate_core::planted::Bug;
use tidegate_core::time::Span;

/// What a campaign saw.
#[derive(Debug, Default)]
pub struct Ledger {
    pub seeds: u64,
    pub commands: u64,
    pub virtual_time: Span,
    pub faults: BTreeMap<&'static str, u64>,
    pub tested: BTreeMap<&'static str, u64>,
    /// The first seed that broke a promise, and how.
    pub violation: Option<(u64, Violation)>,
}

/// Promises that every campaign must have put to the test.
pub const PROMISES: [&str; 17] = [
    "I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I14", "I15", "I16", "I17",
    "I19",
];

/// What must have happened in every campaign, or the worlds where functions run ahead of their commits prove nothing.
const AHEAD: [&str; 6] = [
    "started ahead of its commit",
    "started ahead of its commit after a clean end",
    "waited for its commit after a kill",
    "process killed with work ahead of its commit",
    "work ahead of its commit aborted and joined",
    "abort held up by a function that blocks",
];

/// One seed in so many is played twice. No kind of world comes back as regularly.
const AGAIN: u64 = 31;

impl Ledger {
    fn add(&mut self, seed: u64, outcome: Outcome) {
        self.seeds += 1;
        self.commands += outcome.commands;
        self.virtual_time = self.virtual_time + outcome.virtual_time;
        outcome.faults.into_iter().for_each(|(fault, times)| *self.faults.entry(fault).or_default() += times);
        outcome
            .tested
            .into_iter()
            .for_each(|(promise, times)| *self.tested.entry(promise).or_default() += times);
        if let Some(violation) = outcome.violation
            && self.violation.as_ref().is_none_or(|(first, _)| seed < *first)
        {
            self.violation = Some((seed, violation));
        }
    }

    /// Promises that were never tested while it mattered.
    pub fn untested(&self) -> Vec<&'static str> {
        PROMISES
            .into_iter()
            .chain(AHEAD)
            .filter(|promise| self.tested.get(promise).is_none_or(|&times| times == 0))
            .collect()
    }
}

/// Plays `count` seeds from `first` on; stops soon after the first violation. `progress` is called now and then.
pub fn campaign(first: u64, count: u64, bug: Option<Bug>, progress: impl Fn(u64) + Sync) -> Ledger {
    let (next, found) = (AtomicU64::new(first), AtomicBool::new(false));
    let ledger = Mutex::new(Ledger::default());
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count || found.load(Ordering::Relaxed) {
                        return;
                    }
                    let outcome = play_perhaps_twice(seed, bug);
                    if outcome.violation.is_some() {
                        found.store(true, Ordering::Relaxed);
                    }
                    let mut ledger = ledger.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    ledger.add(seed, outcome);
                    progress(ledger.seeds);
                }
            });
        }
    });
    ledger.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The same seed must go the same way.
fn play_perhaps_twice(seed: u64, bug: Option<Bug>) -> Outcome {
    let twice = seed.is_multiple_of(AGAIN);
    let watch = if twice { Watch::Digest } else { Watch::Nothing };
    let mut outcome = play(seed, bug, watch);
    if twice && outcome.violation.is_none() {
        let again = play(seed, bug, watch);
        outcome.tested.insert("I19", 1);
        if again.digest != outcome.digest {
            let what = "played again, it went another way".to_owned();
            outcome.violation = Some(Violation::new("I19", what, BEGIN + outcome.virtual_time));
        }
    }
    outcome
}
