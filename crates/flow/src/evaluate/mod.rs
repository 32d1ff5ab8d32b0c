//! Answers to the questions the engine asks while a run makes progress: templates become values.
//!
//! Nothing here fails: what cannot be rendered is an answer too, [`Evaluation::Failed`], whose sentence names
//! the step, the field and what is undefined in it.

mod items;
mod list;
mod needs;
mod render;
mod scope;
mod work;

pub use items::Items;
pub use list::{ListPlace, Within, list_place};
pub use needs::{Extent, Needed, Part, steps_needed};
pub(crate) use render::Renderer;
pub use scope::{Callee, Scope, StepResult};
pub(crate) use work::order_of;

use crate::template::Limits;
use crate::yaml::json_kind;
use render::OUTPUT;
use serde_json::Value as Json;
use std::sync::Arc;
use tidegate_core::model::{Action, Flow, MAX_ITEMS, Step};
use tidegate_core::protocol::{Evaluation, LARGEST_OUTPUT, LARGEST_PAYLOAD, Payload, Rendered};

/// A step whose predecessors have ended: is it skipped, and if not, what is it to do?
pub fn evaluate_step(flow: &Flow, step: usize, scope: &Scope) -> Evaluation {
    let Some(step) = flow.steps.get(step) else { return no_such_step(flow, step) };
    answer(try_step(step, scope).map_err(|error| at(flow, step, &error)))
}

/// How such a step ends before it is asked what it is to do; nothing if it is to be done.
pub fn evaluate_when(flow: &Flow, step: usize, scope: &Scope) -> Option<Evaluation> {
    let Some(step) = flow.steps.get(step) else { return Some(no_such_step(flow, step)) };
    match is_wanted(step, &Renderer::new(scope.root())) {
        Ok(true) => None,
        Ok(false) => Some(Evaluation::Skipped),
        Err(error) => Some(Evaluation::Failed { error: at(flow, step, &error) }),
    }
}

/// What the items from index `from` on are to do, in index order, or why that cannot be said. Of large items only the
/// first.
pub fn evaluate_items(flow: &Flow, step: usize, scope: &Scope, from: u32, items: &[Json]) -> Evaluation {
    Items::new(scope).evaluate(flow, step, from, items)
}

/// What a single execution of an action is to do, and under which key. The error is a sentence.
pub fn evaluate_job(action: &Action, inputs: Json) -> Result<Rendered, String> {
    work::call(action, inputs, Arc::default())
}

/// The outputs of a run that has ended well.
pub fn evaluate_outputs(flow: &Flow, scope: &Scope) -> Evaluation {
    let Some(template) = &flow.outputs else { return Evaluation::Outputs(Payload::new("{}")) };
    let renderer = Renderer::limited(scope.root(), OUTPUT);
    let outputs = renderer.template(template, "outputs").and_then(|outputs| {
        let bytes = outputs.to_string();
        if bytes.len() > LARGEST_PAYLOAD {
            return Err(format!("`outputs` is larger than {LARGEST_PAYLOAD} bytes"));
        }
        Ok(Evaluation::Outputs(Payload::new(bytes)))
    });
    answer(outputs.map_err(|error| format!("{error} ({})", flow.file)))
}

fn try_step(step: &Step, scope: &Scope) -> Result<Evaluation, String> {
    let root = scope.root();
    let renderer = Renderer::new(root.clone());
    if !is_wanted(step, &renderer)? {
        return Ok(Evaluation::Skipped);
    }
    let Some(each) = &step.each else { return work::evaluate(step, scope, &renderer) };
    let renderer = Renderer::limited(root, Limits { text: LARGEST_OUTPUT, value: LARGEST_OUTPUT });
    match renderer.template(&each.items, "with_items")? {
        Json::Array(items) if items.len() > MAX_ITEMS as usize => Err(too_many(items.len())),
        Json::Array(items) => {
            let count = items.len() as u32;
            let items = Json::Array(items).to_string();
            if items.len() > LARGEST_OUTPUT {
                return Err(format!("`with_items` is larger than {LARGEST_OUTPUT} bytes"));
            }
            Ok(Evaluation::List { items: Payload::new(items), count })
        }
        other => Err(format!("`with_items` must be a list, not {}", json_kind(&other))),
    }
}

fn is_wanted(step: &Step, renderer: &Renderer) -> Result<bool, String> {
    let Some(when) = step.rule.when() else { return Ok(true) };
    match renderer.template(when, "when")? {
        Json::Bool(wanted) => Ok(wanted),
        other => Err(format!("`when` must be `true` or `false`, not {}", json_kind(&other))),
    }
}

/// An error, and where the step stands.
fn at(flow: &Flow, step: &Step, error: &str) -> String {
    format!("{error} ({}:{})", flow.file, step.line)
}

fn too_many(items: usize) -> String {
    format!("`with_items` has {items} items, more than the {MAX_ITEMS} allowed")
}

/// Whose error it is, the one who asked knows.
fn answer(evaluated: Result<Evaluation, String>) -> Evaluation {
    evaluated.unwrap_or_else(|error| Evaluation::Failed { error })
}

fn no_such_step(flow: &Flow, step: usize) -> Evaluation {
    Evaluation::Failed { error: format!("flow `{}` has no step number {step}", flow.name) }
}
