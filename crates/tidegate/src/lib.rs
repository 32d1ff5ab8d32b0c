//! Tidegate inside a program: durable jobs and flows, with limits that hold and waits that can be explained.
//!
//! - [`Tidegate`]: an engine over a store; defines actions and flows, submits, works
//! - [`Builder`]: how it is opened; on PostgreSQL any number of processes share a store
//! - [`ActionBuilder`]: the limits of an action; [`Ctx`]: what its function knows about an attempt
//! - [`Submit`], [`Run`], [`Ending`]: something to be done, and what becomes of it; [`Retry`]: the same again
//! - [`Work`], [`Working`]: the slots of this process
//! - [`Limits`]: limits that change while everything runs
//! - [`Events`]: what happens, for who wants to follow; [`Happening`]: the catalogue
//! - [`Error`]: what can go wrong, by what to do about it
//!
//! Functions run at least once: a process that dies in the middle leaves its attempt to another one. Whatever they do
//! outside is made safe with [`Ctx::idempotency_key`] and [`Ctx::epoch`].
#![deny(missing_docs)]

mod action;
mod builder;
mod error;
mod evaluator;
mod events;
mod forward;
mod limits;
mod registry;
mod retry;
mod run;
mod store;
mod submit;
mod tidegate;
mod work;

pub use action::ActionBuilder;
pub use builder::Builder;
pub use error::Error;
pub use events::Events;
pub use forward::{Hired, hire};
pub use limits::{Limits, SetLimit};
pub use retry::Retry;
pub use run::{Ending, Run};
pub use submit::Submit;
pub use tidegate::Tidegate;
pub use work::{Work, Working};

pub use tidegate_core::Lost;
pub use tidegate_core::admission::{BadLimitName, LimitKey};
pub use tidegate_core::explain::Explanation;
pub use tidegate_core::ids::{Epoch, Name, RunId, TaskId};
pub use tidegate_core::model::{Backoff, QuotaPolicy, QuotaWindow, RatePolicy, WhenBusy, WhenExhausted};
pub use tidegate_core::protocol::{LARGEST_OUTPUT, LARGEST_PAYLOAD, LimitValue, Refusal};
pub use tidegate_core::state::State;
pub use tidegate_core::time::{Moment, Span};
pub use tidegate_engine::events::{BadPosition, Event, Happening, Position};
#[doc(hidden)]
pub use tidegate_engine::events::{Entries, EventsError};
pub use tidegate_flow::{Diagnostics, Document};
pub use tidegate_store::{BackupError, Retention, StoreError};
pub use tidegate_worker::{Ctx, GuardianCommand, LogLine, LogSink, guardian};

/// As long as history is kept that is never deleted. See [`Builder::keep_history`].
pub const FOREVER: std::time::Duration = std::time::Duration::MAX;

/// What the guide shows compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/embedding.md")]
struct Guide;
