//! The handle that everything else hangs on: one engine over one store.

use crate::action::{ActionBuilder, origin};
use crate::builder::Builder;
use crate::error::Error;
use crate::events::Events;
use crate::limits::Limits;
use crate::registry::Registry;
use crate::retry::Retry;
use crate::run::Run;
use crate::store::Place;
use crate::submit::{self, Submit};
use crate::work::Work;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::panic::Location;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tidegate_core::explain::Explanation;
use tidegate_core::ids::{Name, RunId};
use tidegate_core::model::Pool;
use tidegate_core::protocol::{Answer, Command};
use tidegate_engine::events::{Entries, Position, Subscription};
use tidegate_engine::{Definition, Engine, EngineError, Reader};
use tidegate_flow::{Document, Elsewhere, parse_with};
use tidegate_store::{KEEP_AT_LEAST, Reads, Retention, StoreError};
use tidegate_worker::{Ctx, Functions};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// How long an engine that is not ready yet is left alone.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// An engine in this process. Cheap to clone; the engine ends with the last clone.
///
/// ```
/// use tidegate::{Ctx, Tidegate};
///
/// async fn double(_: Ctx, number: i64) -> Result<i64, String> {
///     number.checked_mul(2).ok_or("too large".to_owned())
/// }
///
/// # #[tokio::main] async fn main() -> Result<(), tidegate::Error> {
/// let tide = Tidegate::open("memory:").await?;
/// tide.action("double", double).concurrency(4);
/// let mut working = tide.work(8).start().await?;
/// let run = tide.submit("double", &21).await?;
/// assert_eq!(run.result::<i64>().await?, 42);
/// working.stop().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Tidegate {
    shared: Arc<Shared>,
    /// On whose behalf changes are made.
    by: Option<Name>,
}

struct Shared {
    engine: Engine,
    reader: Reader,
    /// For those who ask once, and do not wait for anything to happen.
    looks: Reader,
    place: Place,
    registry: Registry,
    /// Of this process, among those that share the store.
    name: Name,
    /// How many workers were given a name.
    workers: AtomicU32,
    /// The engine's.
    runtime: Handle,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let engine = self.engine.clone();
        // Whichever thread this is. A runtime that has ended has taken the engine along.
        self.runtime.spawn(async move { engine.shut_down().await });
    }
}

impl Tidegate {
    /// Opens (or makes) a store, and goes on with whatever is open in it. The address is
    /// - `sqlite:PATH`, a file that this process then has for itself, unless it [shares it](Builder::share_file);
    /// - `postgres://USER:PASSWORD@HOST/DATABASE`, which any number of processes on any number of machines share;
    /// - `memory:`, which is gone with the process.
    ///
    /// Processes that share a store reach each other on a private port of 127.0.0.1, unless [`Tidegate::builder`] says
    /// otherwise.
    pub async fn open(address: &str) -> Result<Tidegate, Error> {
        Tidegate::builder(address).open().await
    }

    /// The same, with more to say about it.
    pub fn builder(address: &str) -> Builder {
        Builder::new(address)
    }

    pub(crate) async fn start(
        engine: Engine,
        (reader, looks): (Reader, Reader),
        place: Place,
        name: Name,
    ) -> Result<Tidegate, Error> {
        let (registry, workers) = (Registry::new(), AtomicU32::new(0));
        let shared =
            Shared { engine, reader, looks, place, registry, name, workers, runtime: Handle::current() };
        let tide = Tidegate { shared: Arc::new(shared), by: None };
        // A store that cannot be used now is not given up: whatever is asked of it says so, until it can.
        match tide.ask(Command::Wake).await {
            Err(error) if !error.may_pass() => Err(error),
            _ => Ok(tide),
        }
    }

    /// Defines an action: an async function under a name, called with [`Ctx`] and an input. An error or a panic is a
    /// failure, which is tried again as [`ActionBuilder::retry`] says. The calls that follow on the result describe
    /// limits; each counts at once. Defining a name again replaces it.
    pub fn action<F, I, O, E, R>(&self, name: impl Into<Name>, function: F) -> ActionBuilder<'_>
    where
        F: Fn(Ctx, I) -> R + Send + Sync + 'static,
        I: DeserializeOwned + Send + 'static,
        O: Serialize,
        E: Display,
        R: Future<Output = Result<O, E>> + Send + 'static,
    {
        ActionBuilder::register(&self.shared.registry, name.into(), function)
    }

