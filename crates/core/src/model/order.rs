//! What a worker is handed, and what it must be able to do to be handed it.

use crate::ids::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Fully rendered work for a built-in runner: nothing in it is a template any more. Stored and sent as JSON. A call of
/// a function is `{"call": {"function": …, "input": …}}` instead, so that its input is never read on the way.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    Run {
        argv: Vec<String>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
    },
}

/// Which of a worker's two kinds of slots an attempt takes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum SlotKind {
    /// A process of its own: about one a core.
    Process,
    /// Something that mostly waits for others: hundreds are fine.
    Io,
}

/// What carries an order out.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Runner {
    /// Any worker can start processes.
    Process,
    /// A function that a worker registered under the action's name.
    Function(Name),
}

/// Which workers may run an attempt. Equal requirements share a line.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Requirement {
    pub queue: Name,
    pub runner: Runner,
    /// Sorted, without repeats.
    pub labels: Vec<Name>,
}

impl Requirement {
    pub fn process() -> Self {
        Requirement {
            queue: Name::new(Requirement::DEFAULT_QUEUE),
            runner: Runner::Process,
            labels: Vec::new(),
        }
    }

    pub fn function(action: Name) -> Self {
        Requirement { runner: Runner::Function(action), ..Requirement::process() }
    }

    pub const DEFAULT_QUEUE: &str = "default";

    pub fn slot(&self) -> SlotKind {
        match self.runner {
            Runner::Process => SlotKind::Process,
            Runner::Function(_) => SlotKind::Io,
        }
    }
}
