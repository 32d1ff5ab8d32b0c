//! One victim after the other over the same store: started, killed, looked at, started again, and drained at last.

use super::ledger::{Kill, Ledger};
use super::{Orders, SUBMITTERS, Victim, number};
use anyhow::{Context, Result, bail};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use tidegate_observer::{Fact, Mode, Record, Recorder, clock, judge, read, read_after};
use tidegate_sim::random::Random;

/// A victim lives at least and at most this long: some are killed while they load.
const SHORTEST: u64 = 30;
const LONGEST: u64 = 1_200;
/// How long the last one may take to drain what is left.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Lane<'a, V> {
    victim: &'a V,
    random: Random,
    /// How many records were looked at.
    seen: usize,
    told: HashSet<u64>,
    asked: HashSet<u64>,
    ended: HashSet<u64>,
    kills: Vec<Kill>,
}

impl<'a, V: Victim> Lane<'a, V> {
    pub fn new(victim: &'a V, seed: u64) -> Self {
        Lane {
            victim,
            random: Random::new(seed),
            seen: 0,
            told: HashSet::new(),
            asked: HashSet::new(),
            ended: HashSet::new(),
            kills: Vec::new(),
        }
    }

    pub fn play(mut self, kills: u32) -> Result<Ledger> {
        let recorder = Recorder::open(self.victim.records(), Mode::AtOnce)?;
        for process in 1..=kills {
            let mut child = self.victim.start(&self.orders(process, false))?;
            let life = SHORTEST + self.random.word() % (LONGEST - SHORTEST);
            std::thread::sleep(Duration::from_millis(life));
            child.kill()?;
            let status = child.wait()?;
            recorder.append(&Record { process, ..Record::new(Fact::Died, 0, clock::now()) });
            if status.code().is_some() {
                bail!("start {process} ended by itself: {status}");
            }
            self.look(process)?;
        }
        self.drain(kills + 1)?;
        for past in self.victim.history()? {
            let Some(succeeded) = past.succeeded else { continue };
            let fact = if succeeded { Fact::Finished } else { Fact::GivenUp };
            let job = past.id.map(number).context("a job without an id")?;
            recorder.append(&Record { order: past.order, ..Record::new(fact, job, clock::now()) });
        }
        let records = read(self.victim.records())?;
        Ok(Ledger::of(&self.kills, &records, &judge(&self.victim.case(), &records)))
    }

    fn orders(&self, process: u32, drain: bool) -> Orders {
        let first = |submitter: u64| {
            let mut numbers = (0..).map(|turn| submitter + turn * SUBMITTERS);
            numbers.find(|job| !self.told.contains(job)).unwrap_or(submitter)
        };
        let backlog = self.asked.difference(&self.ended).count() as u64;
        Orders { process, next: (1..=SUBMITTERS).map(first).collect(), backlog, drain }
    }

    /// What the last victim left behind.
    fn look(&mut self, process: u32) -> Result<()> {
        let records = read_after(self.victim.records(), self.seen)?;
        self.seen += records.len();
        let (mut waiting, mut running) = (HashSet::new(), HashMap::new());
        for record in &records {
            match record.fact {
                Fact::Asked => {
                    self.asked.insert(record.job);
                    waiting.insert(record.job);
                }
                Fact::Acknowledged | Fact::Found => {
                    self.told.insert(record.job);
                    waiting.remove(&record.job);
                }
                Fact::Started => drop(running.insert(record.execution, record.job)),
                Fact::Ended => {
                    self.ended.insert(record.job);
                    running.remove(&record.execution);
                }
                Fact::Died | Fact::Finished | Fact::GivenUp => {}
            }
        }
        self.kills.push(Kill { process, running: running.len() as u64, unacknowledged: waiting });
        Ok(())
    }

    fn drain(&mut self, process: u32) -> Result<()> {
        let mut child = self.victim.start(&self.orders(process, true))?;
        let begin = Instant::now();
        loop {
            match child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("the last start ended with {status}"),
                None if begin.elapsed() > PATIENCE => {
                    child.kill()?;
                    bail!("what was left was not drained in {} s", PATIENCE.as_secs());
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}
