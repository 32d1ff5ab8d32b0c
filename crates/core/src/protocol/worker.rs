//! What passes between the engine and a worker, whether in one process or over a wire.

use super::Payload;
use crate::ids::{Epoch, Name, TaskId};
use crate::model::Cause;
use crate::time::Span;
use serde::{Deserialize, Serialize};

/// One grant, as every message about it names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Lease {
    pub task: TaskId,
    pub epoch: Epoch,
}

/// Work handed to a worker. It may arrive twice; the second time nothing is to be started.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Attempt {
    pub lease: Lease,
    pub order: Payload,
    /// How long the lease lasts from each renewal on.
    pub length: Span,
    /// What is left of it when this is handed over. Less than the length if it is handed over late, or again.
    pub left: Span,
    /// Which try this is, from 1.
    pub number: u32,
}

/// How an attempt ended, as its worker saw it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Outcome {
    Succeeded(Payload),
    Failed(Failure),
    /// It was told to stop, and has.
    Stopped,
    /// Given back unharmed: the worker is shutting down. Costs the task nothing.
    HandedBack,
}

/// How it went wrong.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Failure {
    /// A sentence.
    pub error: String,
    pub output: Option<Payload>,
    pub cause: Option<Cause>,
    /// Not to be tried again before so much time has passed, as somebody else asked for.
    pub retry_after: Option<Span>,
}

impl Failure {
    pub fn new(error: impl Into<String>) -> Failure {
        Failure { error: error.into(), ..Failure::default() }
    }

    pub fn caused_by(self, cause: impl Into<Name>) -> Failure {
        Failure { cause: Some(Cause(cause.into())), ..self }
    }
}

impl Outcome {
    /// It failed, and there is nothing more to say about it.
    pub fn failed(error: impl Into<String>) -> Outcome {
        Outcome::Failed(Failure::new(error))
    }
}

/// Everything a worker has. What is not listed is not renewed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Heartbeat {
    pub worker: Name,
    /// Differs for every start of the worker's process.
    pub incarnation: u64,
    pub has: Vec<Lease>,
}

/// The answer: every lease listed is in exactly one of the two.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Renewal {
    pub renewed: Vec<Lease>,
    pub stop: Vec<Lease>,
}
