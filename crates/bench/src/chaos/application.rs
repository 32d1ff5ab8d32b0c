//! An application that embeds Tidegate over SQLite: several submitters, actions with limits, and no idea when it ends.

use super::{Orders, SUBMITTERS, Victim, run_id};
use crate::definitions::{action, job, pool};
use crate::jobs::{Jobs, Kind};
use crate::subject::{History, Past, Setting, Staff, Subject};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate_core::ids::Name;
use tidegate_core::model::Action;
use tidegate_observer::{Case, Claim, Fact, Mode, Recorder};
use tidegate_worker::Functions;

/// The first argument by which the program of this crate becomes an application.
pub const APPLICATION: &str = "application";

/// Jobs of a submitter that wait for their acknowledgement at once.
const BURST: u64 = 8;
/// Jobs that may be open before the submitters wait.
const BACKLOG: u64 = 400;
/// A job may be unlucky many times; it is not to be given up for that.
const LOSSES: u32 = 30;
const POOL: u32 = 4;

/// An action: its name, its own limit, the units it wants of the pool, how long its jobs take, and how many later ones
/// may begin before a job because they are granted with it.
struct Shape {
    name: &'static str,
    concurrency: Option<u32>,
    units: u32,
    takes: Duration,
    together: Option<u32>,
}

const fn shape(name: &'static str, concurrency: Option<u32>, units: u32, millis: u64) -> Shape {
    let together = match (concurrency, units) {
        (Some(1), _) => Some(0),
        (Some(limit), _) => Some(limit),
        (None, 0) => None,
        (None, units) => Some(POOL / units),
    };
    Shape { name, concurrency, units, takes: Duration::from_millis(millis), together }
}

const SHAPES: [Shape; 5] = [
    shape("alone", Some(1), 0, 1),
    shape("few", Some(3), 0, 4),
    shape("narrow", None, 1, 4),
    shape("wide", None, 2, 4),
    shape("free", None, 0, 1),
];

/// By the place of its action, each has a limit of its own; all who want the pool share the last.
const POOL_LIMIT: u32 = SHAPES.len() as u32 + 1;

/// Such an application over a store in a folder.
pub struct Embedded {
    folder: PathBuf,
    records: PathBuf,
}

impl Embedded {
    pub fn new(folder: &Path) -> Result<Embedded> {
        let records = folder.join("records");
        Recorder::open(&records, Mode::AtOnce)?;
        Ok(Embedded { folder: folder.to_owned(), records })
    }
}

impl Victim for Embedded {
    fn start(&self, orders: &Orders) -> Result<Child> {
        let Orders { process, next, backlog, drain } = orders;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(APPLICATION).arg(&self.folder);
        command.args([process.to_string(), backlog.to_string(), drain.to_string()]);
        Ok(command.args(next.iter().map(ToString::to_string)).spawn()?)
    }

    fn history(&self) -> Result<Vec<Past>> {
        History::jobs(&Subject::store_in(&self.folder))
    }

    fn case(&self) -> Case {
        let numbered = || (1..).zip(&SHAPES);
        let own = numbered().filter_map(|(number, shape)| Some((number, shape.concurrency?)));
        let lines = numbered().filter_map(|(number, shape)| Some((number as u16, shape.together?)));
        Case {
            limits: own.chain([(POOL_LIMIT, POOL)]).collect(),
            must_reach: true,
            lines: lines.collect(),
            starts: 1 + LOSSES,
            has_history: true,
        }
    }

    fn records(&self) -> &Path {
        &self.records
    }
}

/// The whole life of an application. Its end is the exception.
pub fn run(mut words: impl Iterator<Item = String>) -> Result<()> {
    let folder = PathBuf::from(words.next().context("a folder is missing")?);
    let mut word = || words.next().context("an order is missing");
    let (process, backlog, drain) = (word()?.parse()?, word()?.parse()?, word()?.parse()?);
    let next = words.map(|word| Ok(word.parse()?)).collect::<Result<_>>()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(work(&folder, Orders { process, next, backlog, drain }))
}

