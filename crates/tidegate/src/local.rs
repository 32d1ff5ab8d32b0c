//! An engine and a worker in this process, over a SQLite file.

use crate::evaluator::{Evaluator, json, loop_output};
use crate::forward::Forward;
use serde_json::Value as Json;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::{Answer, Command, Declare, Refusal, Snapshot, Submission, Submit};
use tidegate_engine::{Engine, EngineError, Settings as EngineSettings};
use tidegate_store::{Ended, Entry, Reads, SqliteStore, StoreError};
use tidegate_worker::{Control, Functions, GuardianCommand, LogSink, Settings, Worker};
use tokio::sync::{broadcast, oneshot};
use tokio::task::JoinHandle;

#[derive(Debug, Error)]
pub enum LocalError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// How to work in this process.
pub struct Options {
    /// How the guardian of processes is started: this very binary, with other arguments.
    pub guardian: GuardianCommand,
    pub logs: LogSink,
    pub functions: Functions,
    /// Processes at once; one a core unless told otherwise.
    pub slots: Option<u32>,
}

/// An engine with a worker.
pub struct Local {
    pub engine: Engine,
    worker: Control,
    worker_done: JoinHandle<()>,
    reader: Box<dyn Reads>,
    entries: broadcast::Receiver<Arc<Entry>>,
}

const WORKER: &str = "local";

impl Local {
    /// Opens (or makes) the store at `path` and starts to work.
    pub async fn open(path: &Path, options: Options) -> Result<Local, LocalError> {
        let store = SqliteStore::open(path)?;
        let reader = SqliteStore::open_reader(path)?;
        let engine = Engine::start(
            EngineSettings::new(WORKER),
            Box::new(store),
            Box::new(SqliteStore::open_reader(path)?),
            Arc::new(Evaluator),
        );
        let entries = engine.subscribe();
        // The half of the id that holds the time: later starts have higher ones.
        let incarnation = (uuid::Uuid::now_v7().as_u128() >> 64) as u64;
        let mut settings = Settings::new(WORKER, incarnation, Some(options.guardian));
        settings.logs = options.logs;
        settings.functions = options.functions;
        settings.slots.process = options.slots.unwrap_or(settings.slots.process);
        let worker = Worker::new(settings);
        let control = worker.control();
        let (link, end) = tidegate_worker::link();
        let (told, has_joined) = oneshot::channel();
        tokio::spawn(Forward::run(engine.clone(), Name::new(WORKER), incarnation, end, told));
        let worker_done = tokio::spawn(async move {
            // It ends when it was shut down, or when the engine is gone; there is nobody left to tell.
            let _ = worker.run(link).await;
        });
        // What is submitted before there is a worker would wait for it, and say so. Without a store there is none.
        let mut outage = engine.outage();
        tokio::select! {
            _ = has_joined => {}
            _ = outage.wait_for(Option::is_some) => {}
        }
        Ok(Local { engine, worker: control, worker_done, reader: Box::new(reader), entries })
    }

    /// What became durable since it was opened, or since this was last called.
    pub fn take_entries(&mut self) -> broadcast::Receiver<Arc<Entry>> {
        std::mem::replace(&mut self.entries, self.engine.subscribe())
    }

    pub async fn declare(&self, declare: Declare) -> Result<(), LocalError> {
        self.ask(Command::Declare(declare)).await.map(|_| ())
    }

    /// Submits under a new id; asks again until the answer is sure, or the store cannot be used.
    pub async fn submit(
        &self,
        what: Submission,
        tags: Vec<(Name, Name)>,
        priority: i8,
    ) -> Result<(RunId, NodeId), LocalError> {
        let id = RunId(uuid::Uuid::now_v7().as_u128());
        let submit = Submit { id, what, tags, priority, due: None, idempotency: None };
        match self.ask(Command::Submit(submit)).await? {
            Answer::Accepted { node, .. } => Ok((id, node)),
            _ => Err(EngineError::Unavailable.into()),
        }
    }

    pub async fn cancel(&self, node: NodeId) -> Result<(), LocalError> {
        self.ask(Command::Cancel(TaskId::node(node))).await.map(|_| ())
    }

    async fn ask(&self, command: Command) -> Result<Answer, LocalError> {
        match self.engine.insist(command).await? {
            Answer::Refused(refusal) => Err(refusal.into()),
            answer => Ok(answer),
        }
    }

    /// How a task ended, if it has.
    pub fn ended(&mut self, task: TaskId) -> Result<Option<Ended>, LocalError> {
        Ok(self.reader.ended(task)?)
    }

    /// Everything open, as it is stored now.
    pub fn snapshot(&mut self) -> Result<Snapshot, LocalError> {
        Ok(self.reader.load()?.snapshot)
    }

    /// A payload of an ended task, as JSON.
    pub fn output(&mut self, task: TaskId, is_loop: bool) -> Result<Json, LocalError> {
        if is_loop {
            return Ok(loop_output(task, self.reader.as_mut())?);
        }
        Ok(json(self.reader.ended(task)?.and_then(|ended| ended.output).as_ref()))
    }

    /// Stops what runs, hands it back, and takes nothing more: within the grace and a second, whatever the store does.
    pub async fn stop_work(&mut self) {
        self.worker.shut_down();
        // A worker that panicked has nothing left to hand back.
        let _ = (&mut self.worker_done).await;
    }

    /// Hands back what runs, and ends.
    pub async fn shut_down(mut self) {
        self.stop_work().await;
        self.engine.shut_down().await;
    }
}
