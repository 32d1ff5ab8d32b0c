//! What a worker is handed, and what it must be able to do to be handed it.

use super::Cause;
use crate::ids::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Fully rendered work for a built-in runner: nothing in it is a template any more. Stored and sent as JSON. A call of
/// a function is `{"call": {"function": …, "input": …}}` instead, so that its input is never read on the way, and a chain
/// is `{"do": {"root": …, "scope": …}}`, whose members become orders one by one, on the worker.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// A program and its arguments.
    Run {
        argv: Vec<String>,
        #[serde(flatten)]
        surroundings: Surroundings,
    },
    /// A script, whose text is as it stands in the file: values reach it through the environment only.
    Shell {
        script: String,
        #[serde(flatten)]
        surroundings: Surroundings,
    },
    /// A request to a server.
    Http(Box<Request>),
    /// Statements for a database.
    Sql(Box<Statements>),
}

/// What a process finds around it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Surroundings {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// What is asked of a server, and what is made of its answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Request {
    pub method: String,
    pub url: String,
    /// Added to what the URL asks for already.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, Text>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// How many redirections are followed.
    pub redirects: u32,
    /// Bytes of the answer's body.
    pub max_size: usize,
    /// Which answers are good besides 2xx: `status:404`, `status:4xx`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ok: Vec<Cause>,
}

/// As whom a server is asked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Auth {
    Bearer(Text),
    Basic { user: Text, password: Text },
}

/// What is sent along.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// JSON, as text.
    Json(String),
    Form(BTreeMap<String, Text>),
    Body(String),
}

/// What is asked of a database. The texts of the statements are those of the file: values come as parameters only.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Statements {
    pub connection: Connection,
    /// One after the other.
    pub statements: Vec<Statement>,
    /// All of them happen, or none.
    pub transaction: bool,
}

/// Where a database is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Connection {
    /// For messages.
    pub name: Name,
    pub url: Text,
    /// Connections at once, of one worker.
    pub max: u32,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Statement {
    pub query: String,
    /// A JSON list, as text.
    pub params: String,
}

/// A text, or where the worker that needs it finds one that nobody else may see: `env:NAME`, `file:PATH`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Text {
    Plain(String),
    Secret { secret: String },
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
    /// A process of its own.
    Process,
    /// What a worker does inside its own process, waiting for others most of the time.
    Io,
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

    pub fn io() -> Self {
        Requirement { runner: Runner::Io, ..Requirement::process() }
    }

    pub const DEFAULT_QUEUE: &str = "default";

    /// The same, in the queue of what was submitted, unless it names one of its own.
    pub fn submitted_to(self, queue: Option<&Name>) -> Self {
        match queue {
            Some(queue) if self.queue.as_str() == Requirement::DEFAULT_QUEUE => {
                Requirement { queue: queue.clone(), ..self }
            }
            _ => self,
        }
    }

    pub fn slot(&self) -> SlotKind {
        match self.runner {
            Runner::Process => SlotKind::Process,
            Runner::Io | Runner::Function(_) => SlotKind::Io,
        }
    }
}
