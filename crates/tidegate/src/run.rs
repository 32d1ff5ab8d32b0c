//! Something that was submitted: a job or a run of a flow.

use crate::error::Error;
use crate::tidegate::Tidegate;
use serde::de::DeserializeOwned;
use std::fmt;
use tidegate_core::explain::Explanation;
use tidegate_core::ids::{NodeId, RunId, TaskId};
use tidegate_core::protocol::{Command, Pausable, Payload, Refusal};
use tidegate_core::state::State;
use tidegate_engine::wire;

/// A handle to something that was submitted, by this process or another, now or before a restart.
#[derive(Clone)]
pub struct Run {
    tide: Tidegate,
    id: RunId,
    node: NodeId,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Ending {
    run: RunId,
    state: State,
    output: Option<Payload>,
    error: Option<String>,
}

impl Run {
    pub(crate) fn new(tide: Tidegate, id: RunId, node: NodeId) -> Run {
        Run { tide, id, node }
    }

    /// The id by which everybody knows it.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// Its task, as events and [`Ctx`](crate::Ctx) name it.
    pub fn task(&self) -> TaskId {
        TaskId::node(self.node)
    }

    /// Waits for its end, however it ends.
    pub async fn wait(&self) -> Result<Ending, Error> {
        let wire::Result { state, output, error, .. } =
            self.tide.insist(|engine| engine.result(self.id)).await?.ok_or(Error::UnknownRun(self.id))?;
        Ok(Ending { run: self.id, state, output, error })
    }

    /// Waits for its end and gives what it returned; an end that is no success is an error.
    pub async fn result<T: DeserializeOwned>(&self) -> Result<T, Error> {
        self.wait().await?.output()
    }

    /// What waits ends at once, what runs is told to stop. Says nothing about the end, which [`Run::wait`] tells; what
    /// has ended already stays as it is.
    pub async fn cancel(&self) -> Result<(), Error> {
        match self.tide.ask(Command::Cancel(self.task())).await {
            Err(Error::Refused(Refusal::UnknownTask(_))) => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// Nothing of it starts until it is resumed; what runs goes on.
    pub async fn pause(&self) -> Result<(), Error> {
        self.tide.ask(Command::Pause(Pausable::Node(self.node))).await.map(drop)
    }

    /// Takes back a pause.
    pub async fn resume(&self) -> Result<(), Error> {
        self.tide.ask(Command::Resume(Pausable::Node(self.node))).await.map(drop)
    }

    /// From -100 to 100; higher starts first.
    pub async fn set_priority(&self, priority: i8) -> Result<(), Error> {
        if !tidegate_core::model::PRIORITIES.contains(&priority) {
            return Err(Error::Priority(priority));
        }
        self.tide.ask(Command::SetPriority { node: self.node, priority }).await.map(drop)
    }

    /// What it does or waits for: every limit that refuses it, who holds that, and its place in line. Print it, or look
    /// inside. Nothing if it has ended.
    pub async fn explain(&self) -> Result<Option<Explanation>, Error> {
        self.tide.insist(|engine| engine.explain(self.task())).await
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Run").field(&self.id).finish()
    }
}

impl Ending {
    /// How it ended.
    pub fn state(&self) -> State {
        self.state
    }

    /// What went wrong, if something did.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// What it returned; an end that is no success is an error.
    pub fn output<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let (run, error) = (self.run, self.error.clone());
        match self.state {
            State::Succeeded => {
                let json = self.output.as_ref().map_or(&b"null"[..], |output| output.bytes());
                serde_json::from_slice(json).map_err(|source| Error::Output { run, source })
            }
            State::Cancelled => Err(Error::Cancelled(run)),
            State::TimedOut => Err(Error::TimedOut(run)),
            state @ (State::Expired | State::Refused | State::Replaced | State::Skipped) => {
                Err(Error::NeverStarted { run, state, error })
            }
            State::Failed | State::Scheduled | State::Waiting | State::Running => {
                Err(Error::Failed { run, error: error.unwrap_or_else(|| "it gave no reason".to_owned()) })
            }
        }
    }
}
