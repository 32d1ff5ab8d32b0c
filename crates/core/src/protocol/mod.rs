//! What goes into the core and what comes out: the words of the whole house.
//!
//! A [`Command`] goes in with the time. An [`Answer`] comes out, with [`Write`]s to be made durable together and
//! [`Effect`]s to be carried out afterwards, never before.

mod command;
mod decision;
mod evaluation;
mod size;
mod snapshot;
mod worker;
mod write;

pub use command::{
    Command, Declare, Finish, Join, Leave, LimitValue, Past, PastStep, Pausable, Retry, SetLimit, Submission,
    Submit,
};
pub use decision::{Answer, Effect, Output, Refusal};
pub use evaluation::{Evaluation, Payload, Question, Rendered};
pub(crate) use size::cut;
pub use size::{BATCH_BYTES, LARGEST_OUTPUT, LARGEST_PAYLOAD, LONGEST_ERROR, check_size, size_of_item};
pub use snapshot::Snapshot;
pub use worker::{Attempt, Failure, Heartbeat, Lease, Outcome, Renewal};
pub use write::{
    ActionRow, AuditRow, Body, DeclaredRow, GrantRow, Idempotency, ItemRow, ItemRunBody, JobBody, Life,
    LimitRow, NodeRow, Override, Pace, RunBody, StepBody, StepKind, Stop, Tally, TokenRow, WorkerRow, Write,
};
