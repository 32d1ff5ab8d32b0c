//! Answers to the questions the engine asks while a run makes progress: templates become values.
//!
//! Nothing here fails: what cannot be rendered is an answer too, [`Evaluation::Failed`], whose sentence names
//! the step, the field and what is undefined in it.

mod items;
mod needs;
mod render;
mod scope;
mod work;

pub use items::Items;
pub use needs::{Needed, Part, steps_needed};
pub(crate) use render::Renderer;
pub use scope::{Callee, Scope, StepResult};
pub(crate) use work::order_of;

use crate::template::Limits;
use crate::yaml::json_kind;
use render::OUTPUT;
use serde_json::Value as Json;
use std::sync::Arc;
use tidegate_core::model::{Action, Flow, MAX_ITEMS, Step};
use tidegate_core::protocol::{Evaluation, LARGEST_PAYLOAD, Payload, Rendered};

/// Bytes of the list of one loop.
const MAX_LIST: usize = 64 * 1024 * 1024;

/// A step whose predecessors have ended: is it skipped, and if not, what is it to do?
pub fn evaluate_step(flow: &Flow, step: usize, scope: &Scope) -> Evaluation {
    let Some(step) = flow.steps.get(step) else { return no_such_step(flow, step) };
    answer(try_step(step, scope))
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
    answer(outputs)
}

fn try_step(step: &Step, scope: &Scope) -> Result<Evaluation, String> {
    let root = scope.root();
    let renderer = Renderer::new(root.clone());
    if let Some(when) = step.rule.when() {
        match renderer.template(when, "when")? {
            Json::Bool(true) => {}
            Json::Bool(false) => return Ok(Evaluation::Skipped),
            other => return Err(format!("`when` must be `true` or `false`, not {}", json_kind(&other))),
        }
    }
    let Some(each) = &step.each else { return work::evaluate(step, scope, &renderer) };
    let renderer = Renderer::limited(root, Limits { text: MAX_LIST, value: MAX_LIST });
    match renderer.template(&each.items, "with_items")? {
        Json::Array(items) if items.len() > MAX_ITEMS as usize => {
            Err(format!("`with_items` has {} items, more than the {MAX_ITEMS} allowed", items.len()))
        }
        Json::Array(items) => {
            let count = items.len() as u32;
            let items = Json::Array(items).to_string();
            if items.len() > MAX_LIST {
                return Err(format!("`with_items` is larger than {MAX_LIST} bytes"));
            }
            Ok(Evaluation::List { items: Payload::new(items), count })
        }
        other => Err(format!("`with_items` must be a list, not {}", json_kind(&other))),
    }
}

/// Whose error it is, the one who asked knows.
fn answer(evaluated: Result<Evaluation, String>) -> Evaluation {
    evaluated.unwrap_or_else(|error| Evaluation::Failed { error })
}

fn no_such_step(flow: &Flow, step: usize) -> Evaluation {
    Evaluation::Failed { error: format!("flow `{}` has no step number {step}", flow.name) }
}
