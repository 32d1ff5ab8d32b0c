//! Tidegate as a scenario sees it: a store is opened, functions are registered, jobs are submitted, worked on by so
//! many slots, and waited for until the history holds them all.
//!
//! A scenario knows nothing else of Tidegate, so that another store or another interface has to be fitted here only.

mod history;
mod place;
mod workers;

pub use history::{History, Past};
pub use place::{Place, Site, commit_time};

use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tidegate::{Document, Error, GuardianCommand, Hired, Tidegate, Working};
use tidegate_core::ids::{Name, RunId, TaskId};
use tidegate_core::model::{Action, Flow, LimitsDocument};
use tidegate_core::protocol::{Answer, Command, Payload, Submission, Submit};
use tidegate_core::state::State;
use tidegate_engine::Engine;
use tidegate_store::StoreError;
use tidegate_worker::Functions;
use tokio::sync::Mutex;

/// The first argument by which this program becomes the guardian of processes.
pub const GUARDIAN: &str = "guardian";
/// Submissions that wait for their acknowledgement at once, unless a scenario is about that.
pub const AT_ONCE: usize = 1_000;

/// How the address of a SQLite file begins.
const SQLITE: &str = "sqlite:";
/// How soon somebody who was turned away asks again.
pub const ASK_AGAIN: Duration = Duration::from_millis(20);
/// How often the history is asked: less than any scenario that waits for it notices.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// What is to be worked on.
#[derive(Default)]
pub struct Setting {
    pub actions: Vec<Action>,
    pub flows: Vec<Flow>,
    pub limits: LimitsDocument,
    /// Of this process, among those that share the store.
    pub name: Option<Name>,
    /// What is loaded is compared with what was written.
    pub keeps_digests: bool,
}

/// Who works.
#[derive(Clone)]
pub struct Staff {
    pub functions: Functions,
    pub workers: u32,
    /// Functions at once, of each worker.
    pub slots: u32,
}

pub struct Subject {
    engine: Engine,
    tide: Tidegate,
    /// What the names of its workers begin with.
    name: Name,
    /// Of processes.
    working: Mutex<Working>,
    history: History,
    /// Jobs that were accepted.
    submitted: AtomicU64,
    hired: Mutex<Vec<Hired>>,
}

impl Subject {
    /// Where [`Subject::embedded`] keeps its store.
    pub fn store_in(folder: &Path) -> PathBuf {
        folder.join("store.db")
    }

    /// Tidegate in this process, over a SQLite file in this folder. It works on nothing but processes yet.
    pub async fn embedded(folder: &Path, setting: Setting) -> Result<Subject> {
        Subject::open(&format!("{SQLITE}{}", Subject::store_in(folder).display()), setting).await
    }

    /// The same over the store at an address.
    pub async fn open(address: &str, setting: Setting) -> Result<Subject> {
        let Setting { actions, flows, limits, name, keeps_digests } = setting;
        let tide = open(address, name.as_ref(), keeps_digests).await?;
        let history = match address.strip_prefix(SQLITE) {
            Some(path) => History::of_sqlite(Path::new(path))?,
            None => History::of_postgres(address).await?,
        };
        tide.define(Document { flows, actions, limits: Some(limits), files: Vec::new() });
        let guardian = GuardianCommand { program: std::env::current_exe()?, args: vec![GUARDIAN.to_owned()] };
        let working = Mutex::new(tide.work(0).processes(guardian).start().await?);
        let (engine, submitted) = (tide.engine().clone(), AtomicU64::new(0));
        let name = name.unwrap_or_else(|| Name::new("worker"));
        Ok(Subject { engine, tide, name, working, history, submitted, hired: Mutex::default() })
    }

    /// From now on functions are called.
    pub async fn work(&self, staff: &Staff) {
        let joining: Vec<_> = (0..staff.workers)
            .map(|number| {
                let (engine, staff) = (self.engine.clone(), staff.clone());
                let name = Name::from(format!("{}-{number}", self.name));
                tokio::spawn(async move { workers::join(&engine, name, staff.slots, staff.functions).await })
            })
            .collect();
        let mut hired = self.hired.lock().await;
        for joins in joining {
            hired.extend(joins.await);
        }
    }

