//! The tree.

use super::scalar;
use crate::source::Span;
use serde_json::Value as Json;

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub span: Span,
    pub value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// `plain` is false for quoted and block text, which is never anything but text.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: String,
    pub key_span: Span,
    pub node: Node,
}

impl Node {
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } if self.scalar().is_string() => Some(text),
            _ => None,
        }
    }

    /// The scalar by YAML's core schema; `Null` for lists and maps too.
    pub fn scalar(&self) -> Json {
        match &self.value {
            Value::Scalar { text, plain: true } => scalar::resolve(text),
            Value::Scalar { text, plain: false } => Json::String(text.clone()),
            _ => Json::Null,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Scalar { .. }) && self.scalar().is_null()
    }

    pub fn json(&self) -> Json {
        match &self.value {
            Value::Scalar { .. } => self.scalar(),
            Value::List(items) => Json::Array(items.iter().map(Node::json).collect()),
            Value::Map(entries) => {
                Json::Object(entries.iter().map(|entry| (entry.key.clone(), entry.node.json())).collect())
            }
        }
    }

    /// What it is, for a sentence: "a list".
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Scalar { .. } => json_kind(&self.scalar()),
            Value::List(_) => "a list",
            Value::Map(_) => "an object",
        }
    }

    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Values in the whole tree, this one included.
    pub fn size(&self) -> usize {
        1 + match &self.value {
            Value::Scalar { .. } => 0,
            Value::List(items) => items.iter().map(Node::size).sum(),
            Value::Map(entries) => entries.iter().map(|entry| entry.node.size()).sum(),
        }
    }

    pub fn depth(&self) -> usize {
        1 + match &self.value {
            Value::Scalar { .. } => 0,
            Value::List(items) => items.iter().map(Node::depth).max().unwrap_or(0),
            Value::Map(entries) => entries.iter().map(|entry| entry.node.depth()).max().unwrap_or(0),
        }
    }
}

pub(crate) fn json_kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "nothing",
        Json::Bool(_) => "a boolean",
        Json::Number(number) if number.is_f64() => "a number",
        Json::Number(_) => "an integer",
        Json::String(_) => "text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}
