//! The handle that everything else hangs on: one engine over one store.

use crate::action::{ActionBuilder, origin};
use crate::ends::{End, Ends};
use crate::error::Error;
use crate::evaluator::Evaluator;
use crate::events::Events;
use crate::limits::Limits;
use crate::registry::Registry;
use crate::run::Run;
use crate::store::{self, Handles, Reader};
use crate::submit::{self, Submit};
use crate::work::Work;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tidegate_core::Core;
use tidegate_core::explain::Explanation;
use tidegate_core::ids::{Name, NodeId, RunId};
use tidegate_core::model::Pool;
use tidegate_core::protocol::{Answer, Command};
use tidegate_core::time::Moment;
use tidegate_engine::events::{Position, Subscription};
use tidegate_engine::{Definition, Engine, EngineError, Settings};
use tidegate_flow::{Document, parse_with};
use tidegate_store::{Found, Sought};
use tidegate_worker::{Ctx, Functions};
use tokio::sync::watch;

/// What the engine and the first worker of a process are called.
const LOCAL: &str = "local";
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
}

struct Shared {
    engine: Engine,
    reader: Reader,
    registry: Registry,
    ends: Ends,
    /// How many workers were given a name.
    workers: AtomicU32,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let engine = self.engine.clone();
        // Without a runtime the engine has none either, and is gone.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { engine.shut_down().await });
        }
    }
}

impl Tidegate {
    /// Opens (or makes) a store, and goes on with whatever is open in it. The address is `sqlite:PATH`, of a file that
    /// this process then has for itself, or `memory:`, which is gone with the process.
    pub async fn open(address: &str) -> Result<Tidegate, Error> {
        let Handles { owner, engine, reader } = store::open(address)?;
        let engine = Engine::start(Settings::new(LOCAL), owner, engine, Arc::new(Evaluator));
        let ends = Ends::listen(&engine, reader.clone());
        let (registry, workers) = (Registry::new(), AtomicU32::new(0));
        let tide = Tidegate { shared: Arc::new(Shared { engine, reader, registry, ends, workers }) };
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
        self.define(parse_with(&[(&name, text.as_bytes())], pools.as_deref())?);
        Ok(())
    }

    /// Defines what was read from files.
    pub fn define(&self, document: Document) {
        self.shared.registry.change(|definitions| definitions.add(document));
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
        let found = self.find(Sought::Id(id)).await?.ok_or(Error::UnknownRun(id))?;
        Ok(Run::new(self.clone(), id, found.node))
    }

    /// Offers so many slots of this process for functions. See [`Work::run_until`].
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
        let name = name.to_owned();
        let explained = self.look(move |core, now| Ok(core.explain(core.find(&name)?, now))).await?;
        explained.map_err(Error::Lost)
    }

    /// Ends the engine, and waits until it has let go of its store. Stop work first: what runs would be taken for lost.
    pub async fn close(self) {
        self.shared.engine.shut_down().await;
    }

    /// The engine underneath, for what is not covered here.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    // ---- what the other parts of this library need

    pub(crate) async fn ask(&self, command: Command) -> Result<Answer, Error> {
        match self.engine().insist(command).await? {
            Answer::Refused(refusal) => Err(refusal.into()),
            answer => Ok(answer),
        }
    }

    /// Looks at the core between two batches, as soon as there is one.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Core, Moment) -> T + Clone + Send + 'static,
    ) -> Result<T, Error> {
        loop {
            match self.engine().read(look.clone()).await {
                Err(EngineError::Unavailable) => {}
                result => return Ok(result?),
            }
            if let Some(why) = self.engine().outage().borrow().clone() {
                return Err(Error::Outage(why));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    pub(crate) async fn declare(&self) -> Result<(), Error> {
        self.shared.registry.declare(self.engine()).await
    }

    /// What a name stands for: what this program says, or what was declared before.
    pub(crate) async fn definition(&self, name: &Name) -> Result<Definition, Error> {
        if let Some(definition) = self.shared.registry.definition(name) {
            return Ok(definition);
        }
        let name = name.clone();
        self.look(move |core, _| match (core.action(&name), core.flow(&name, u32::MAX)) {
            (Some(action), _) => Definition::Action(action),
            (None, Some(flow)) => Definition::Flow(flow),
            (None, None) => Definition::Unknown,
        })
        .await
    }

    pub(crate) async fn find(&self, sought: Sought) -> Result<Option<Found>, Error> {
        Ok(self.shared.reader.find(sought).await?)
    }

    pub(crate) async fn end_of(&self, node: NodeId) -> Result<End, Error> {
        self.shared.ends.of(node).await
    }

    pub(crate) fn subscribe(&self, after: Option<Position>) -> Subscription {
        Subscription::new(self.engine(), self.shared.reader.handle(), after)
    }

    pub(crate) fn functions(&self) -> Functions {
        self.shared.registry.read().functions.clone()
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.shared.registry.changes()
    }

    /// The same names after a restart, so that what the last process was working on is recognised as lost at once.
    pub(crate) fn next_worker(&self) -> Name {
        match self.shared.workers.fetch_add(1, Ordering::Relaxed) {
            0 => Name::new(LOCAL),
            before => Name::from(format!("{LOCAL}-{}", before + 1)),
        }
    }
}
