//! Rendering is somebody else's work: the core asks a question, the answer comes back as a command.

use crate::ids::{Name, NodeId};
use crate::time::Moment;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// JSON text that the core carries without reading it: inputs, orders, outputs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload(Arc<[u8]>);

impl Payload {
    pub fn new(json: impl AsRef<[u8]>) -> Self {
        Payload(Arc::from(json.as_ref()))
    }

    pub fn null() -> Self {
        Payload::new("null")
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// What the core needs to know before it can go on. Asked again after a crash; answered at most once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Question {
    /// A step is ready: does its `when` hold, and what exactly is it to do?
    Step { run: NodeId, step: u32 },
    /// The inputs of the items `from..to` of a loop.
    Items { step: NodeId, from: u32, to: u32 },
    /// The outputs of a run all of whose steps have ended well.
    Outputs { run: NodeId },
}

/// One item, rendered: its order and the key of its action's limit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rendered {
    pub order: Payload,
    pub key: Option<Name>,
}

/// The answer to a [`Question`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Evaluation {
    /// The step's condition is false.
    Skipped,
    /// A plain step: this is what a worker has to do.
    Order(Rendered),
    /// A loop: the whole list, kept once; its items are rendered slice by slice.
    List { items: Payload, count: u32 },
    /// A slice of a loop, in index order.
    Items(Vec<Rendered>),
    /// A sub-flow: its inputs, checked against their types, with its rendered tags and key.
    SubFlow { inputs: Payload },
    /// A `wait` step ends at this time.
    Until(Moment),
    /// The outputs of a run.
    Outputs(Payload),
    /// A template failed, or gave something of the wrong type.
    Failed { error: String },
}
