//! The shell: a task that steps a [`Server`], a thread that talks to the store, and what carries out effects.
//!
//! It decides nothing. Whatever the server says is done in the order in which it says it.

mod clock;
mod effects;
mod store_thread;
mod work;

use crate::server::Server;
use clock::LocalClock;
use effects::Parcel;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store_thread::store_thread;
use thiserror::Error;
use tidegate_core::explain::Explanation;
use tidegate_core::ids::{Name, RunId, TaskId};
use tidegate_core::protocol::{Answer, Attempt, Command, Evaluation, Lease, Payload};
use tidegate_core::time::Moment;
use tidegate_core::{Asked, Core};
use tidegate_store::{Entry, Reads, Store, StoreError};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use work::Shell;

/// Entries a slow subscriber may fall behind before it is told that it missed some.
const EVENTS_KEPT: usize = 4_096;

/// How long to wait before asking again: at first, and at most.
const ASK_AGAIN_FIRST: Duration = Duration::from_millis(20);
const ASK_AGAIN_LAST: Duration = Duration::from_millis(500);

/// Renders templates. Called off the writer, from a thread that may block.
pub trait Evaluate: Send + Sync {
    fn evaluate(&self, asked: &Asked, store: &mut dyn Reads) -> Result<Evaluation, StoreError>;
}

/// What a worker in this process is told.
#[derive(Clone, PartialEq, Debug)]
pub enum Delivery {
    /// `age` is how long ago the lease began.
    Attempt {
        attempt: Attempt,
        run: RunId,
        age: Duration,
    },
    Stop(Lease),
}

#[derive(Debug, Error)]
pub enum EngineError {
    /// Ask again: it may or may not have happened.
    #[error("the engine cannot answer now; ask again")]
    Unavailable,
    /// As [`EngineError::Unavailable`], and it may take a while: the store cannot be used. The engine tries on.
    #[error("{0}; ask again")]
    Outage(StoreError),
    #[error("the engine has ended")]
    Ended,
}

/// Something to be done with the core between two batches, if there is one.
type Look = Box<dyn FnOnce(Option<&Core>, Moment) + Send>;

type Reply = oneshot::Sender<Result<Answer, EngineError>>;

enum Request {
    Command(Command, Reply),
    Read(Look),
    Attach(Name, u64, mpsc::UnboundedSender<Delivery>),
    /// The order of an attempt was read.
    HandOver(Parcel, Payload),
    ShutDown,
}

/// A handle to a running engine; cheap to clone.
#[derive(Clone)]
pub struct Engine {
    requests: mpsc::UnboundedSender<Request>,
    entries: broadcast::Sender<Arc<Entry>>,
    outage: watch::Receiver<Option<StoreError>>,
}

impl Engine {
    /// Starts an engine over a store of which `reader` is a second handle. Must be called inside a runtime.
    pub fn start(
        name: Name,
        store: Box<dyn Store>,
        reader: Box<dyn Reads>,
        evaluator: Arc<dyn Evaluate>,
    ) -> Engine {
        let (requests, inbox) = mpsc::unbounded_channel();
        let (entries, _) = broadcast::channel(EVENTS_KEPT);
        let (outage_teller, outage) = watch::channel(None);
        let (store_jobs, store_results) = store_thread(name.clone(), store);
        let shell = Shell {
            server: Server::new(name),
            clock: LocalClock::start(),
            inbox,
            store_jobs,
            store_results,
            newcomers: VecDeque::new(),
            tickets: BTreeMap::new(),
            next_ticket: 0,
            workers: BTreeMap::new(),
            reader: Arc::new(Mutex::new(reader)),
            evaluator,
            entries: entries.clone(),
            outage: outage_teller,
            internal: requests.clone(),
        };
        tokio::spawn(shell.run());
        Engine { requests, entries, outage }
    }

    /// Sends a command and waits until what it did is durable.
    pub async fn send(&self, command: Command) -> Result<Answer, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request::Command(command, reply)).map_err(|_| EngineError::Ended)?;
        answer.await.map_err(|_| EngineError::Ended)?
    }

    /// Like [`Engine::send`], but asks again until there is an answer or the store cannot be used. Only for commands
    /// that may be repeated.
    pub async fn insist(&self, command: Command) -> Result<Answer, EngineError> {
        self.ask_again_if(command, |error| matches!(error, EngineError::Unavailable)).await
    }

    /// Like [`Engine::insist`], but waits for the store too.
    pub async fn outlast(&self, command: Command) -> Result<Answer, EngineError> {
        self.ask_again_if(command, |error| !matches!(error, EngineError::Ended)).await
    }

    async fn ask_again_if(
        &self,
        command: Command,
        again: fn(&EngineError) -> bool,
    ) -> Result<Answer, EngineError> {
        let mut pause = ASK_AGAIN_FIRST;
        loop {
            match self.send(command.clone()).await {
                Err(error) if again(&error) => tokio::time::sleep(pause).await,
                answer => return answer,
            }
            // Who begins to lead does so in a moment; a disk stays full for longer.
            if self.outage.borrow().is_some() {
                pause = (pause * 2).min(ASK_AGAIN_LAST);
            }
        }
    }

    /// Why the store cannot be used, as long as it cannot.
    pub fn outage(&self) -> watch::Receiver<Option<StoreError>> {
        self.outage.clone()
    }

    /// Reads from the core, between two batches.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Core, Moment) -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        let (reply, answer) = oneshot::channel();
        let read = Box::new(move |core: Option<&Core>, now: Moment| {
            // Whoever asked may have gone away meanwhile.
            let _ = reply.send(core.map(|core| read(core, now)));
        });
        self.requests.send(Request::Read(read)).map_err(|_| EngineError::Ended)?;
        answer.await.map_err(|_| EngineError::Ended)?.ok_or(EngineError::Unavailable)
    }

    pub async fn explain(&self, task: TaskId) -> Result<Option<Explanation>, EngineError> {
        self.read(move |core, now| core.explain(task, now)).await
    }

    /// What becomes durable from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Entry>> {
        self.entries.subscribe()
    }

    /// Attempts for this start of the worker of this name go here.
    pub fn attach(&self, worker: Name, incarnation: u64) -> mpsc::UnboundedReceiver<Delivery> {
        let (sender, receiver) = mpsc::unbounded_channel();
        // If the engine has ended the receiver says so at once.
        let _ = self.requests.send(Request::Attach(worker, incarnation, sender));
        receiver
    }

    /// Gives up the lead and ends.
    pub fn shut_down(&self) {
        let _ = self.requests.send(Request::ShutDown);
    }
}
