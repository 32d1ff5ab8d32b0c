//! The shell: a task that steps a [`Server`], a thread that talks to the store, and what carries out effects.
//!
//! It decides nothing. Whatever the server says is done in the order in which it says it.

use crate::server::{Input, Output, Server};
use crate::writer::Ticket;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;
use tidegate_core::explain::Explanation;
use tidegate_core::ids::{Name, RunId, TaskId};
use tidegate_core::protocol::{Answer, Attempt, Command, Effect, Evaluation, Lease};
use tidegate_core::time::Moment;
use tidegate_core::{Asked, Core};
use tidegate_store::{Entry, Reads, Store, StoreError};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

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
    Attach(Name, mpsc::UnboundedSender<Delivery>),
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
                other => return other,
            }
            pause = (pause * 2).min(ASK_AGAIN_LAST);
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

    /// Attempts for the worker of this name go here.
    pub fn attach(&self, worker: Name) -> mpsc::UnboundedReceiver<Delivery> {
        let (sender, receiver) = mpsc::unbounded_channel();
        // If the engine has ended the receiver says so at once.
        let _ = self.requests.send(Request::Attach(worker, sender));
        receiver
    }

    /// Gives up the lead and ends.
    pub fn shut_down(&self) {
        let _ = self.requests.send(Request::ShutDown);
    }
}

/// A clock that only goes forward, beginning at the wall clock's time.
#[derive(Clone, Copy)]
struct LocalClock {
    wall: Moment,
    start: Instant,
}

impl LocalClock {
    fn start() -> Self {
        let wall = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(Moment(0), |since| Moment(i64::try_from(since.as_micros()).unwrap_or(i64::MAX)));
        LocalClock { wall, start: Instant::now() }
    }

    fn now(&self) -> Moment {
        self.wall + self.start.elapsed().into()
    }

    fn instant(&self, at: Moment) -> Instant {
        self.start + Duration::from(at.since(self.wall))
    }
}

struct Shell {
    server: Server,
    clock: LocalClock,
    inbox: mpsc::UnboundedReceiver<Request>,
    store_jobs: std::sync::mpsc::Sender<Output>,
    store_results: mpsc::UnboundedReceiver<Input>,
    tickets: BTreeMap<Ticket, Reply>,
    next_ticket: Ticket,
    workers: BTreeMap<Name, mpsc::UnboundedSender<Delivery>>,
    reader: Arc<Mutex<Box<dyn Reads>>>,
    evaluator: Arc<dyn Evaluate>,
    entries: broadcast::Sender<Arc<Entry>>,
    outage: watch::Sender<Option<StoreError>>,
    /// For commands that follow from effects.
    internal: mpsc::UnboundedSender<Request>,
}

