//! What the templates of a chain see, and what becomes of them.

use super::{LONGEST_PAUSE, MemberWork};
use crate::duration::parse_duration;
use crate::evaluate::{Renderer, order_of};
use crate::problem::quoted;
use crate::template::{Compiled, Limits, value_of};
use crate::yaml::json_kind;
use minijinja::value::Value;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_core::model::Order;
use tidegate_core::protocol::LARGEST_PAYLOAD;
use tidegate_core::time::Span;

/// What is rendered here is never stored, so it may be as large as what came before it.
const LIMITS: Limits = Limits { text: LARGEST_PAYLOAD, value: LARGEST_PAYLOAD };

/// What can be seen at one point of a chain. Cheap to clone.
#[derive(Clone)]
pub struct Scope {
    seen: BTreeMap<String, Value>,
    compiled: Arc<Compiled>,
}

impl Scope {
    /// At the beginning, from what came with the chain.
    pub fn new(scope: &Json) -> Scope {
        let values = scope.as_object().into_iter().flatten();
        let seen = values.map(|(name, value)| (name.clone(), value_of(value))).collect();
        Scope { seen, compiled: Arc::default() }
    }

    /// A member has ended, and those after it see how: `page.state`, `page.output`.
    pub fn ended(&mut self, member: &str, state: &str, output: &Json) {
        let fields = [("state", Value::from(state)), ("output", value_of(output))];
        self.seen.insert(member.to_owned(), Value::from_pairs(fields));
    }

    /// A round begins: `repeat.index`, from 1.
    pub fn begins_round(&mut self, index: u32) {
        self.seen.insert("repeat".to_owned(), Value::from_pairs([("index", Value::from(index))]));
    }

    /// Whether the condition that stands under `field` is true. The error is a sentence.
    pub fn holds(&self, condition: &str, field: &str) -> Result<bool, String> {
        match self.renderer().json(&Json::String(condition.to_owned()), field)? {
            Json::Bool(holds) => Ok(holds),
            other => Err(format!("`{field}` must be `true` or `false`, not {}", json_kind(&other))),
        }
    }

    /// What a runner is to do; nothing for what needs none. The error is a sentence.
    pub fn order(&self, work: &MemberWork) -> Result<Option<Order>, String> {
        let (runner, parts) = match work {
            MemberWork::Run(parts) => ("run", parts),
            MemberWork::Shell(parts) => ("shell", parts),
            MemberWork::Http(parts) => ("http", parts),
            MemberWork::Sql(parts) => ("sql", parts),
            MemberWork::Wait(_) | MemberWork::Do(_) => return Ok(None),
        };
        order_of(runner, parts, &self.renderer()).map(Some)
    }

    /// How long a `wait` is. The error is a sentence.
    pub fn pause(&self, wait: &Json) -> Result<Span, String> {
        let value = self.renderer().json(wait, "wait")?;
        let span = match &value {
            Json::Number(seconds) => seconds
                .as_f64()
                .filter(|seconds| (0.0..1e10).contains(seconds))
                .map(|seconds| Span::micros((seconds * 1e6) as u64)),
            Json::String(text) => parse_duration(text.trim()),
            other => return Err(format!("`wait` must be a duration, not {}", json_kind(other))),
        };
        let shown = || quoted(value.to_string().trim_matches('"'));
        match span {
            None => Err(format!("`wait`: `{}` is not a duration", shown())),
            Some(span) if span > LONGEST_PAUSE => {
                Err(format!("`wait`: {} is longer than the minute that a chain may pause", shown()))
            }
            Some(span) => Ok(span),
        }
    }

    fn renderer(&self) -> Renderer {
        let seen = self.seen.iter().map(|(name, value)| (name.as_str(), value.clone()));
        Renderer::limited(Value::from_pairs(seen), LIMITS).compiled(self.compiled.clone())
    }
}
