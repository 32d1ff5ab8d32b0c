//! The shell: a task that steps a [`Server`], a thread that talks to the store, and what carries out effects.
//!
//! It decides nothing. Whatever the server says is done in the order in which it says it.

mod clock;
mod effects;
mod errands;
mod evaluate;
mod forward;
mod gathering;
mod letters;
mod one_form;
mod overview;
mod patience;
mod request;
mod results;
mod retries;
mod store_thread;
mod told;
mod upkeep;
mod work;

pub use evaluate::{Evaluate, Prepared};
pub use one_form::in_one_form;
pub use tidegate_wire::Definition;

use crate::reader::Reader;
pub(crate) use errands::is_urgent;
use letters::Newcomer;
pub(crate) use patience::ANSWER_WITHIN;
pub(crate) use request::ReplyTo;
use request::{Errand, Request};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store_thread::CommitTimes;
use thiserror::Error;
use tidegate_core::explain::Explanation;
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::{Answer, Attempt, Command, Finish, Lease, Retry, Submit};
use tidegate_core::time::Moment;
use tidegate_core::{Core, Lost, Waits};
use tidegate_store::{Before, Contact, Entry, Pruned, Retention, Store, StoreError};
use tidegate_wire::{self as wire, Query, Reply};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

/// Entries a slow subscriber may fall behind before it is told that it missed some.
const EVENTS_KEPT: usize = 1_024;

/// Callers whose commands have not been looked at yet; the next one waits until there is room.
const CALLERS: usize = 256;

/// How long to wait before asking again: at first, and at most.
const ASK_AGAIN_FIRST: Duration = Duration::from_millis(20);
const ASK_AGAIN_LAST: Duration = Duration::from_millis(500);

/// What kind of engine to be.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Different for every server of a cluster.
    pub name: Name,
    /// Where other servers reach this one. Only stores that several machines share need it.
    pub contact: Option<Contact>,
    /// How long history is kept, and no shorter than [`KEEP_AT_LEAST`](tidegate_store::KEEP_AT_LEAST).
    pub retention: Retention,
    /// See [`Server::keeping_digests`](crate::Server::keeping_digests).
    pub keeps_digests: bool,
}

impl Settings {
    /// Alone, and keeping history as long as it is kept by default.
    pub fn new(name: impl Into<Name>) -> Self {
        let retention = Retention::default();
        Settings { name: name.into(), contact: None, retention, keeps_digests: false }
    }
}

/// What a worker in this process is told.
#[derive(Debug)]
pub enum Delivery {
    /// The lease began `age` before `as_of`, or later.
    Attempt {
        attempt: Attempt,
        run: RunId,
        age: Duration,
        as_of: Instant,
    },
    Stop(Lease),
    /// A report was taken in, whether or not it came in time.
    Reported(Lease),
    /// End these at once and forget them: say so when they have ended.
    Abort(Vec<Lease>, oneshot::Sender<()>),
    /// A worker of the same name has started since, as this incarnation: there is nothing more for older ones.
    Replaced {
        by: u64,
    },
}

/// Hands something to a worker.
pub type Deliver = Box<dyn Fn(Delivery) -> bool + Send>;

/// Tells one way to a worker from another that came after it.
pub type Attachment = Arc<()>;

/// The way to a worker.
struct Attached {
    incarnation: u64,
    deliver: Deliver,
    attachment: Attachment,
}

#[derive(Clone, Debug, Error)]
pub enum EngineError {
    /// Ask again: it may or may not have happened.
    #[error("the engine cannot answer now; ask again")]
    Unavailable,
    /// As [`EngineError::Unavailable`], and it may take a while: the store cannot be used. The engine tries on.
    #[error("{0}; ask again")]
    Outage(StoreError),
    /// As [`EngineError::Unavailable`], and it may take a while: another process leads, and this one does not get through
    /// to it. The engine tries on.
    #[error("another process leads, and {0}; ask again")]
    Unreachable(String),
    #[error("the engine has ended")]
    Ended,
}

impl EngineError {
    /// Whether the same may be answered later.
    pub fn may_pass(&self) -> bool {
        !matches!(self, EngineError::Ended)
    }
}

