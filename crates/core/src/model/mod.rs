//! The compiled flow: what `flow` makes of a file, what progress walks through and what `worker` carries out.
//!
//! Nothing here is text to be parsed any more, except templates, which the core hands on unread.

mod action;
mod flow;
mod order;
mod policy;

pub use action::{Action, ActionWork};
pub use flow::{
    Backoff, Cause, Flow, Input, InputType, Loop, ONCE, OnFailure, Retry, Rule, Step, Template, Work,
};
pub use order::{
    Auth, Connection, Content, Order, Request, Requirement, Runner, SlotKind, Statement, Statements,
    Surroundings, Text,
};
pub use policy::{
    ActionPolicy, Each, EachLines, LimitsDocument, Line, MatchRule, Origin, Pool, QuotaPolicy, QuotaWindow,
    RatePolicy, TagLimit, Total, WhenBusy, WhenExhausted, WhenFull,
};

use crate::ids::Name;
use crate::time::Span;

/// Priorities a user may give; higher starts first.
pub const PRIORITIES: std::ops::RangeInclusive<i8> = -100..=100;
/// The tag that names the queue of everything that belongs to a submission, instead of the default one. It is a tag so that
/// whoever can submit can say it, and every store has room for it.
pub const QUEUE_TAG: &str = "tidegate.queue";
/// The tag that names the run that another one retries.
pub const RETRY_TAG: &str = "tidegate.retry_of";
/// Tags that begin so are Tidegate's own.
pub const OWN_TAGS: &str = "tidegate.";
/// How long a worker may stay silent before its attempts are taken from it.
pub const LEASE: Span = Span::seconds(30);
/// Losses of a worker that a task survives unless it says otherwise.
pub const MAX_LOSSES: u32 = 3;
/// Runs of flows at once unless the limits document says otherwise.
pub const RUNS: u32 = 10;
/// Sub-flows inside sub-flows.
pub const MAX_DEPTH: u32 = 10;
/// Items at once of a loop over flows that does not say how many: no worker and no pool bounds these.
pub const FLOWS_AT_ONCE: u32 = 10;
/// Items of one `with_items` list.
pub const MAX_ITEMS: u32 = 100_000;
/// Items whose inputs are rendered and stored by one command.
pub const EXPAND_SLICE: u32 = 1_000;

/// The queue that these tags of a submission name.
pub fn queue_of(tags: &[(Name, Name)]) -> Option<&Name> {
    let named = tags.iter().find(|(tag, _)| tag.as_str() == QUEUE_TAG).map(|(_, queue)| queue);
    named.filter(|queue| !queue.as_str().is_empty())
}
