//! What comes out of the core.

use super::size::Readable;
use super::{Lease, Payload, Question, Renewal, Write};
use crate::ids::{Name, NodeId, RunId};
use crate::model::Origin;
use crate::time::{Moment, Span};
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// What a caller is told, once the writes that came with it are durable.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Answer {
    Done,
    Accepted {
        node: NodeId,
        /// It was submitted before under the same idempotency key.
        again: bool,
    },
    Refused(Refusal),
    Renewal(Renewal),
}

/// Why the core did not do what it was asked to. A refusal changes nothing.
#[derive(Clone, PartialEq, Eq, Debug, Error, Serialize, Deserialize)]
pub enum Refusal {
    #[error("there is no flow `{0}`")]
    UnknownFlow(Name),
    #[error("there is no open task {0:?}")]
    UnknownTask(crate::ids::TaskId),
    #[error("item {index} is far from its turn and not in line yet: cancel it later, or all of its step")]
    NotInLine { index: u32 },
    #[error("there is no pool `{0}`")]
    UnknownPool(Name),
    #[error("{limit}: there are {capacity} at most, and {units} are asked for{}", Place(declared))]
    TooWide { limit: String, units: u32, capacity: u64, declared: Origin },
    #[error("the line of `{action}` is full: {max_length} wait already{}", Place(declared))]
    LineFull { action: Name, max_length: u32, declared: Origin },
    #[error("{limit}: no more is allowed now, and `when_busy` says reject{}", Place(declared))]
    Busy { limit: String, declared: Origin },
    #[error("idempotency key `{0}` was used for something else")]
    KeyConflict(Name),
    /// The lease is not, or no longer, the live one: nothing was changed.
    #[error("the lease has passed to somebody else")]
    Stale,
    #[error("worker `{0}` is not connected, or was started anew")]
    UnknownWorker(Name),
    #[error("another worker has started under the name `{0}` since; every worker needs a name of its own")]
    WorkerReplaced(Name),
    #[error("{0} cannot be given such a value")]
    WrongValue(String),
    #[error("nobody asked that question, or it was answered before")]
    NotAsked,
    #[error("the flow is invalid: {0}")]
    BadFlow(String),
    #[error("a name is too long, {most} bytes are allowed: `{0}…`", most = crate::ids::LONGEST_NAME)]
    NameTooLong(String),
    #[error("a name is empty")]
    NoName,
    #[error("action `{action}` is invalid: {what}")]
    BadAction { action: Name, what: String },
    #[error("there is no run {0}")]
    UnknownRun(RunId),
    #[error("{0} has not ended")]
    StillOpen(RunId),
    #[error("{0} succeeded; there is nothing to retry, unless all of it is to be repeated from the start")]
    NothingToRetry(RunId),
    #[error("{0} was refused when it came, and never accepted; submit it again")]
    NeverAccepted(RunId),
    #[error("the version of the flow `{flow}` that {run} ran on is not kept any more; submit it again")]
    VersionGone { run: RunId, flow: Name },
    #[error("it is too large, it has {} and {} are allowed", Readable(*size), Readable(*most))]
    TooLarge { size: usize, most: usize },
}

/// Where it was declared, behind a sentence about a limit.
struct Place<'a>(&'a Origin);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.file {
            Some(_) => write!(f, " ({})", self.0),
            None => Ok(()),
        }
    }
}

/// What the shell does after the commit.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    /// Hand a granted attempt to its worker. Without an order it is read from the store first.
    Deliver {
        worker: Name,
        lease: Lease,
        order: Option<Payload>,
        length: Span,
        number: u32,
        at: Moment,
        /// It takes nothing that must be durable before it starts: a function that no rate or quota counts. Where it
        /// dies with the process that decides, it need not wait for the commit.
        ahead: bool,
    },
    /// Tell a worker to stop an attempt.
    Stop { worker: Name, lease: Lease },
    /// Evaluate templates; the answer comes back as a command.
    Ask(Question),
}

/// The outcome of a batch of commands, in the order they were applied.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Output {
    pub writes: Vec<Write>,
    pub effects: Vec<Effect>,
}