/// A handle to a running engine; cheap to clone.
#[derive(Clone)]
pub struct Engine {
    /// Bounded: who wants more done than can be done waits here.
    callers: mpsc::Sender<Errand>,
    /// What keeps or frees something, and what is only read. Everybody who uses it waits for an answer, and workers
    /// have no more to say than they have slots: so it needs no bound of its own.
    urgent: mpsc::UnboundedSender<Request>,
    entries: broadcast::Sender<Arc<Entry>>,
    outage: watch::Receiver<Option<StoreError>>,
    /// The newest entry that is known to be durable, here or where another server leads.
    reached: watch::Sender<Option<u64>>,
    commits: CommitTimes,
    /// Other servers may lead.
    is_shared: bool,
}

impl Engine {
    /// Starts an engine over a store of which `reader` has more handles. Must be called inside a runtime.
    pub fn start(
        settings: Settings,
        store: Box<dyn Store>,
        reader: impl Into<Reader>,
        evaluator: Arc<dyn Evaluate>,
    ) -> Engine {
        let (callers, errands) = mpsc::channel(CALLERS);
        let (urgent, requests) = mpsc::unbounded_channel();
        let (entries, _) = broadcast::channel(EVENTS_KEPT);
        let (outage_teller, outage) = watch::channel(None);
        let (reached, is_shared) = (watch::Sender::new(None), settings.contact.is_some());
        let commits = CommitTimes::default();
        let engine = Engine { callers, urgent, entries, outage, reached, commits, is_shared };
        work::Shell::start(
            &engine,
            settings,
            (errands, requests),
            (store, reader.into()),
            evaluator,
            outage_teller,
        );
        engine
    }

    /// Sends a command and waits until what it did is durable.
    pub async fn send(&self, command: Command) -> Result<Answer, EngineError> {
        let answers = self.carry_out(vec![command], true, true).await?;
        answers.into_iter().next().ok_or(EngineError::Unavailable)
    }

    /// Submits what was never submitted before, under ids that were made for it: nobody need look whether it was. Asks
    /// again until there is an answer or the store cannot be used.
    pub async fn submit_new(&self, submits: Vec<Submit>) -> Result<Vec<Answer>, EngineError> {
        self.ask_for_new(submits.into_iter().map(Command::Submit).collect()).await
    }

    async fn ask_for_new(&self, commands: Vec<Command>) -> Result<Vec<Answer>, EngineError> {
        match self.carry_out(commands.clone(), false, true).await {
            Err(EngineError::Unavailable) => {
                tokio::time::sleep(ASK_AGAIN_FIRST).await;
                self.insist_on_all(commands).await
            }
            answers => answers,
        }
    }

    /// Retries what has ended, under an id that was made for this. Asks again as [`Engine::submit_new`] does.
    pub async fn retry(&self, retry: Retry) -> Result<Answer, EngineError> {
        let answers = self.ask_for_new(vec![Command::Retry(retry)]).await?;
        answers.into_iter().next().ok_or(EngineError::Unavailable)
    }

    /// Like [`Engine::send`], but asks again until there is an answer or the store cannot be used. Only for commands
    /// that may be repeated.
    pub async fn insist(&self, command: Command) -> Result<Answer, EngineError> {
        let answers = self.insist_on_all(vec![command]).await?;
        answers.into_iter().next().ok_or(EngineError::Unavailable)
    }

    /// The same for commands that belong together: they are answered when what all of them did is durable. If there is no
    /// answer, some may have been carried out and others not.
    pub async fn insist_on_all(&self, commands: Vec<Command>) -> Result<Vec<Answer>, EngineError> {
        self.ask_again_if(commands, |error| matches!(error, EngineError::Unavailable)).await
    }

    /// Like [`Engine::insist`], but waits for the store too.
    pub async fn outlast(&self, command: Command) -> Result<Answer, EngineError> {
        let answers = self.ask_again_if(vec![command], EngineError::may_pass).await?;
        answers.into_iter().next().ok_or(EngineError::Unavailable)
    }

    async fn ask_again_if(
        &self,
        commands: Vec<Command>,
        again: fn(&EngineError) -> bool,
    ) -> Result<Vec<Answer>, EngineError> {
        let mut pause = ASK_AGAIN_FIRST;
        loop {
            match self.carry_out(commands.clone(), true, true).await {
                Err(error) if again(&error) => tokio::time::sleep(pause).await,
                answers => return answers,
            }
            // Who begins to lead does so in a moment; a disk stays full for longer.
            if self.outage.borrow().is_some() {
                pause = (pause * 2).min(ASK_AGAIN_LAST);
            }
        }
    }

