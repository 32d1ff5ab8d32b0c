//! What templates can see.

use crate::template::value_of;
use minijinja::value::Value;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_core::model::{Action, Flow};
use tidegate_core::time::Moment;

/// Everything an evaluation depends on; the same scope always gives the same answer.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// The run's inputs, an object.
    pub inputs: Json,
    /// At least the steps that [`super::steps_needed`] names.
    pub steps: BTreeMap<String, StepResult>,
    /// The run's id as text: `run.id`.
    pub run: String,
    /// When `wait` starts to count.
    pub now: Moment,
    /// What the step calls, if that is known.
    pub callee: Callee,
}

/// How a step ended.
#[derive(Clone, Debug, Default)]
pub struct StepResult {
    /// `succeeded`, `failed`, `timed_out`, `cancelled`, `skipped`, `expired`.
    pub state: String,
    pub output: Json,
    pub error: Option<String>,
}

/// The definition of the action or flow that a step names.
#[derive(Clone, Debug, Default)]
pub enum Callee {
    /// A process, or an action that nobody declared: its inputs are handed on unchecked.
    #[default]
    Unknown,
    Action(Arc<Action>),
    Flow(Arc<Flow>),
}

impl Scope {
    pub(super) fn base(&self) -> BTreeMap<&'static str, Value> {
        let steps = self.steps.iter().map(|(name, step)| {
            let error = step.error.as_deref().map_or_else(|| Value::from(()), Value::from);
            let fields = [
                ("state", Value::from(step.state.as_str())),
                ("output", value_of(&step.output)),
                ("error", error),
            ];
            (name.as_str(), Value::from_pairs(fields))
        });
        BTreeMap::from([
            ("inputs", value_of(&self.inputs)),
            ("steps", Value::from_pairs(steps)),
            ("run", Value::from_pairs([("id", Value::from(self.run.as_str()))])),
        ])
    }

    pub(super) fn root(&self) -> Value {
        Value::from_pairs(self.base())
    }

    /// The variables of one item; the rest is shared with its neighbours, not copied.
    pub(super) fn with_item(base: &BTreeMap<&'static str, Value>, item: &Json, index: u32) -> Value {
        let own = [("item", value_of(item)), ("index", Value::from(index))];
        Value::from_pairs(base.iter().map(|(name, value)| (*name, value.clone())).chain(own))
    }
}
