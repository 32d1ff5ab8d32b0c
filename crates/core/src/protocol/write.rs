//! What the core wants made durable: a closed list. A store turns each into rows and decides nothing.

use super::{Payload, Rendered};
use crate::admission::{LimitKey, Quota, Rate, Skills, SlotCounts};
use crate::ids::{Epoch, Name, NodeId, RunId, TaskId};
use crate::model::{Action, Flow, LimitsDocument};
use crate::protocol::{Lease, LimitValue};
use crate::state::State;
use crate::time::{Moment, Span};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Write {
    /// A new job, run or step; a step that never started, or is reused, comes with its end.
    NodeAdded(Box<NodeRow>),
    /// Items of a loop, in index order from `from`, waiting.
    ItemsAdded {
        step: NodeId,
        from: u32,
        items: Vec<Rendered>,
        at: Moment,
    },
    /// A run, a loop or a sub-flow begins; or a step got past the limit on steps of its run.
    Entered {
        node: NodeId,
        state: State,
        at: Moment,
    },
    Granted {
        task: TaskId,
        grant: GrantRow,
        number: u32,
    },
    /// Back in line, or until a time: after a failure, a loss, a hand-back.
    Moved {
        task: TaskId,
        state: State,
        due: Option<Moment>,
        tally: Tally,
        error: Option<String>,
        at: Moment,
    },
    Ended {
        task: TaskId,
        state: State,
        output: Option<Payload>,
        error: Option<String>,
        at: Moment,
    },
    /// Items `from..to` of a loop ended alike without starting.
    ItemsEnded {
        step: NodeId,
        from: u32,
        to: u32,
        state: State,
        at: Moment,
    },
    /// A running task was told to stop, or a run to end.
    Stopping {
        task: TaskId,
        why: Stop,
        /// Of a loop whose items could not be rendered.
        error: Option<String>,
        at: Moment,
    },
    /// These leases last until `until`.
    Renewed {
        leases: Vec<Lease>,
        until: Moment,
    },
    Ranked {
        node: NodeId,
        priority: i8,
        root: u64,
    },
    Paused {
        node: NodeId,
        paused: bool,
    },
    LimitSet(Box<LimitRow>),
    PaceTaken {
        key: LimitKey,
        pace: Pace,
    },
    Declared(Box<DeclaredRow>),
    WorkerJoined(Box<WorkerRow>),
    WorkerGone {
        worker: Name,
        at: Moment,
    },
    /// An item of a loop over flows begins: the run inside it comes with it.
    ItemEntered {
        step: NodeId,
        index: u32,
        at: Moment,
    },
    TokenSet(Box<TokenRow>),
    TokenGone {
        id: Name,
    },
    /// Somebody changed something.
    Audited(Box<AuditRow>),
}

/// Everything about a node that is needed to go on with it after a crash.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NodeRow {
    pub node: NodeId,
    /// The run of a step; the step of a sub-flow's run, also of one inside an item.
    pub parent: Option<NodeId>,
    /// The sequence by which it ranks.
    pub root: u64,
    pub priority: i8,
    pub accepted: Moment,
    pub body: Body,
    /// A job's or plain step's order, a run's inputs, a loop's list.
    pub payload: Option<Payload>,
    pub life: Life,
}