async fn work(folder: &Path, orders: Orders) -> Result<()> {
    let recorder = Recorder::open(&folder.join("records"), Mode::AtOnce)?;
    let jobs = Jobs::new(Some(recorder), orders.process);
    let setting = Setting { actions: actions(), limits: pool("pool", POOL), ..Setting::default() };
    let subject = Arc::new(Subject::embedded(folder, setting).await?);
    subject.work(&Staff { functions: functions(&jobs), workers: 2, slots: 32 }).await;
    let asked = Arc::new(AtomicU64::new(orders.backlog));
    let submitters: Vec<_> = orders
        .next
        .iter()
        .map(|&next| {
            let submitter = Submitter {
                subject: subject.clone(),
                jobs: jobs.clone(),
                asked: asked.clone(),
                drain: orders.drain,
            };
            tokio::spawn(submitter.submit_from(next))
        })
        .collect();
    for submitter in submitters {
        submitter.await??;
    }
    subject.history_is_complete().await?;
    subject.shut_down().await
}

fn actions() -> Vec<Action> {
    let action = |shape: &Shape| {
        let pools = [("pool", shape.units)];
        let mut action = action(shape.name, shape.concurrency, &pools[..usize::from(shape.units > 0)]);
        action.policy.max_losses = LOSSES;
        action
    };
    SHAPES.iter().map(action).collect()
}

fn functions(jobs: &Arc<Jobs>) -> Functions {
    let mut functions = Functions::default();
    for (number, shape) in (1..).zip(&SHAPES) {
        let own = Claim { limit: number, units: u32::from(shape.concurrency.is_some()) };
        let shared = Claim { limit: POOL_LIMIT, units: shape.units };
        let kind = Kind { line: number as u16, claims: [own, shared], takes: shape.takes, ..Kind::default() };
        jobs.register(&mut functions, shape.name, kind);
    }
    functions
}

#[derive(Clone)]
struct Submitter {
    subject: Arc<Subject>,
    jobs: Arc<Jobs>,
    /// Jobs that were asked for and not executed when this process began, and what was asked for since.
    asked: Arc<AtomicU64>,
    drain: bool,
}

impl Submitter {
    /// Goes on for ever, or asks once more for what may have been asked for before.
    async fn submit_from(self, first: u64) -> Result<()> {
        let mut next = first;
        loop {
            let burst: Vec<_> =
                (0..BURST).map(|at| tokio::spawn(self.clone().submit(next + at * SUBMITTERS))).collect();
            for submission in burst {
                submission.await??;
            }
            if self.drain {
                return Ok(());
            }
            next += BURST * SUBMITTERS;
            while self.asked.load(Ordering::Relaxed).saturating_sub(self.jobs.ended()) > BACKLOG {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }

    async fn submit(self, number: u64) -> Result<()> {
        let shape = &SHAPES[(number / SUBMITTERS % SHAPES.len() as u64) as usize];
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.jobs.told(Fact::Asked, number, 0);
        let (task, again) =
            self.subject.submit_as(run_id(number), job(&Name::new(shape.name), number)).await?;
        self.jobs.told(if again { Fact::Found } else { Fact::Acknowledged }, number, task.node.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_promised_is_what_is_declared() {
        let folder = tempfile::tempdir().expect("a folder");
        let case = Embedded::new(folder.path()).expect("a victim").case();
        assert_eq!(case.limits, [(1, 1), (2, 3), (POOL_LIMIT, POOL)].into());
        assert_eq!(case.lines, [(1, 0), (2, 3), (3, 4), (4, 2)].into());
        let limits: Vec<_> = actions().iter().map(|action| action.policy.each.concurrency).collect();
        assert_eq!(limits, [Some(1), Some(3), None, None, None]);
    }
}
