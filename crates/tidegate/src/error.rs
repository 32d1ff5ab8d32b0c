//! What can go wrong, by what to do about it.

use thiserror::Error;
use tidegate_core::Lost;
use tidegate_core::admission::BadLimitName;
use tidegate_core::ids::RunId;
use tidegate_core::protocol::Refusal;
use tidegate_core::state::State;
use tidegate_engine::EngineError;
use tidegate_flow::Diagnostics;
use tidegate_store::{BackupError, StoreError};

/// Why something was not done, or did not end well.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Ask again: it may or may not have happened.
    #[error("the engine cannot answer now; ask again")]
    Unavailable,
    /// As [`Error::Unavailable`], and it may take a while: the store cannot be used now. The engine tries on.
    #[error("{0}; ask again")]
    Outage(#[source] StoreError),
    /// As [`Error::Unavailable`], and it may take a while: another process leads, and this one does not get through to
    /// it. It may need an address of its own: [`Builder::host`](crate::Builder::host). The engine tries on.
    #[error("another process leads, and {0}; ask again")]
    Unreachable(String),
    /// The store cannot be opened or read: another process has it, or it is damaged, or of a newer version.
    #[error(transparent)]
    Store(StoreError),
    /// This handle was closed.
    #[error("the engine has ended")]
    Closed,
    /// An address of a store that nobody understands.
    #[error("`{0}` is no address of a store: write `sqlite:PATH`, `postgres://…` or `memory:`")]
    Address(String),
    /// The port on which other processes would reach this one cannot be opened.
    #[error("no port can be opened for the other processes that share the store: {0}")]
    Listen(#[source] std::io::Error),
    /// There is no copy of the store: a file is in the way, or it cannot be written.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// This kind of store is not backed up from here; it says how it is.
    #[error("{0}")]
    BackupElsewhere(&'static str),

    /// The caller's own transaction failed: nothing of it happened.
    #[error("it cannot be left in the mailbox: {0}")]
    Transaction(#[source] tokio_postgres::Error),

    /// The engine did not do it, and asking again would not change that. Nothing was changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A text with flows, actions or limits is wrong; this is everything that is wrong with it.
    #[error("{0}")]
    Definitions(#[source] Box<Diagnostics>),
    /// What was given to an action or flow is not what it takes.
    #[error("`{name}` cannot be submitted: {reason}")]
    Inputs {
        /// The action or flow.
        name: String,
        /// Everything that is wrong, in a sentence.
        reason: String,
    },
    /// A priority that is not between -100 and 100.
    #[error("a priority must be between -100 and 100, not {0}")]
    Priority(i8),
    /// A name of a limit that names none.
    #[error(transparent)]
    LimitName(#[from] BadLimitName),
    /// Nothing was ever submitted under this id, or it was forgotten since.
    #[error("there is no run {0}")]
    UnknownRun(RunId),
    /// Events in between are not kept any more. More follow; whoever needs to know what is reads it anew.
    #[error("what happened after entry {from} and up to entry {to} is not kept any more")]
    Missed {
        /// The last entry whose events were told.
        from: u64,
        /// The entry after which events go on.
        to: u64,
    },
    /// A name of a run, step or item that leads nowhere.
    #[error(transparent)]
    Lost(#[from] Lost),

    /// It ran, and failed as often as it may.
    #[error("{run} failed: {error}")]
    Failed {
        /// What failed.
        run: RunId,
        /// What it said last.
        error: String,
    },
    /// It ran longer than it may.
    #[error("{0} timed out")]
    TimedOut(RunId),
    /// Somebody cancelled it.
    #[error("{0} was cancelled")]
    Cancelled(RunId),
    /// It ended without having started: it waited too long, a newer one took its place, or a limit refused it.
    #[error("{run} never started, it was {state}{}", because(error))]
    NeverStarted {
        /// What never started.
        run: RunId,
        /// How it ended: `expired`, `refused`, `replaced` or `skipped`.
        state: State,
        /// Why, if there is more to say.
        error: Option<String>,
    },
    /// It succeeded, but its output is not of the type that was asked for.
    #[error("the output of {run} is not what was asked for")]
    Output {
        /// Whose output.
        run: RunId,
        /// Where it differs.
        source: serde_json::Error,
    },
}

fn because(error: &Option<String>) -> String {
    error.as_ref().map(|error| format!(": {error}")).unwrap_or_default()
}

impl Error {
    /// Whether asking for the same again later may help, without anybody changing anything.
    pub fn may_pass(&self) -> bool {
        matches!(self, Error::Unavailable | Error::Outage(_) | Error::Unreachable(_))
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Error {
        match error {
            EngineError::Unavailable => Error::Unavailable,
            EngineError::Outage(why) => Error::Outage(why),
            EngineError::Unreachable(why) => Error::Unreachable(why),
            EngineError::Ended => Error::Closed,
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        if error.may_pass() { Error::Outage(error) } else { Error::Store(error) }
    }
}

impl From<Diagnostics> for Error {
    fn from(diagnostics: Diagnostics) -> Error {
        Error::Definitions(Box::new(diagnostics))
    }
}