    /// Submits, and tells its place in the order of acceptance as soon as it is durable.
    pub async fn submit(&self, what: Submission) -> Result<TaskId> {
        let id = RunId(uuid::Uuid::now_v7().as_u128());
        let submit = Submit { id, what, tags: Vec::new(), priority: 0, due: None, idempotency: None };
        match self.engine.submit_new(vec![submit]).await?.as_slice() {
            [Answer::Accepted { node, .. }] => {
                self.submitted.fetch_add(1, Ordering::Relaxed);
                Ok(TaskId::node(*node))
            }
            other => bail!("a submission was not accepted: {other:?}"),
        }
    }

    /// As [`Subject::submit`], under an id of one's own; tells too whether it had been accepted before.
    pub async fn submit_as(&self, id: RunId, what: Submission) -> Result<(TaskId, bool)> {
        let submit = Submit { id, what, tags: Vec::new(), priority: 0, due: None, idempotency: None };
        match self.engine.insist(Command::Submit(submit)).await? {
            Answer::Accepted { node, again } => Ok((TaskId::node(node), again)),
            other => bail!("a submission was not accepted: {other:?}"),
        }
    }

    /// Submits `count` jobs, of which `at_once` wait for their acknowledgement at any time; tells of each when it has
    /// come.
    pub async fn submit_all(
        self: &Arc<Self>,
        count: u64,
        at_once: usize,
        job: impl Fn(u64) -> Submission + Send + Sync + 'static,
        acknowledged: impl Fn(u64, u64) + Send + Sync + 'static,
    ) -> Result<()> {
        let next = AtomicU64::new(0);
        let shared = Arc::new((next, job, acknowledged));
        let submitters: Vec<_> = (0..at_once)
            .map(|_| {
                let (subject, shared) = (self.clone(), shared.clone());
                tokio::spawn(async move {
                    let (next, job, acknowledged) = &*shared;
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed) + 1;
                        if number > count {
                            return anyhow::Ok(());
                        }
                        let task = subject.submit(job(number)).await?;
                        acknowledged(number, task.node.0);
                    }
                })
            })
            .collect();
        for submitter in submitters {
            submitter.await??;
        }
        Ok(())
    }

    /// Runs a flow to its end, which must be a good one.
    pub async fn run(&self, flow: &str, inputs: Payload) -> Result<()> {
        let id = RunId(uuid::Uuid::now_v7().as_u128());
        self.submit_as(id, Submission::Run { flow: flow.into(), key: None, inputs }).await?;
        let ended = self.engine.result(id).await?.context("the run is not known")?;
        ensure!(
            ended.state == State::Succeeded,
            "the run of {flow} ended {}: {:?}",
            ended.state,
            ended.error
        );
        Ok(())
    }

    /// Until the history holds everything that was submitted.
    pub async fn history_is_complete(&self) -> Result<()> {
        let jobs = self.submitted.load(Ordering::Relaxed);
        while !self.history.is_complete(jobs).await? {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// Until what was submitted under an id has ended, whoever leads meanwhile.
    pub async fn ended(&self, id: RunId) -> Result<()> {
        loop {
            match self.engine.result(id).await {
                Ok(_) => return Ok(()),
                Err(error) if error.may_pass() => tokio::time::sleep(ASK_AGAIN).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Jobs that the history says have succeeded.
    pub async fn succeeded(&self) -> Result<u64> {
        self.history.succeeded().await
    }

    pub async fn shut_down(self: Arc<Self>) -> Result<()> {
        let subject = Arc::into_inner(self).context("somebody still submits")?;
        for hired in subject.hired.into_inner() {
            workers::leave(hired).await;
        }
        subject.working.into_inner().stop().await?;
        subject.tide.close().await;
        Ok(())
    }
}

/// How long a store that was given up may stay locked: its engine lets go of it after it has told that it ends.
const PATIENCE: Duration = Duration::from_secs(5);

async fn open(address: &str, name: Option<&Name>, keeps_digests: bool) -> Result<Tidegate> {
    let begin = Instant::now();
    loop {
        let mut builder = Tidegate::builder(address);
        if let Some(name) = name {
            builder = builder.name(name.clone());
        }
        if keeps_digests {
            builder = builder.keep_digests();
        }
        match builder.open().await {
            Err(Error::Store(StoreError::InUse(_))) if begin.elapsed() < PATIENCE => {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            opened => return Ok(opened?),
        }
    }
}