    /// Defines a pool of so many units, which attempts of actions and steps can take.
    #[track_caller]
    pub fn pool(&self, name: impl Into<Name>, slots: u32) {
        let pool = Pool { name: name.into(), slots, lease: None, origin: origin(Location::caller()) };
        self.shared.registry.change(|definitions| definitions.set_pool(pool));
    }

    /// Defines the flows, actions, limits and pools of a text in the language of flow files. Messages about it name
    /// the line of this call, and the line within the text.
    #[track_caller]
    pub fn flow(&self, text: &str) -> Result<(), Error> {
        let caller = Location::caller();
        let name = format!("{}:{}", caller.file(), caller.line());
        let pools = self.shared.registry.read().pools();
        let elsewhere = pools.as_deref().map_or(Elsewhere::Unknown, Elsewhere::Pools);
        self.define(parse_with(&[(&name, text.as_bytes())], elsewhere)?);
        Ok(())
    }

    /// Defines what was read from files.
    pub fn define(&self, document: Document) {
        self.shared.registry.change(|definitions| definitions.add(document));
    }

    /// Tells the engine what was defined, so that others can ask for it. Whoever submits or starts to work does so by that.
    pub async fn declare(&self) -> Result<(), Error> {
        self.shared.registry.declare(self.engine()).await
    }

    /// Something to be done: one execution of an action, or a run of a flow, by name. It is durable once the result was
    /// awaited. An action that nobody defined is accepted too, and waits for a worker that has it.
    pub fn submit(&self, name: impl Into<Name>, input: &impl Serialize) -> Submit {
        Submit::new(self, name.into(), input)
    }

    /// Submits many in as few commits as possible, in this order. Each is accepted or refused by itself.
    pub async fn submit_many(&self, submits: impl IntoIterator<Item = Submit>) -> Vec<Result<Run, Error>> {
        submit::submit_many(self, submits).await
    }

    /// Something that was submitted, by its id: open or ended, before or after a restart.
    pub async fn run(&self, id: RunId) -> Result<Run, Error> {
        let node = self.insist(|engine| engine.find(id)).await?.ok_or(Error::UnknownRun(id))?;
        Ok(Run::new(self.clone(), id, node))
    }

    /// Does again what has ended without success, as a new run: of the version of its flow that it ran on, with the same
    /// inputs, tags, key of its limits and priority, and the tag `tidegate.retry_of`. Steps that succeeded or were skipped
    /// are reused and not run again, if everything they wait for is reused too; templates read what they put out where they
    /// ran. An action is submitted anew. An idempotency key stays with the run it was given to.
    ///
    /// Refused is what has not ended ([`Refusal::StillOpen`](crate::Refusal::StillOpen)), and what succeeded
    /// ([`Refusal::NothingToRetry`](crate::Refusal::NothingToRetry)) unless it is [repeated](Retry::from_start).
    pub fn retry(&self, run: RunId) -> Retry {
        Retry::new(self, run)
    }

    /// Offers so many slots of this process for functions, and for requests of `http` steps. See [`Work::run_until`].
    pub fn work(&self, slots: u32) -> Work {
        Work::new(self, slots)
    }

    /// Limits, to be changed while everything runs.
    pub fn limits(&self) -> Limits {
        Limits::new(self.clone())
    }

    /// What happens: the catalogue of [`Happening`](crate::Happening), from now on or from a position.
    pub fn events(&self) -> Events {
        Events::new(self, None)
    }

    /// What something does or waits for, by the name people use: `run_…`, `run_…/step`, `run_…/step#3`. So much of an
    /// id is enough as no other open run shares. Nothing if it has ended.
    pub async fn explain(&self, name: &str) -> Result<Option<Explanation>, Error> {
        self.insist(|engine| engine.explain_named(name)).await?.map_err(Error::Lost)
    }

