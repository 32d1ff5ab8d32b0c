//! What happened, for whoever wants to follow: one catalogue, derived from what was made durable.
//!
//! - [`Event`], [`Happening`]: the catalogue; [`Position`]: where to go on
//! - [`Derivation`]: from entries to events, pure
//! - [`Entries`]: what becomes durable, whoever leads, first what is kept, then live
//! - [`Subscription`]: events from a position on, made of them
//!
//! There is an event only for what a write tells. Why something waits is in no write: that is asked of the core.

mod derivation;
mod details;
mod entries;
mod subscription;
#[cfg(test)]
mod tests;

pub use derivation::Derivation;
pub use entries::{Entries, EventsError};
pub use subscription::Subscription;

use std::fmt;
use std::str::FromStr;
use tidegate_core::admission::{LimitKey, SlotCounts};
use tidegate_core::ids::{Epoch, Name, RunId, TaskId};
use tidegate_core::protocol::LimitValue;
use tidegate_core::state::State;
use tidegate_core::time::Moment;

/// Where an event stands. Later events have higher positions, on the same store for ever.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Position {
    /// The sequence number of its entry.
    pub entry: u64,
    /// Its place among the events of that entry, from 1.
    pub index: u32,
}

impl Position {
    /// Before everything that ever happened.
    pub const START: Position = Position { entry: 0, index: 0 };
}

/// `7.2`: the second event of entry 7.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.entry, self.index)
    }
}

/// A text that is no position.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no position of an event, such as `7.2`")]
pub struct BadPosition(pub String);

impl FromStr for Position {
    type Err = BadPosition;

    fn from_str(text: &str) -> Result<Position, BadPosition> {
        let read = || {
            let (entry, index) = text.split_once('.')?;
            Some(Position { entry: entry.parse().ok()?, index: index.parse().ok()? })
        };
        read().ok_or_else(|| BadPosition(text.to_owned()))
    }
}

/// Something that happened.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    pub position: Position,
    pub at: Moment,
    /// The run (or job) it belongs to, if it belongs to one that the store still remembers.
    pub run: Option<RunId>,
    /// The task it is about; of a run, its root task.
    pub task: Option<TaskId>,
    pub what: Happening,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Happening {
    /// Accepted: an execution of an action, or a run of a flow.
    RunQueued {
        name: Name,
        priority: i8,
        tags: Vec<(Name, Name)>,
        /// Not before this time.
        due: Option<Moment>,
    },
    RunStarted,
    RunFinished {
        state: State,
        error: Option<String>,
    },
    /// Everything it demands was granted, and a worker has it.
    TaskGranted {
        worker: Name,
        epoch: Epoch,
        /// Which try this is, from 1.
        attempt: u32,
    },
    /// An attempt failed; there will be another.
    TaskRetrying {
        at: Moment,
        reason: Option<String>,
    },
    /// An attempt is in line again without having failed: its worker handed it back, or left.
    TaskReturned {
        /// Nothing if it was granted before the position from which events are read.
        worker: Option<Name>,
        epoch: Epoch,
    },
    /// A job, a run, a step or an item ended. Of what was submitted, its run has finished too.
    TaskFinished {
        state: State,
        error: Option<String>,
        /// How many items ended alike, this one and those after it.
        count: u32,
    },
    /// A step of a run that retries another ended there, and is not run again.
    TaskReused {
        state: State,
        /// In which it ran.
        run: RunId,
    },
    /// A worker did not renew its lease in time; what it still does counts for nothing.
    LeaseExpired {
        /// Nothing if it was granted before the position from which events are read.
        worker: Option<Name>,
        epoch: Epoch,
    },
    /// An operator set a limit, took that back, paused or resumed it.
    LimitChanged {
        limit: LimitKey,
        /// Nothing: the declared value counts.
        to: Option<LimitValue>,
        by: Option<Name>,
        until: Option<Moment>,
        paused: bool,
    },
    /// A worker is there, or has another number of slots.
    WorkerJoined {
        worker: Name,
        slots: SlotCounts,
    },
    /// A worker takes nothing new.
    WorkerDrained {
        worker: Name,
    },
    /// A worker left, or was not heard of for so long that it was taken for lost.
    WorkerLost {
        worker: Name,
    },
}

impl Happening {
    /// The name of this kind of event, everywhere.
    pub fn kind(&self) -> &'static str {
        match self {
            Happening::RunQueued { .. } => "run.queued",
            Happening::RunStarted => "run.started",
            Happening::RunFinished { .. } => "run.finished",
            Happening::TaskGranted { .. } => "task.granted",
            Happening::TaskRetrying { .. } => "task.retrying",
            Happening::TaskReturned { .. } => "task.returned",
            Happening::TaskFinished { .. } => "task.finished",
            Happening::TaskReused { .. } => "task.reused",
            Happening::LeaseExpired { .. } => "lease.expired",
            Happening::LimitChanged { .. } => "limit.changed",
            Happening::WorkerJoined { .. } => "worker.joined",
            Happening::WorkerDrained { .. } => "worker.drained",
            Happening::WorkerLost { .. } => "worker.lost",
        }
    }
}
