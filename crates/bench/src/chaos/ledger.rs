//! What was done, what it hit, and what the judge found. A fault that hits nothing proves nothing, so a zero is a
//! failure.

use anyhow::{Result, bail, ensure};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::time::Duration;
use tidegate_observer::{Case, Fact, Record, Verdict};

/// What is bounded in time is printed, and fails at so many times its bound: the machine may be busy.
pub const PATIENCE: u32 = 5;

/// How often something happened. It must have, at least once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Count {
    name: &'static str,
    count: u64,
    /// A coincidence: it may be missing where little was done.
    is_rare: bool,
    /// Where much was done, it must have happened in more than half of these.
    of: u64,
}

/// How long something took, each time.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Times {
    name: &'static str,
    bound: Duration,
    took: Vec<Duration>,
}

/// One half of it.
pub struct Ledger {
    title: &'static str,
    counts: Vec<Count>,
    times: Vec<Times>,
    /// The most units of each limit that were held at once, and how many may be.
    held: BTreeMap<u32, (u32, u32)>,
    /// Starts of the job that was started most often.
    most_starts: u32,
    violations: Vec<String>,
}

impl Ledger {
    pub fn new(title: &'static str) -> Ledger {
        Ledger {
            title,
            counts: Vec::new(),
            times: Vec::new(),
            held: BTreeMap::new(),
            most_starts: 0,
            violations: Vec::new(),
        }
    }

    pub fn count(&mut self, name: &'static str, count: u64) {
        self.counts.push(Count { name, count, is_rare: false, of: 0 });
    }

    /// A coincidence, which may be missing where little was done.
    pub fn count_rare(&mut self, name: &'static str, count: u64) {
        self.counts.push(Count { name, count, is_rare: true, of: 0 });
    }

    /// What must have happened most of the times that something else did, unless little was done.
    pub fn count_most(&mut self, name: &'static str, count: u64, of: u64) {
        self.counts.push(Count { name, count, is_rare: true, of });
    }

    pub fn time(&mut self, name: &'static str, bound: Duration, took: Vec<Duration>) {
        self.times.push(Times { name, bound, took });
    }

    /// What the judge found in the records of one store.
    pub fn judged(&mut self, case: &Case, records: &[Record], verdict: &Verdict) {
        self.count("reloads compared with what was written", reloads(records));
        self.count("jobs acknowledged", verdict.acknowledged);
        self.count("executions", verdict.executions);
        self.count("executions cut short", verdict.cut_short);
        self.count("jobs executed again", verdict.run_again);
        self.count_rare("jobs that ran to their end again", verdict.ended_again);
        self.count("starts compared with the order of acceptance", verdict.ordered);
        self.count("jobs finished, as the store says", verdict.finished);
        let held = |(limit, allowed): (&u32, &u32)| {
            (*limit, (verdict.held.get(limit).copied().unwrap_or_default(), *allowed))
        };
        self.held = case.limits.iter().map(held).collect();
        self.most_starts = verdict.most_starts;
        self.violations = verdict.violations.iter().map(ToString::to_string).collect();
    }

    /// Adds what another store of the same half went through.
    pub fn add(&mut self, other: Ledger) {
        if self.counts.is_empty() {
            return *self = other;
        }
        for (mine, other) in self.counts.iter_mut().zip(other.counts) {
            mine.count += other.count;
            mine.of += other.of;
        }
        self.times.iter_mut().zip(other.times).for_each(|(mine, other)| mine.took.extend(other.took));
        for (limit, (units, allowed)) in other.held {
            let (most, _) = self.held.entry(limit).or_insert((0, allowed));
            *most = units.max(*most);
        }
        self.most_starts = self.most_starts.max(other.most_starts);
        self.violations.extend(other.violations);
    }