impl NodeRow {
    /// What it is inside of: the run of a step; the step, or the item of a loop, of a sub-flow's run.
    pub fn around(&self) -> Option<TaskId> {
        let parent = self.parent?;
        Some(match &self.body {
            Body::ItemRun(body) => TaskId::item(parent, body.index),
            _ => TaskId::node(parent),
        })
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Body {
    Job(JobBody),
    Run(RunBody),
    Step(StepBody),
    ItemRun(ItemRunBody),
}

impl Body {
    /// As users know it. Steps and the runs of sub-flows have no id of their own.
    pub fn id(&self) -> Option<RunId> {
        match self {
            Body::Job(job) => Some(job.id),
            Body::Run(run) => run.id,
            Body::Step(_) | Body::ItemRun(_) => None,
        }
    }

    /// What is said of a run, if it is one.
    pub fn run(&self) -> Option<&RunBody> {
        match self {
            Body::Run(run) | Body::ItemRun(ItemRunBody { run, .. }) => Some(run),
            Body::Job(_) | Body::Step(_) => None,
        }
    }

    /// The action of a job, the flow of a run.
    pub fn name(&self) -> Option<&Name> {
        match self {
            Body::Job(job) => Some(&job.action),
            Body::Run(run) | Body::ItemRun(ItemRunBody { run, .. }) => Some(&run.flow),
            Body::Step(_) => None,
        }
    }

    pub fn tags(&self) -> &[(Name, Name)] {
        match self {
            Body::Job(job) => &job.tags,
            Body::Run(run) => &run.tags,
            Body::Step(_) | Body::ItemRun(_) => &[],
        }
    }

    /// The run in which a step ended, if that was another one: it has the same place there.
    pub fn reuses(&self) -> Option<NodeId> {
        match self {
            Body::Step(StepBody { index, kind: StepKind::Reused { of, .. }, .. }) => of.run(*index),
            _ => None,
        }
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JobBody {
    pub id: RunId,
    pub action: Name,
    pub key: Option<Name>,
    pub tags: Vec<(Name, Name)>,
    pub start_by: Option<Moment>,
    pub idempotency: Option<Idempotency>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunBody {
    /// A sub-flow's run has none of its own.
    pub id: Option<RunId>,
    pub flow: Name,
    /// Version of the flow, and of any sub-flow: the newest not after this one.
    pub version: u32,
    pub depth: u32,
    pub key: Option<Name>,
    pub tags: Vec<(Name, Name)>,
    pub idempotency: Option<Idempotency>,
}

/// The run inside an item of a loop over flows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ItemRunBody {
    /// Of the item.
    pub index: u32,
    pub run: RunBody,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StepBody {
    pub index: u32,
    pub kind: StepKind,
    pub start_by: Option<Moment>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum StepKind {
    Plain {
        key: Option<Name>,
    },
    Loop {
        count: u32,
    },
    SubFlow,
    Wait {
        until: Moment,
    },
    /// It ended before its work was known.
    Nothing,
    /// It ended before, in another run of the same version of the flow: what it put out is there.
    Reused {
        /// The step that ran.
        of: NodeId,
        /// The run that it belongs to, as users know it.
        run: RunId,
    },
}

/// An idempotency key and a digest of what was submitted under it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Idempotency {
    pub key: Name,
    pub content: u64,
}

/// The part of a row that changes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Life {
    pub state: State,
    pub due: Option<Moment>,
    pub tally: Tally,
    pub grant: Option<GrantRow>,
    pub stop: Option<Stop>,
    pub paused: bool,
    /// First start.
    pub started: Option<Moment>,
    /// It holds what its level asks for (a run, or a step past the limit on steps).
    pub entered: bool,
    pub ended: Option<Moment>,
    pub error: Option<String>,
}

impl Life {
    pub fn new(state: State) -> Self {
        Life {
            state,
            due: None,
            tally: Tally::default(),
            grant: None,
            stop: None,
            paused: false,
            started: None,
            entered: false,
            ended: None,
            error: None,
        }
    }
}

/// What became of a task's attempts so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Attempts started, whatever became of them.
    pub started: u32,
    pub failures: u32,
    pub losses: u32,
}

/// A live grant: who has the task, and until when.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GrantRow {
    pub epoch: Epoch,
    pub worker: Name,
    pub at: Moment,
    pub until: Moment,
    pub length: Span,
}

/// Why a running task was told to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Stop {
    Cancelled,
    TimedOut,
    /// Another step of its run failed, and the flow says `fail_fast`.
    FailedFast,
    /// Its loop had more failures than it tolerates.
    LoopFailed,
    /// A newer task of its key cancels running ones.
    Superseded,
}

impl Stop {
    /// How a task ends that stopped because it was told so.
    pub fn end(self) -> State {
        match self {
            Stop::TimedOut => State::TimedOut,
            Stop::Cancelled | Stop::FailedFast | Stop::LoopFailed | Stop::Superseded => State::Cancelled,
        }
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ItemRow {
    pub step: NodeId,
    pub index: u32,
    pub key: Option<Name>,
    pub life: Life,
}

/// What an operator said about a limit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LimitRow {
    pub key: LimitKey,
    pub set: Option<Override>,
    pub paused: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Override {
    pub value: LimitValue,
    pub by: Name,
    pub at: Moment,
    pub until: Option<Moment>,
}

/// The only admission state that is not a sum over running tasks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Pace {
    Rate(Rate),
    Quota(Quota),
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum DeclaredRow {
    Flow { version: u32, flow: Arc<Flow> },
    Action(ActionRow),
    Limits(LimitsDocument),
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ActionRow {
    /// One that was stored before there were versions has none.
    #[serde(default)]
    pub version: u32,
    #[serde(flatten)]
    pub action: Arc<Action>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerRow {
    pub worker: Name,
    pub incarnation: u64,
    pub skills: Skills,
    pub slots: SlotCounts,
}

/// What whoever has a token may do. The token itself is known to nobody else: only its hash is kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TokenRow {
    /// The part of it that is no secret.
    pub id: Name,
    /// Whom or what it is for.
    pub name: Name,
    /// In hexadecimal digits.
    pub hash: String,
    pub scopes: Vec<Name>,
    /// Who made it, and when.
    pub by: Name,
    pub at: Moment,
    /// It is worth nothing afterwards.
    pub until: Option<Moment>,
}

/// One change, by whom and when.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AuditRow {
    /// Counts up.
    pub number: u64,
    pub at: Moment,
    pub by: Name,
    /// `limit.set`, `run.cancel`, …
    pub what: String,
    /// The limit, run, token or worker.
    pub about: String,
    pub more: Option<String>,
}
