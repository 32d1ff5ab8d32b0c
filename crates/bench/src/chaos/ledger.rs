//! What the kills hit, and what the judge found. A kill that hits nothing proves nothing, so a zero is a failure.

use anyhow::{Result, bail, ensure};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use tidegate_observer::{Fact, Record, Verdict};

/// One kill, as the records showed it right afterwards.
pub struct Kill {
    pub process: u32,
    /// Executions that had begun and not ended.
    pub running: u64,
    /// Jobs that were asked for and not acknowledged.
    pub unacknowledged: HashSet<u64>,
}

/// What is counted. Each must have happened at least once.
const NAMES: [&str; 12] = [
    "kills",
    "kills that found work running",
    "kills that found submissions without an answer",
    "kills between the end of a job and its commit",
    "kills between the commit of a submission and its answer",
    "jobs acknowledged",
    "executions",
    "executions cut short",
    "jobs executed again",
    "jobs that ran to their end again",
    "starts compared with the order of acceptance",
    "jobs finished, as the store says",
];

#[derive(Default)]
pub struct Ledger {
    counts: [u64; NAMES.len()],
    /// The most units of each limit that were held at once.
    held: BTreeMap<u32, u32>,
    violations: Vec<String>,
}

impl Ledger {
    pub fn of(kills: &[Kill], records: &[Record], verdict: &Verdict) -> Ledger {
        let (uncommitted, untold) = (uncommitted(records), untold(records));
        let count = |hit: &dyn Fn(&Kill) -> bool| kills.iter().filter(|kill| hit(kill)).count() as u64;
        Ledger {
            counts: [
                kills.len() as u64,
                count(&|kill| kill.running > 0),
                count(&|kill| !kill.unacknowledged.is_empty()),
                count(&|kill| uncommitted.contains(&kill.process)),
                count(&|kill| !kill.unacknowledged.is_disjoint(&untold)),
                verdict.acknowledged,
                verdict.executions,
                verdict.cut_short,
                verdict.run_again,
                verdict.ended_again,
                verdict.ordered,
                verdict.finished,
            ],
            held: verdict.held.clone(),
            violations: verdict.violations.iter().map(ToString::to_string).collect(),
        }
    }

    pub fn add(&mut self, other: Ledger) {
        self.counts.iter_mut().zip(other.counts).for_each(|(mine, count)| *mine += count);
        for (limit, units) in other.held {
            let most = self.held.entry(limit).or_default();
            *most = units.max(*most);
        }
        self.violations.extend(other.violations);
    }

    /// An error if anything was broken, or was never put to the test.
    pub fn judge(&self) -> Result<()> {
        if let Some(first) = self.violations.first() {
            bail!("{} violations, the first: {first}", self.violations.len());
        }
        let untested = NAMES.iter().zip(self.counts).filter(|(_, count)| *count == 0);
        let untested: Vec<&str> = untested.map(|(name, _)| *name).collect();
        ensure!(untested.is_empty(), "never put to the test: {}", untested.join(", "));
        Ok(())
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in NAMES.iter().zip(self.counts) {
            writeln!(f, "{count:>9}  {name}")?;
        }
        for (limit, units) in &self.held {
            writeln!(f, "{units:>9}  units of limit {limit} at most")?;
        }
        writeln!(f, "{:>9}  violations", self.violations.len())?;
        self.violations.iter().take(10).try_for_each(|violation| writeln!(f, "           {violation}"))
    }
}

/// Processes in which a job ran to its end, which the store never heard of: it was executed again.
fn uncommitted(records: &[Record]) -> HashSet<u32> {
    let mut last: HashMap<u64, u32> = HashMap::new();
    for record in records.iter().filter(|record| record.fact == Fact::Started) {
        let process = last.entry(record.job).or_default();
        *process = record.process.max(*process);
    }
    let ends = records.iter().filter(|record| record.fact == Fact::Ended);
    ends.filter(|end| last.get(&end.job).is_some_and(|last| *last > end.process))
        .map(|end| end.process)
        .collect()
}

/// Jobs that the store had when somebody who had not been told asked again.
fn untold(records: &[Record]) -> HashSet<u64> {
    records.iter().filter(|record| record.fact == Fact::Found).map(|record| record.job).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(fact: Fact, job: u64, process: u32) -> Record {
        Record { process, ..Record::new(fact, job, 1) }
    }

    #[test]
    fn a_ledger_tells_what_each_kill_hit() {
        let kill = |process, running, unacknowledged: &[u64]| Kill {
            process,
            running,
            unacknowledged: unacknowledged.iter().copied().collect(),
        };
        let records = [
            record(Fact::Started, 1, 1),
            record(Fact::Ended, 1, 1),
            record(Fact::Started, 1, 2),
            record(Fact::Ended, 1, 2),
            record(Fact::Found, 5, 3),
        ];
        let kills = [kill(1, 0, &[]), kill(2, 3, &[5, 6])];
        let mut ledger = Ledger::of(&kills, &records, &Verdict::default());
        assert_eq!(ledger.counts[..5], [2, 1, 1, 1, 1]);
        ledger.add(Ledger { counts: [1; 12], ..Ledger::default() });
        assert_eq!(ledger.counts[..6], [3, 2, 2, 2, 2, 1]);
        ledger.judge().expect("nothing was broken, and everything was tested");
    }

    #[test]
    fn what_was_broken_or_not_tested_is_an_error() {
        let tested = || Ledger { counts: [1; 12], ..Ledger::default() };
        let broken = Ledger { violations: vec!["job 7 is lost".to_owned()], ..tested() };
        assert_eq!(broken.judge().expect_err("broken").to_string(), "1 violations, the first: job 7 is lost");
        let mut ledger = tested();
        ledger.counts[3] = 0;
        let said = ledger.judge().expect_err("not tested").to_string();
        assert_eq!(said, "never put to the test: kills between the end of a job and its commit");
    }
}
