//! What programs left behind so far, as far as it matters for what is done to them next.

use super::application::Orders;
use anyhow::Result;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use tidegate_observer::{Fact, Record, read_after};

/// An execution that began: when, where, and under which leadership it was granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    pub at: u64,
    pub process: u32,
    pub term: u64,
}

/// What something that was done to a process hit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hit {
    pub process: u32,
    /// Executions that had begun and not ended.
    pub running: u64,
    /// Jobs that were asked for and not acknowledged.
    pub unanswered: HashSet<u64>,
}

pub struct Trail {
    path: PathBuf,
    /// How many records were looked at.
    seen: usize,
    told: HashSet<u64>,
    asked: HashSet<u64>,
    ended: HashSet<u64>,
    /// By execution.
    running: HashMap<(u32, u64), u64>,
    /// Jobs, by who asked for them.
    unanswered: HashSet<(u32, u64)>,
    /// The latest of each process.
    starts: HashMap<u32, Start>,
}

impl Trail {
    pub fn new(path: PathBuf) -> Trail {
        Trail {
            path,
            seen: 0,
            told: HashSet::new(),
            asked: HashSet::new(),
            ended: HashSet::new(),
            running: HashMap::new(),
            unanswered: HashSet::new(),
            starts: HashMap::new(),
        }
    }

    /// Reads on, and gives the executions that began since the last time.
    pub fn look(&mut self) -> Result<Vec<Start>> {
        let records = read_after(&self.path, self.seen)?;
        self.seen += records.len();
        Ok(records.iter().filter_map(|record| self.add(record)).collect())
    }

    fn add(&mut self, record: &Record) -> Option<Start> {
        let &Record { fact, job, process, execution, at, .. } = record;
        match fact {
            Fact::Asked => {
                self.asked.insert(job);
                self.unanswered.insert((process, job));
            }
            Fact::Acknowledged | Fact::Found => {
                self.told.insert(job);
                self.unanswered.remove(&(process, job));
            }
            Fact::Started => {
                self.running.insert((process, execution), job);
                let start = Start { at, process, term: execution >> 40 };
                self.starts.insert(process, start);
                return Some(start);
            }
            Fact::Ended | Fact::Stopped => {
                self.ended.extend((fact == Fact::Ended).then_some(job));
                self.running.remove(&(process, execution));
            }
            Fact::Died => {
                self.running.retain(|(other, _), _| *other != process);
                self.unanswered.retain(|(other, _)| *other != process);
            }
            Fact::Renewed | Fact::Resumed | Fact::Finished | Fact::GivenUp => {}
        }
        None
    }

    /// What a process has under way that was dealt a blow.
    pub fn hit(&self, process: u32) -> Hit {
        let running = self.running.keys().filter(|(other, _)| *other == process).count() as u64;
        let unanswered = self.unanswered.iter().filter(|(other, _)| *other == process);
        Hit { process, running, unanswered: unanswered.map(|(_, job)| *job).collect() }
    }

    /// The latest execution that began in a process.
    pub fn latest_start(&self, process: u32) -> Option<Start> {
        self.starts.get(&process).copied()
    }

    /// With what a process begins whose submitters are these, of so many.
    pub fn orders(&self, process: u32, submitters: std::ops::RangeInclusive<u64>, stride: u64) -> Orders {
        let first = |submitter: u64| {
            let mut numbers = (0..).map(|turn| submitter + turn * stride);
            numbers.find(|job| !self.told.contains(job)).unwrap_or(submitter)
        };
        let backlog = self.asked.difference(&self.ended).count() as u64;
        Orders { process, next: submitters.map(first).collect(), stride, backlog, drain: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_observer::{Mode, Recorder};

    #[test]
    fn what_was_told_and_what_runs_is_read_from_the_records() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("records");
        let recorder = Recorder::open(&path, Mode::AtOnce).expect("a new file");
        let write = |fact, job, process| {
            let execution = 3 << 40 | job;
            recorder.append(&Record { process, execution, ..Record::new(fact, job, 9) });
        };
        for job in [1, 2, 3] {
            write(Fact::Asked, job, 7);
        }
        write(Fact::Acknowledged, 1, 7);
        write(Fact::Started, 1, 8);
        let mut trail = Trail::new(path);
        assert_eq!(trail.look().expect("records"), [Start { at: 9, process: 8, term: 3 }]);
        assert_eq!(trail.latest_start(8).map(|start| start.term), Some(3));
        assert_eq!(trail.hit(7).unanswered, [2, 3].into());
        assert_eq!((trail.hit(7).running, trail.hit(8).running), (0, 1));
        let orders = trail.orders(9, 1..=2, 2);
        assert_eq!((orders.next, orders.backlog), (vec![3, 2], 3));
        write(Fact::Ended, 1, 8);
        write(Fact::Died, 0, 7);
        assert_eq!(trail.look().expect("records"), []);
        assert_eq!((trail.hit(7), trail.hit(8).running), (Hit { process: 7, ..Hit::default() }, 0));
    }
}