    /// `again`: they may have been carried out before. Without `forward` only this server may carry them out.
    pub(crate) async fn carry_out(
        &self,
        commands: Vec<Command>,
        again: bool,
        forward: bool,
    ) -> Result<Vec<Answer>, EngineError> {
        self.post(commands, again, forward).await?.await.map_err(|_| EngineError::Ended)?
    }

    /// Hands commands over, in the order in which this is called; the answers come later.
    pub(crate) async fn post(
        &self,
        commands: Vec<Command>,
        again: bool,
        forward: bool,
    ) -> Result<oneshot::Receiver<request::Answers>, EngineError> {
        let (reply, answers) = oneshot::channel();
        let errand = Errand { commands, again, forward, kept: None, reply };
        if is_urgent(&errand.commands) {
            self.ask_for(Request::Errand(errand))?;
        } else {
            self.callers.send(errand).await.map_err(|_| EngineError::Ended)?;
        }
        Ok(answers)
    }

    fn ask_for(&self, request: Request) -> Result<(), EngineError> {
        self.urgent.send(request).map_err(|_| EngineError::Ended)
    }

    /// Why the store cannot be used, as long as it cannot.
    pub fn outage(&self) -> watch::Receiver<Option<StoreError>> {
        self.outage.clone()
    }

    /// How long commits of this server took so far.
    pub fn commit_times(&self) -> Waits {
        self.commits.so_far()
    }

