//! The messages. Both sides are of the same version, or do not speak.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tidegate_core::Lost;
use tidegate_core::admission::LimitKey;
use tidegate_core::explain::Explanation;
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::model::{Action, Flow};
use tidegate_core::overview::{
    DefinitionView, Kind, LimitDetail, LimitView, LimitsWanted, NameStats, Queue, QueueWanted, Stats,
    WorkerView,
};
use tidegate_core::protocol::{Answer, Attempt, Command, Finish, Lease, Payload};
use tidegate_core::state::State;
use tidegate_core::time::Moment;

/// Servers of different versions do not forward to each other: whoever cannot lead waits until all are alike.
pub const VERSION: u32 = 9;

/// From the server that forwards to the one that leads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Always the first.
    Hello { version: u32, token: String },
    /// Answered by [`Response::Answers`], in the same order, when what they did is durable.
    Commands {
        id: u64,
        commands: Vec<Command>,
        /// They may have been carried out before.
        again: bool,
    },
    /// Answered by [`Response::Reply`].
    Query { id: u64, query: Query },
    /// Attempts for this start of a worker go over this connection.
    Attach { worker: Name, incarnation: u64 },
    /// Attempts that ended; each is acknowledged by [`Response::Reported`].
    Reports(Vec<Finish>),
    /// `sent` is a time on the sender's own clock, which is sent back with everything that follows.
    Ping { sent: u64 },
}

/// From the server that leads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Response {
    Welcome,
    Answers {
        id: u64,
        answers: std::result::Result<Vec<Answer>, Trouble>,
    },
    Reply {
        id: u64,
        reply: std::result::Result<Reply, Trouble>,
    },
    /// The lease began `age` before the newest [`Request::Ping`] was heard, or later: the one that was sent at `heard`.
    Attempt {
        worker: Name,
        attempt: Attempt,
        run: RunId,
        age: Duration,
        heard: u64,
    },
    Stop {
        worker: Name,
        lease: Lease,
    },
    Reported {
        worker: Name,
        lease: Lease,
    },
    /// Another worker of this name has started since, as this incarnation.
    Replaced {
        worker: Name,
        by: u64,
    },
    /// Entries up to this one are durable. Said before anything else that follows from it.
    Reached(u64),
    Pong,
}

/// What can be asked without changing anything.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Query {
    Explain(TaskId),
    /// By the name people use: `run_…/step#3`.
    ExplainNamed(String),
    /// What was submitted under an id, open or ended.
    FindId(RunId),
    /// The same for an idempotency key.
    FindKey(Name),
    /// What a name stands for.
    Definition(Name),
    /// How it ended; answered when it has.
    Result(RunId),
    /// What time it is.
    Now,
    /// What waits.
    Queue(QueueWanted),
    Limits(LimitsWanted),
    /// One of them, with who has it and who waits for it.
    Limit(LimitKey),
    Workers,
    /// What was declared.
    Definitions(Kind),
    /// Everything in numbers.
    Stats,
    /// One action or flow in numbers.
    NameStats(Name),
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Reply {
    Explanation(std::result::Result<Option<Box<Explanation>>, Lost>),
    Found(Option<(NodeId, RunId)>),
    Definition(Definition),
    /// Nothing: it was never accepted, or is no longer kept.
    Result(Option<Result>),
    Now(Moment),
    Queue(Box<Queue>),
    Limits(Vec<LimitView>),
    Limit(Option<Box<LimitDetail>>),
    Workers(Vec<WorkerView>),
    Definitions(Vec<DefinitionView>),
    Stats(Box<Stats>),
    NameStats(Option<Box<NameStats>>),
}

/// What a name stands for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Definition {
    Flow(Arc<Flow>),
    Action(Arc<Action>),
    /// Nothing was declared under it. A worker may still know a function of that name.
    Unknown,
}

/// How a task ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Result {
    pub node: NodeId,
    pub state: State,
    pub output: Option<Payload>,
    pub error: Option<String>,
    pub attempts: u32,
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug, Error, Serialize, Deserialize)]
pub enum Trouble {
    /// It leads no more, or not yet.
    #[error("that server does not lead")]
    NotLeading,
    /// Too much waits there already.
    #[error("that server has too much to do")]
    Busy,
    #[error("{0}")]
    Outage(String),
}
