//! What is asked of the shell, and who waits for what.

use super::effects::Parcel;
use super::{Attached, Attachment, Delivery, EngineError, Newcomer};
use std::sync::Arc;
use tidegate_core::Core;
use tidegate_core::ids::{Name, RunId};
use tidegate_core::protocol::{Answer, Command, Finish, Lease, Payload};
use tidegate_core::time::Moment;
use tidegate_store::{Before, Pruned};
use tidegate_wire as wire;
use tokio::sync::oneshot;

pub(crate) type Answers = Result<Vec<Answer>, EngineError>;

/// Something to be done with the core between two batches, if there is one.
pub(super) type Look = Box<dyn FnOnce(Option<&Core>, Moment) + Send>;

/// Commands of one caller, answered together.
pub(super) struct Errand {
    pub commands: Vec<Command>,
    /// They may have been carried out before: what was accepted is looked up first.
    pub again: bool,
    /// Whoever leads may do it; otherwise only this server.
    pub forward: bool,
    /// What its retries are about was looked up, and stays.
    pub kept: Option<Kept>,
    pub reply: oneshot::Sender<Answers>,
}

/// While there is another one of these, nothing is pruned: somebody is about to reuse what has ended.
pub(super) type Kept = Arc<()>;

pub(super) enum Request {
    Errand(Errand),
    Read(Look),
    Query {
        query: wire::Query,
        forward: bool,
        reply: oneshot::Sender<Result<wire::Reply, EngineError>>,
    },
    /// What the store here does not know.
    AskLeader(wire::Query, oneshot::Sender<Result<wire::Reply, EngineError>>),
    Attach {
        worker: Name,
        attached: Attached,
        /// It is a worker of this process: whoever leads reaches it here.
        forward: bool,
    },
    /// The connection over which a worker was attached is gone.
    Detach {
        worker: Name,
        attachment: Attachment,
    },
    /// A worker of this process is not reached here any more.
    Forget {
        worker: Name,
        incarnation: u64,
        attachment: Attachment,
    },
    /// Attempts that ended, acknowledged by deliveries.
    Reports(Vec<Finish>),
    /// The answer to a question of the core.
    Evaluated(Command),
    /// The order of an attempt was read.
    HandOver(Parcel, Payload),
    /// From the leader, for a worker of this process.
    Forwarded(Name, Delivery),
    /// Letters were made into submissions, or have a flaw.
    Post(Vec<Newcomer>),
    /// These letters could not be made into anything.
    Unread(Vec<u64>),
    /// A slice of what ended before a time is to go.
    Prune {
        before: Before,
        reply: oneshot::Sender<Result<Pruned, EngineError>>,
    },
    /// Something may have come to the store.
    Hint,
    /// Everything that was to be aborted has ended.
    Aborted,
    ShutDown(oneshot::Sender<()>),
}

/// Who waits for the answer to a ticket.
pub(super) enum Waiter {
    /// One of several commands of an errand: the how manieth.
    Errand {
        errand: u64,
        index: usize,
        /// Until it is known what became of it, also if nobody waits for that any more.
        _kept: Option<Kept>,
    },
    /// A worker of this process, or of another that is connected.
    Report {
        worker: Name,
        lease: Lease,
    },
    Letter(u64),
    /// What follows from an effect; nobody is told.
    Nobody,
}

/// The answers of an errand, as they come in.
pub(super) struct Collected {
    pub answers: Vec<Option<Answer>>,
    pub missing: usize,
    pub reply: oneshot::Sender<Answers>,
}

/// Somebody wants to know how a run ends.
pub(super) struct Watcher {
    pub id: RunId,
    pub reply: oneshot::Sender<Result<wire::Reply, EngineError>>,
}

/// Who waits for what another server answers.
pub(crate) enum ReplyTo {
    Answers(oneshot::Sender<Answers>),
    Query(oneshot::Sender<Result<wire::Reply, EngineError>>),
}

/// Whoever asked may have gone away meanwhile; an answer to something else than was asked is none.
impl ReplyTo {
    pub(crate) fn fail(self, error: EngineError) {
        match self {
            ReplyTo::Answers(reply) => drop(reply.send(Err(error))),
            ReplyTo::Query(reply) => drop(reply.send(Err(error))),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        match self {
            ReplyTo::Answers(reply) => reply.is_closed(),
            ReplyTo::Query(reply) => reply.is_closed(),
        }
    }

    pub(crate) fn answers(self, answers: Answers) {
        match self {
            ReplyTo::Answers(reply) => drop(reply.send(answers)),
            ReplyTo::Query(_) => self.fail(EngineError::Unavailable),
        }
    }

    pub(crate) fn reply(self, told: Result<wire::Reply, EngineError>) {
        match self {
            ReplyTo::Query(reply) => drop(reply.send(told)),
            ReplyTo::Answers(_) => self.fail(EngineError::Unavailable),
        }
    }
}
