//! What can be asked of the core. One file in `commands` carries out each.

use super::{Evaluation, Heartbeat, Idempotency, Lease, NodeRow, Outcome, Payload, Question, TokenRow};
use crate::admission::{LimitKey, Skills, SlotCounts};
use crate::ids::{Name, NodeId, RunId, TaskId};
use crate::model::{Action, Flow, LimitsDocument, QuotaPolicy, RatePolicy};
use crate::state::State;
use crate::time::Moment;
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Command {
    Declare(Declare),
    Submit(Submit),
    /// A submission whose sender waits for no answer. What cannot be accepted, or is known to have a flaw, becomes a
    /// task that ended `refused` and says why.
    Post {
        submit: Submit,
        flaw: Option<String>,
    },
    Retry(Retry),
    Cancel(TaskId),
    Finish(Finish),
    Heartbeat(Heartbeat),
    Join(Join),
    Leave(Leave),
    Offer {
        worker: Name,
        incarnation: u64,
        slots: SlotCounts,
    },
    SetLimit(SetLimit),
    SetPriority {
        node: NodeId,
        priority: i8,
    },
    Pause(Pausable),
    Resume(Pausable),
    Evaluated {
        question: Question,
        evaluation: Evaluation,
    },
    /// Time has passed: does what is due.
    Wake,
    /// Whoever has this token may do what it says. Its time is that of the command.
    SetToken(TokenRow),
    RevokeToken {
        id: Name,
    },
    /// What somebody with a name wants done. If it is a change, it is written down who made it.
    By {
        who: Name,
        command: Box<Command>,
    },
}

impl Command {
    /// What is to be done, whoever wants it.
    pub fn plain(&self) -> &Command {
        match self {
            Command::By { command, .. } => command.plain(),
            command => command,
        }
    }
}

/// Definitions from files or code: replaces what was declared under the same names before, and whatever limits the same
/// files declared.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Declare {
    pub flows: Vec<Flow>,
    pub actions: Vec<Action>,
    pub limits: Option<LimitsDocument>,
    /// Everything that was read, also what says nothing any more.
    pub files: Vec<Name>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Submit {
    pub id: RunId,
    pub what: Submission,
    pub tags: Vec<(Name, Name)>,
    pub priority: i8,
    /// Not before this time.
    pub due: Option<Moment>,
    /// The same key with the same content is accepted once.
    pub idempotency: Option<Idempotency>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Submission {
    /// One execution of an action, rendered.
    Job { action: Name, key: Option<Name>, order: Payload },
    /// A run of the newest version of a flow; inputs are checked and complete.
    Run { flow: Name, key: Option<Name>, inputs: Payload },
}

/// What has ended is to be done again, as a new run or job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Retry {
    /// Of the new one.
    pub id: RunId,
    pub of: RunId,
    /// Steps that succeeded are repeated too, and so is what succeeded wholly.
    pub from_start: bool,
    /// Instead of the queue that it was submitted to.
    pub queue: Option<Name>,
    /// What the store has of it, if anything: whoever leads looks it up.
    #[serde(skip)]
    pub past: Option<Box<Past>>,
}

/// What there is of something that was submitted before.
#[derive(Clone, PartialEq, Debug)]
pub struct Past {
    /// With its payload.
    pub root: NodeRow,
    /// Its own steps that have ended, as far as all of what they put out is still there.
    pub steps: Vec<PastStep>,
}

/// A step that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PastStep {
    pub index: u32,
    pub state: State,
    /// The one that ran: itself, or the one that it reuses.
    pub ran: NodeId,
    /// The run that this one belongs to.
    pub run: RunId,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Finish {
    pub worker: Name,
    pub lease: Lease,
    pub outcome: Outcome,
    /// The slots the worker has from now on, if that changed.
    pub offer: Option<SlotCounts>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Join {
    pub worker: Name,
    /// At least 1, and higher than that of any earlier start under this name: a message that was long on its way must not make
    /// the present one look gone.
    pub incarnation: u64,
    pub skills: Skills,
    pub slots: SlotCounts,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Leave {
    pub worker: Name,
    pub incarnation: u64,
}

/// An operator's word about one limit. It wins over what was declared, until it is taken back or runs out.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SetLimit {
    pub key: LimitKey,
    /// `None` takes the override back.
    pub value: Option<LimitValue>,
    pub by: Name,
    pub until: Option<Moment>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum LimitValue {
    Units(u32),
    Rate(RatePolicy),
    Quota(QuotaPolicy),
}

impl From<u32> for LimitValue {
    fn from(units: u32) -> Self {
        LimitValue::Units(units)
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Pausable {
    Limit(LimitKey),
    Action(Name),
    /// A run (or job): nothing of it starts.
    Node(NodeId),
}