    /// Deletes what ended longer ago than it is to be kept, and gives how many runs and jobs went: little by little, so that nobody
    /// waits long for it. What went is gone also if this is dropped in the middle. Whatever ended less than a minute ago
    /// stays, and so does for a day what was submitted under a key, and a run while another that reuses its steps is open.
    pub async fn prune(&self, keep: impl Into<Retention>) -> Result<u64, Error> {
        let now = self.insist(Engine::now).await?;
        let before = keep.into().at_least(KEEP_AT_LEAST).before(now);
        let mut gone = 0;
        loop {
            let slice = self.insist(|engine| engine.prune(before)).await?;
            gone += slice.roots;
            if slice.rows == 0 {
                return Ok(gone);
            }
        }
    }

    /// Copies the store as it is at one moment into a file, while everything goes on. The copy is a store itself: open it
    /// to go on from it. Only stores in a file are copied; a file that is there already is left alone.
    pub async fn backup(&self, to: impl Into<PathBuf>) -> Result<(), Error> {
        let (place, to) = (self.shared.place.clone(), to.into());
        let copied = tokio::task::spawn_blocking(move || place.back_up(&to)).await;
        copied.map_err(|_| Error::Closed)?
    }

    /// Ends the engine, and waits until it has let go of its store. Stop work first: what runs would be taken for lost.
    pub async fn close(self) {
        self.shared.engine.shut_down().await;
    }

    /// The same engine, for somebody: what is changed by this handle, and by what it gives out, is written down with that
    /// name. Changes are cancellations, priorities, pauses, limits, definitions and tokens.
    pub fn on_behalf_of(&self, who: impl Into<Name>) -> Tidegate {
        Tidegate { by: Some(who.into()), ..self.clone() }
    }

    /// The engine underneath, for what is not covered here.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    // ---- what the other parts of this library need

    /// On whose behalf something is said.
    pub(crate) fn who(&self) -> Name {
        self.by.clone().unwrap_or_else(|| Name::new("program"))
    }

    /// Has a command carried out, again and again while nobody leads.
    #[doc(hidden)]
    pub async fn ask(&self, command: Command) -> Result<Answer, Error> {
        let command = match &self.by {
            Some(who) => Command::By { who: who.clone(), command: Box::new(command) },
            None => command,
        };
        match self.engine().insist(command).await? {
            Answer::Refused(refusal) => Err(refusal.into()),
            answer => Ok(answer),
        }
    }

    /// Asks the engine, again and again while nobody leads.
    pub(crate) async fn insist<'a, T, R>(&'a self, ask: impl Fn(&'a Engine) -> R) -> Result<T, Error>
    where
        R: Future<Output = Result<T, EngineError>>,
    {
        loop {
            match ask(self.engine()).await {
                Err(EngineError::Unavailable) => tokio::time::sleep(LOOK_AGAIN).await,
                result => return Ok(result?),
            }
        }
    }

    /// What a name stands for: what this program says, or what was declared before.
    pub(crate) async fn definition(&self, name: &Name) -> Result<Definition, Error> {
        if let Some(definition) = self.shared.registry.definition(name) {
            return Ok(definition);
        }
        self.insist(|engine| engine.definition(name.clone())).await
    }

    /// Reads from the store: what has ended, and what is open as far as the store knows by now.
    #[doc(hidden)]
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&mut dyn Reads) -> Result<T, StoreError> + Send + Sync + 'static,
    ) -> Result<T, Error> {
        Ok(self.shared.looks.read_soon(work).await?)
    }

    /// What becomes durable from now on, whoever leads, as the store keeps it. [`Tidegate::events`] tells the same in words
    /// that last; the form of entries changes from version to version.
    #[doc(hidden)]
    pub fn entries(&self) -> Entries {
        Entries::new(self.engine(), self.shared.reader.clone())
    }

    pub(crate) fn subscribe(&self, after: Option<Position>) -> Subscription {
        Subscription::new(self.engine(), self.shared.reader.clone(), after)
    }

    pub(crate) fn functions(&self) -> Functions {
        self.shared.registry.read().functions.clone()
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.shared.registry.changes()
    }

    /// Where the store is this process's alone: the same names after a restart, so that what the last process was working
    /// on is recognised as lost at once.
    pub(crate) fn next_worker(&self) -> Name {
        let name = &self.shared.name;
        match self.shared.workers.fetch_add(1, Ordering::Relaxed) {
            0 => name.clone(),
            before => Name::from(format!("{name}-{}", before + 1)),
        }
    }
}
