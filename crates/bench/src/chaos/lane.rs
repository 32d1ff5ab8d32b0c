//! One application after the other over the same SQLite file: started, killed, looked at, started again, and drained at
//! last. Some are asked to end instead, so that the next one finds a store that was closed, and runs ahead of it.

use super::application::{Orders, Place};
use super::ledger::Ledger;
use super::trail::{Hit, Trail};
use super::workload::Workload;
use super::{exit_within, number, signal};
use crate::subject::{History, Subject};
use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Child;
use std::time::Duration;
use tidegate_observer::{Fact, Mode, Record, Recorder, clock, judge, read};
use tidegate_sim::random::Random;

/// A process lives at least and at most this long, in milliseconds: some are killed while they load.
const SHORTEST: u64 = 30;
const LONGEST: u64 = 1_200;
/// How many of a hundred are asked to end.
const ASKED_TO_END: u64 = 25;
/// How long one may take to end when it is asked to, and the last one to drain what is left.
const GOODBYE: Duration = Duration::from_secs(30);
const DRAIN: Duration = Duration::from_secs(120);

/// A kill, and whether its victim had found a store that was closed.
struct Kill {
    hit: Hit,
    ran_ahead: bool,
}

pub struct Lane {
    place: Place,
    trail: Trail,
    recorder: Recorder,
    random: Random,
    processes: u32,
    kills: Vec<Kill>,
    clean_ends: u32,
    /// The last process closed the store, or there was none.
    is_closed: bool,
}

impl Lane {
    pub fn new(folder: &Path, seed: u64) -> Result<Lane> {
        let (records, store) = (folder.join("records"), Subject::store_in(folder));
        let recorder = Recorder::open(&records, Mode::AtOnce)?;
        let trail = Trail::new(records.clone());
        let place = Place { address: format!("sqlite:{}", store.display()), records, name: None };
        let random = Random::new(seed);
        Ok(Lane {
            place,
            trail,
            recorder,
            random,
            processes: 0,
            kills: Vec::new(),
            clean_ends: 0,
            is_closed: true,
        })
    }

    pub fn play(mut self, folder: &Path, kills: u32) -> Result<Ledger> {
        while self.kills.len() < kills as usize {
            let mut child = self.start(false)?;
            std::thread::sleep(Duration::from_millis(self.random.between(SHORTEST, LONGEST)));
            // The first one always is: however few there are, the next one finds a store that was closed.
            match self.processes == 1 || self.random.chance(ASKED_TO_END) {
                true => self.ask_to_end(&mut child)?,
                false => self.kill(&mut child)?,
            }
        }
        let mut last = self.start(true)?;
        exit_within(&mut last, DRAIN).context("the last one, which drains what is left")?;
        let store = Subject::store_in(folder);
        ensure!(History::has_digest_of_sqlite(&store)?, "what was written was never compared");
        for past in History::jobs_of_sqlite(&store)? {
            let Some(fact) = past.fact() else { continue };
            let job = past.id.map(number).context("a job without an id")?;
            self.recorder.append(&Record { order: past.order, ..Record::new(fact, job, clock::now()) });
        }
        let records = read(&self.place.records)?;
        Ok(self.ledger(&records))
    }

    fn start(&mut self, drain: bool) -> Result<Child> {
        self.processes += 1;
        self.trail.look()?;
        let kinds = Workload::Embedded.kinds();
        let orders = self.trail.orders(self.processes, 1..=kinds, kinds);
        self.place.start(&Orders { drain, ..orders })
    }

    fn kill(&mut self, child: &mut Child) -> Result<()> {
        child.kill()?;
        let status = child.wait()?;
        if status.code().is_some() {
            bail!("start {} ended by itself: {status}", self.processes);
        }
        self.trail.look()?;
        self.kills.push(Kill { hit: self.trail.hit(self.processes), ran_ahead: self.is_closed });
        self.died(false)
    }

    fn ask_to_end(&mut self, child: &mut Child) -> Result<()> {
        signal(child, Signal::TERM)?;
        exit_within(child, GOODBYE).with_context(|| format!("start {}, asked to end", self.processes))?;
        self.clean_ends += 1;
        self.died(true)
    }

    fn died(&mut self, is_closed: bool) -> Result<()> {
        self.is_closed = is_closed;
        self.recorder.append(&Record { process: self.processes, ..Record::new(Fact::Died, 0, clock::now()) });
        self.trail.look().map(drop)
    }

    fn ledger(&self, records: &[Record]) -> Ledger {
        let case = Workload::Embedded.case(self.clean_ends);
        let verdict = judge(&case, records);
        let (uncommitted, untold) = (uncommitted(records), untold(records));
        let count = |hits: &dyn Fn(&Kill) -> bool| self.kills.iter().filter(|kill| hits(kill)).count() as u64;
        let mut ledger = Ledger::new("one process over SQLite");
        let kills = self.kills.len() as u64;
        ledger.count("kills", kills);
        ledger.count_most("kills that found work running", count(&|kill| kill.hit.running > 0), kills);
        ledger.count(
            "kills that found work running ahead of the store",
            count(&|kill| kill.ran_ahead && kill.hit.running > 0),
        );
        ledger.count_most(
            "kills that found submissions without an answer",
            count(&|kill| !kill.hit.unanswered.is_empty()),
            kills,
        );
        ledger.count_rare(
            "kills between the end of a job and its commit",
            count(&|kill| uncommitted.contains(&kill.hit.process)),
        );
        ledger.count_rare(
            "kills between the commit of a submission and its answer",
            count(&|kill| !kill.hit.unanswered.is_disjoint(&untold)),
        );
        ledger.count("clean ends", self.clean_ends.into());
        ledger.judged(&case, records, &verdict);
        ledger
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

    #[test]
    fn what_a_kill_hit_is_seen_when_the_job_comes_again() {
        let record = |fact, job, process| Record { process, ..Record::new(fact, job, 1) };
        let records = [
            record(Fact::Started, 1, 1),
            record(Fact::Ended, 1, 1),
            record(Fact::Started, 1, 2),
            record(Fact::Ended, 1, 2),
            record(Fact::Started, 2, 2),
            record(Fact::Ended, 2, 2),
            record(Fact::Found, 5, 3),
        ];
        assert_eq!(uncommitted(&records), [1].into());
        assert_eq!(untold(&records), [5].into());
    }
}