impl Shell {
    async fn run(mut self) {
        self.handle(Input::Tick);
        loop {
            let wake = self.server.next_wake().map(|at| self.clock.instant(at));
            let timer = async {
                match wake {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(result) = self.store_results.recv() => self.handle(result),
                request = self.inbox.recv() => match request {
                    Some(Request::ShutDown) | None => return self.handle(Input::Resign),
                    Some(request) => self.take_all(request),
                },
                () = timer => self.handle(Input::Tick),
            }
        }
    }

    /// Takes in everything that waits before the writer steps, so that one commit serves many.
    fn take_all(&mut self, first: Request) {
        let mut next = Some(first);
        while let Some(request) = next {
            match request {
                Request::Command(command, reply) => self.take(command, reply),
                Request::Read(read) => read(self.server.core(), self.server.engine_time(self.clock.now())),
                Request::Attach(name, sender) => drop(self.workers.insert(name, sender)),
                Request::ShutDown => return self.handle(Input::Resign),
            }
            next = self.inbox.try_recv().ok();
        }
        self.handle(Input::Tick);
    }

    fn take(&mut self, command: Command, reply: Reply) {
        self.next_ticket += 1;
        self.tickets.insert(self.next_ticket, reply);
        self.handle(Input::Command { ticket: self.next_ticket, command });
    }

    fn handle(&mut self, input: Input) {
        let mut outputs = Vec::new();
        self.server.handle(input, self.clock.now(), &mut outputs);
        // Told first, so that whoever is turned away because of it finds it told.
        self.outage.send_if_modified(|told| {
            let changed = told.as_ref() != self.server.outage();
            if changed {
                *told = self.server.outage().cloned();
            }
            changed
        });
        for output in outputs {
            self.carry_out(output);
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Answer { ticket, answer } => {
                if let Some(reply) = self.tickets.remove(&ticket) {
                    let _ = reply.send(answer.ok_or_else(|| self.unavailable()));
                }
            }
            Output::Written(entry) => {
                // Nobody may be listening.
                let _ = self.entries.send(entry);
            }
            Output::Effect(effect) => self.effect(effect),
            job => {
                // The store's thread ends only when this sender does.
                let _ = self.store_jobs.send(job);
            }
        }
    }

    fn unavailable(&self) -> EngineError {
        self.server.outage().cloned().map_or(EngineError::Unavailable, EngineError::Outage)
    }

    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Deliver { worker, lease, order, length, number, at } => {
                let Some(sender) = self.workers.get(&worker).cloned() else { return };
                let Some(run) = self.server.core().and_then(|core| core.root_id(lease.task.node)) else {
                    return;
                };
                // The worker counts from `age` ago, so all of the lease is left.
                let age = self.server.engine_time(self.clock.now()).since(at).into();
                let deliver = move |order| {
                    let attempt = Attempt { lease, order, length, left: length, number };
                    // A worker that is gone is noticed by its silence.
                    let _ = sender.send(Delivery::Attempt { attempt, run, age });
                };
                match order {
                    Some(order) => deliver(order),
                    None => self.with_reader(move |store| {
                        if let Ok(Some(order)) = store.payload(lease.task) {
                            deliver(order);
                        }
                    }),
                }
            }
            Effect::Stop { worker, lease } => {
                if let Some(sender) = self.workers.get(&worker) {
                    let _ = sender.send(Delivery::Stop(lease));
                }
            }
            Effect::Ask(question) => {
                let Some(asked) = self.server.core().and_then(|core| core.asked(question)) else { return };
                let (evaluator, internal) = (self.evaluator.clone(), self.internal.clone());
                self.with_reader(move |store| {
                    let evaluation = evaluator
                        .evaluate(&asked, store)
                        .unwrap_or_else(|error| Evaluation::Failed { error: error.to_string() });
                    let (reply, _) = oneshot::channel();
                    let _ =
                        internal.send(Request::Command(Command::Evaluated { question, evaluation }, reply));
                });
            }
        }
    }

    fn with_reader(&self, work: impl FnOnce(&mut dyn Reads) + Send + 'static) {
        let reader = self.reader.clone();
        tokio::task::spawn_blocking(move || {
            let mut store = reader.lock().unwrap_or_else(PoisonError::into_inner);
            work(store.as_mut());
        });
    }
}

/// The thread that owns the store: one job after the other, in the order they were given.
fn store_thread(
    name: Name,
    mut store: Box<dyn Store>,
) -> (std::sync::mpsc::Sender<Output>, mpsc::UnboundedReceiver<Input>) {
    let (jobs, inbox) = std::sync::mpsc::channel();
    let (results, outbox) = mpsc::unbounded_channel();
    let work = move || {
        for job in inbox {
            let result = match job {
                Output::Lead { mine, lease } => Input::Led(store.lead(&name, mine, lease)),
                Output::Load => Input::Loaded(store.load()),
                Output::Commit(entry) => Input::Committed(store.commit(&entry)),
                Output::Resign { term } => {
                    // The lease ends by itself if this cannot be said.
                    let _ = store.resign(term);
                    continue;
                }
                Output::Reopen => {
                    // If it cannot be opened, what is asked next fails and says why.
                    let _ = store.reopen();
                    continue;
                }
                Output::Answer { .. } | Output::Effect(_) | Output::Written(_) => continue,
            };
            if results.send(result).is_err() {
                return;
            }
        }
    };
    // Without its thread nothing can be stored: every command is then answered as unavailable.
    let _ = std::thread::Builder::new().name("store".to_owned()).spawn(work);
    (jobs, outbox)
}