    /// Reads from the core, between two batches. Only where this server leads.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Core, Moment) -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        let (reply, answer) = oneshot::channel();
        let read = Box::new(move |core: Option<&Core>, now: Moment| {
            // Whoever asked may have gone away meanwhile.
            let _ = reply.send(core.map(|core| read(core, now)));
        });
        self.ask_for(Request::Read(read))?;
        answer.await.map_err(|_| EngineError::Ended)?.ok_or(EngineError::Unavailable)
    }

    /// What an open task does or waits for.
    pub async fn explain(&self, task: TaskId) -> Result<Option<Explanation>, EngineError> {
        match self.query(Query::Explain(task), true).await? {
            Reply::Explanation(Ok(explanation)) => Ok(explanation.map(|explanation| *explanation)),
            _ => Err(EngineError::Unavailable),
        }
    }

    /// The same by the name people use.
    pub async fn explain_named(&self, name: &str) -> Result<Result<Option<Explanation>, Lost>, EngineError> {
        match self.query(Query::ExplainNamed(name.to_owned()), true).await? {
            Reply::Explanation(explained) => Ok(explained.map(|explained| explained.map(|boxed| *boxed))),
            _ => Err(EngineError::Unavailable),
        }
    }

    /// What was submitted under an id, open or ended.
    pub async fn find(&self, id: RunId) -> Result<Option<NodeId>, EngineError> {
        Ok(self.found(Query::FindId(id)).await?.map(|(node, _)| node))
    }

    /// What was submitted under an idempotency key, and the id it got then.
    pub async fn find_key(&self, key: Name) -> Result<Option<(NodeId, RunId)>, EngineError> {
        self.found(Query::FindKey(key)).await
    }

    async fn found(&self, query: Query) -> Result<Option<(NodeId, RunId)>, EngineError> {
        match self.query(query, true).await? {
            Reply::Found(found) => Ok(found),
            _ => Err(EngineError::Unavailable),
        }
    }

    /// What a name stands for.
    pub async fn definition(&self, name: Name) -> Result<Definition, EngineError> {
        match self.query(Query::Definition(name), true).await? {
            Reply::Definition(definition) => Ok(definition),
            _ => Err(EngineError::Unavailable),
        }
    }

    /// Engine time.
    pub async fn now(&self) -> Result<Moment, EngineError> {
        match self.query(Query::Now, true).await? {
            Reply::Now(now) => Ok(now),
            _ => Err(EngineError::Unavailable),
        }
    }

    /// How a run ended, as soon as it has; nothing if there is no such run.
    pub async fn result(&self, id: RunId) -> Result<Option<wire::Result>, EngineError> {
        match self.query(Query::Result(id), true).await? {
            Reply::Result(result) => Ok(result),
            _ => Err(EngineError::Unavailable),
        }
    }

    /// Without `forward` only this server may answer.
    pub(crate) async fn query(&self, query: Query, forward: bool) -> Result<Reply, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.ask_for(Request::Query { query, forward, reply })?;
        answer.await.map_err(|_| EngineError::Ended)?
    }

    /// Deletes a little of what ended before `before`, whichever server leads, and gives what went. Ask again until
    /// no row does.
    pub async fn prune(&self, before: Before) -> Result<Pruned, EngineError> {
        let (reply, gone) = oneshot::channel();
        self.ask_for(Request::Prune { before, reply })?;
        gone.await.map_err(|_| EngineError::Ended)?
    }

    /// What becomes durable from now on, where this server leads.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Entry>> {
        self.entries.subscribe()
    }

    /// The newest entry that is known to be durable, whoever leads. Nothing as long as nobody is known to.
    pub(crate) fn reached(&self) -> watch::Receiver<Option<u64>> {
        self.reached.subscribe()
    }

    /// Whether other servers may lead.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// This entry is durable. What comes late changes nothing.
    pub(crate) fn reach(&self, sequence: u64) {
        self.reached.send_if_modified(|reached| {
            let is_news = reached.is_none_or(|reached| reached < sequence);
            if is_news {
                *reached = Some(sequence);
            }
            is_news
        });
    }

    /// Attempts for this start of the worker of this name go here.
    pub fn attach(&self, worker: Name, incarnation: u64) -> mpsc::UnboundedReceiver<Delivery> {
        let (sender, receiver) = mpsc::unbounded_channel();
        // If the engine has ended the receiver says so at once.
        self.attach_to(worker, incarnation, Box::new(move |delivery| sender.send(delivery).is_ok()));
        receiver
    }

    /// The same, without anybody in between: `deliver` is called where decisions are carried out, and must not wait. It
    /// says whether the worker is still there.
    pub fn attach_to(&self, worker: Name, incarnation: u64, deliver: Deliver) -> Attachment {
        let attachment = Attachment::default();
        let attached = Attached { incarnation, deliver, attachment: attachment.clone() };
        // If the engine has ended, `deliver` is dropped.
        let _ = self.ask_for(Request::Attach { worker, attached, forward: true });
        attachment
    }

    /// This start of a worker is not reached here any more, or not in that way: nobody who leads later is told of it by
    /// this process.
    pub fn forget(&self, worker: Name, incarnation: u64, attachment: Attachment) {
        // An engine that has ended tells nobody anything.
        let _ = self.ask_for(Request::Forget { worker, incarnation, attachment });
    }

    /// The worker of another server, for as long as this one leads.
    pub(crate) fn attach_guest(
        &self,
        worker: Name,
        incarnation: u64,
        attachment: Attachment,
    ) -> mpsc::UnboundedReceiver<Delivery> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let deliver: Deliver = Box::new(move |delivery| sender.send(delivery).is_ok());
        let attached = Attached { incarnation, deliver, attachment };
        // If the engine has ended the receiver says so at once.
        let _ = self.ask_for(Request::Attach { worker, attached, forward: false });
        receiver
    }

    /// The worker of another server cannot be reached that way any more.
    pub(crate) fn detach_guest(&self, worker: Name, attachment: Attachment) {
        // If the engine has ended it reaches nobody.
        let _ = self.ask_for(Request::Detach { worker, attachment });
    }

    /// Attempts of an attached worker that ended. Each is acknowledged by a delivery; one that is not is to be reported
    /// again.
    pub fn report(&self, finished: Vec<Finish>) {
        // If the engine has ended the deliveries have, too.
        let _ = self.ask_for(Request::Reports(finished));
    }

    /// From the server that leads, for a worker of this process.
    pub(crate) fn forwarded(&self, worker: Name, delivery: Delivery) -> Result<(), EngineError> {
        self.ask_for(Request::Forwarded(worker, delivery))
    }

    /// When it has ended.
    pub async fn ended(&self) {
        self.urgent.closed().await;
    }

    /// Takes nothing more in, makes durable what was taken in, gives up the lead, closes the store, and ends. A store that
    /// does not answer is not waited for longer than a few seconds.
    pub async fn shut_down(&self) {
        let (told, ended) = oneshot::channel();
        if self.ask_for(Request::ShutDown(told)).is_ok() {
            let _ = ended.await;
        }
    }
}
