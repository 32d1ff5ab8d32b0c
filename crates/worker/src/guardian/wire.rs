//! What worker and guardian say to each other: one JSON value a line, over the guardian's stdin and stdout.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tidegate_core::time::{Moment, Span};

/// The worker's number for one attempt; greater than all it gave the same guardian before.
pub(crate) type Id = u64;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Command {
    Spawn(Spawn),
    Extend {
        id: Id,
        deadline: Moment,
    },
    /// SIGTERM to all its processes now, SIGKILL after its grace.
    Stop {
        id: Id,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spawn {
    pub(crate) id: Id,
    pub(crate) argv: Vec<String>,
    /// On top of what every process gets from the guardian's own environment.
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: Option<String>,
    /// On the clock both share; SIGTERM then, SIGKILL after the grace.
    pub(crate) deadline: Moment,
    pub(crate) grace: Span,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Event {
    Started {
        id: Id,
        pid: i32,
    },
    /// There is no process, and this sentence says why.
    NotStarted {
        id: Id,
        error: String,
    },
    Line {
        id: Id,
        /// Wall time at which it was read.
        at: Moment,
        stream: Stream,
        text: String,
        newline: bool,
    },
    /// The leader has ended, and so has all that descended from it.
    Exited {
        id: Id,
        exit: Exit,
    },
}

/// Which of its two outputs a process wrote to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Stdout,
    Stderr,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Exit {
    /// Absent if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    /// It had been asked to end before it did.
    pub(crate) stopped: bool,
}