    /// An error if anything was broken, or was never put to the test.
    pub fn judge(&self, is_much: bool) -> Result<()> {
        if let Some(first) = self.violations.first() {
            bail!("{}: {} violations, the first: {first}", self.title, self.violations.len());
        }
        for Times { name, bound, took } in &self.times {
            let longest = took.iter().max().copied().unwrap_or_default();
            ensure!(longest <= *bound * PATIENCE, "{name}: {longest:.1?}, {bound:?} are promised");
        }
        let untested = self.counts.iter().filter(|count| count.count == 0 && (is_much || !count.is_rare));
        let untested: Vec<&str> = untested.map(|count| count.name).collect();
        ensure!(untested.is_empty(), "{}: never put to the test: {}", self.title, untested.join(", "));
        if let Some(Count { name, count, of, .. }) =
            self.counts.iter().find(|count| is_much && count.of > 0 && count.count * 2 <= count.of)
        {
            bail!("{}: {name}: {count} of {of}, and most should be", self.title);
        }
        Ok(())
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        for Count { name, count, .. } in &self.counts {
            writeln!(f, "{count:>9}  {name}")?;
        }
        for Times { name, bound, took } in &self.times {
            let mut took = took.clone();
            took.sort_unstable();
            let at = |index: usize| took.get(index).map_or(0.0, Duration::as_secs_f64);
            let (median, longest) = (at(took.len() / 2), at(took.len().saturating_sub(1)));
            writeln!(
                f,
                "{longest:>7.2} s  {name} at most, {median:.2} s in the median; {bound:?} are promised"
            )?;
        }
        for (limit, (units, allowed)) in &self.held {
            writeln!(f, "{units:>9}  units at most under limit number {limit}, which allows {allowed}")?;
        }
        writeln!(f, "{:>9}  starts of one job at most", self.most_starts)?;
        writeln!(f, "{:>9}  violations", self.violations.len())?;
        self.violations.iter().take(10).try_for_each(|violation| writeln!(f, "           {violation}"))
    }
}

/// Whoever granted anything had loaded before, and compared; only the first had nothing to compare with.
fn reloads(records: &[Record]) -> u64 {
    let starts = records.iter().filter(|record| record.fact == Fact::Started);
    let terms: HashSet<u64> = starts.map(|start| start.execution >> 40).collect();
    terms.len().saturating_sub(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(count: u64, rare: u64) -> Ledger {
        let mut ledger = Ledger::new("half");
        ledger.count("kills", count);
        ledger.count_rare("coincidences", rare);
        ledger.time("away", Duration::from_secs(2), vec![Duration::from_secs(count)]);
        ledger
    }

    #[test]
    fn ledgers_add_up() {
        let mut sum = Ledger::new("half");
        sum.add(ledger(1, 0));
        sum.add(ledger(4, 2));
        let counts: Vec<u64> = sum.counts.iter().map(|count| count.count).collect();
        assert_eq!(counts, [5, 2]);
        let text = sum.to_string();
        assert!(text.contains("   4.00 s  away at most, 4.00 s in the median; 2s are promised\n"), "{text}");
        sum.judge(true).expect("nothing was broken, and everything was tested");
    }

    #[test]
    fn what_was_broken_or_not_tested_is_an_error() {
        let said = |ledger: &Ledger, is_much| ledger.judge(is_much).expect_err("it is not good").to_string();
        let mut broken = ledger(1, 1);
        broken.violations.push("job 7 is lost".to_owned());
        assert_eq!(said(&broken, true), "half: 1 violations, the first: job 7 is lost");
        assert_eq!(said(&ledger(0, 1), false), "half: never put to the test: kills");
        assert_eq!(said(&ledger(1, 0), true), "half: never put to the test: coincidences");
        ledger(1, 0).judge(false).expect("little was done");
        let mut half = ledger(4, 1);
        half.count_most("kills that hit something", 2, 4);
        assert_eq!(said(&half, true), "half: kills that hit something: 2 of 4, and most should be");
        half.judge(false).expect("little was done");
        assert_eq!(said(&ledger(11, 1), true), "away: 11.0s, 2s are promised");
    }

    #[test]
    fn every_leader_but_the_first_had_something_to_compare_with() {
        let start = |term: u64| Record { execution: term << 40 | 5, ..Record::new(Fact::Started, 1, 1) };
        assert_eq!(reloads(&[start(1), start(1), start(3), start(4)]), 2);
        assert_eq!(reloads(&[]), 0);
    }
}
