//! Rendering is somebody else's work: the core asks a question, the answer comes back as a command.

use crate::ids::{Name, NodeId};
use crate::time::Moment;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// JSON text that the core carries without reading it: inputs, orders, outputs.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload(Arc<[u8]>);

impl Payload {
    pub fn new(json: impl AsRef<[u8]>) -> Self {
        Payload(Arc::from(json.as_ref()))
    }

    pub fn null() -> Self {
        Payload::new("null")
    }

    pub fn is_null(&self) -> bool {
        self.bytes() == b"null"
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

/// As one piece: byte by byte, payloads would be most of the work of writing an entry down.
impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Bytes)
    }
}

struct Bytes;

impl<'de> Visitor<'de> for Bytes {
    type Value = Payload;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Payload, E> {
        Ok(Payload::new(bytes))
    }

    /// Formats that have no bytes write a list of numbers.
    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Payload, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = numbers.next_element::<u8>()? {
            bytes.push(byte);
        }
        Ok(Payload::new(bytes))
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
    /// A slice of a loop, in index order: at least the first item, and of large ones not all.
    Items(Vec<Result<Rendered, String>>),
    /// A sub-flow: its inputs, checked against their types, with its rendered tags and key.
    SubFlow { inputs: Payload },
    /// A `wait` step ends at this time.
    Until(Moment),
    /// The outputs of a run.
    Outputs(Payload),
    /// A template failed, or gave something of the wrong type.
    Failed { error: String },
}
