//! An engine and a worker in this process, over a SQLite file.

use crate::evaluator::{Evaluator, json, loop_output};
use serde_json::Value as Json;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;
use tidegate_core::admission::{Skills, SlotCounts};
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::{
    Answer, Command, Declare, Finish, Join, Leave, Outcome, Refusal, Snapshot, Submission, Submit,
};
use tidegate_engine::{Delivery, Engine, EngineError};
use tidegate_store::{Ended, Reads, SqliteStore, StoreError};
use tidegate_worker::{
    Control, EngineEnd, Functions, GuardianCommand, LogSink, Settings, ToEngine, ToWorker, Worker,
};
use tokio::sync::mpsc;
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
}

const WORKER: &str = "local";

impl Local {
    /// Opens (or makes) the store at `path` and starts to work.
    pub async fn open(path: &Path, options: Options) -> Result<Local, LocalError> {
        let store = SqliteStore::open(path)?;
        let reader = SqliteStore::open_reader(path)?;
        let engine = Engine::start(
            Name::new(WORKER),
            Box::new(store),
            Box::new(SqliteStore::open_reader(path)?),
            Arc::new(Evaluator),
        );
        // The half of the id that holds the time: later starts have higher ones.
        let incarnation = (uuid::Uuid::now_v7().as_u128() >> 64) as u64;
        let mut settings = Settings::new(WORKER, incarnation, options.guardian);
        settings.logs = options.logs;
        settings.functions = options.functions;
        settings.slots.process = options.slots.unwrap_or(settings.slots.process);
        let worker = Worker::new(settings);
        let control = worker.control();
        let (link, end) = tidegate_worker::link();
        let deliveries = engine.attach(Name::new(WORKER));
        tokio::spawn(forward(engine.clone(), end, deliveries, incarnation));
        let worker_done = tokio::spawn(async move {
            // It ends when it was shut down, or when the engine is gone; there is nobody left to tell.
            let _ = worker.run(link).await;
        });
        Ok(Local { engine, worker: control, worker_done, reader: Box::new(reader) })
    }

    pub async fn declare(&self, declare: Declare) -> Result<(), LocalError> {
        self.ask(Command::Declare(declare)).await.map(|_| ())
    }

    /// Submits under a new id; the answer is repeated until it is sure.
    pub async fn submit(
        &self,
        what: Submission,
        tags: Vec<(Name, Name)>,
        priority: i8,
    ) -> Result<(RunId, NodeId), LocalError> {
        let id = RunId(uuid::Uuid::now_v7().as_u128());
        let idempotency = Some(Name::new(id.to_string()));
        let submit = Submit { id, what, tags, priority, due: None, idempotency };
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

    /// Hands back what runs, and ends.
    pub async fn shut_down(self) {
        self.worker.shut_down();
        // A worker that panicked has nothing left to hand back.
        let _ = self.worker_done.await;
        self.engine.shut_down();
    }
}

/// Carries messages between the engine and the worker.
async fn forward(
    engine: Engine,
    end: EngineEnd,
    mut deliveries: mpsc::UnboundedReceiver<Delivery>,
    incarnation: u64,
) {
    let EngineEnd { to_worker, mut from_worker } = end;
    let sender = to_worker.clone();
    tokio::spawn(async move {
        while let Some(delivery) = deliveries.recv().await {
            let message = match delivery {
                Delivery::Attempt { attempt, run, age } => {
                    let granted = tidegate_worker::clock::now() - age.into();
                    ToWorker::Attempt { attempt, run, granted }
                }
                Delivery::Stop(lease) => ToWorker::Stop(lease),
            };
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    while let Some(message) = from_worker.recv().await {
        let (engine, to_worker) = (engine.clone(), to_worker.clone());
        // Joining comes first and leaving last; everything between may overtake.
        match message {
            ToEngine::Join(_) | ToEngine::Leave | ToEngine::Draining => {
                tell_engine(&engine, &to_worker, message, incarnation).await;
            }
            _ => drop(tokio::spawn(
                async move { tell_engine(&engine, &to_worker, message, incarnation).await },
            )),
        }
    }
}

async fn tell_engine(
    engine: &Engine,
    to_worker: &mpsc::UnboundedSender<ToWorker>,
    message: ToEngine,
    incarnation: u64,
) {
    let worker = Name::new(WORKER);
    let (command, reply): (Command, Box<dyn FnOnce(Answer) -> Option<ToWorker> + Send>) = match message {
        ToEngine::Join(join) => {
            let skills = Skills {
                queues: join.queues,
                labels: join.labels,
                functions: join.functions,
                processes: join.slots.process > 0,
            };
            let slots = SlotCounts { process: join.slots.process, io: join.slots.io };
            (Command::Join(Join { worker, incarnation, skills, slots }), Box::new(|_| None))
        }
        ToEngine::Heartbeat { heartbeat, sent } => {
            let reply = move |answer| match answer {
                Answer::Renewal(renewal) => Some(ToWorker::Renewal { renewal, sent }),
                _ => None,
            };
            (Command::Heartbeat(heartbeat), Box::new(reply))
        }
        ToEngine::Report { lease, outcome } => {
            // A worker that hands back is about to leave: it must not get the same thing again.
            let offer = (outcome == Outcome::HandedBack).then(SlotCounts::default);
            let finish = Finish { worker, lease, outcome, offer };
            (Command::Finish(finish), Box::new(move |_| Some(ToWorker::Reported(lease))))
        }
        ToEngine::Draining => {
            (Command::Offer { worker, incarnation, slots: SlotCounts::default() }, Box::new(|_| None))
        }
        ToEngine::Leave => (Command::Leave(Leave { worker, incarnation }), Box::new(|_| None)),
    };
    if let Ok(answer) = engine.insist(command).await
        && let Some(message) = reply(answer)
    {
        // A worker that is gone does not need it.
        let _ = to_worker.send(message);
    }
}
