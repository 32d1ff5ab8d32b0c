//! `with_items`, its window, and how many failures it bears.

use super::context::{Context, Fields};
use super::templates::template_of;
use crate::grammar::{self, ON_FAILURE_WORDS};
use crate::problem::Problem;
use crate::template::Names;
use crate::yaml::{Entry, Value};
use serde_json::Value as Json;
use tidegate_core::model::{Loop, OnFailure, Template};

pub(super) fn compile(
    cx: &mut Context<'_>,
    step: &Entry,
    fields: &Fields<'_>,
    names: Names<'_>,
) -> Option<Loop> {
    let items = fields.get("with_items");
    if let Some(cursor) = fields.get("cursor") {
        if items.is_some() {
            cx.report(cursor.key_span, Problem::TwoLoops);
        }
    } else if items.is_none() {
        for field in ["concurrency", "on_failure"] {
            if let Some(entry) = fields.get(field) {
                cx.report(entry.key_span, Problem::NeedsLoop { field, step: step.key.clone() });
            }
        }
    }
    let window = cx.count_of(fields, "concurrency");
    let on_failure = fields.get("on_failure").and_then(|entry| on_failure(cx, entry));
    let items = list(cx, items?, names)?;
    let window_line = fields.get("concurrency").map(|entry| cx.line(entry.key_span));
    Some(Loop { items, window, on_failure: on_failure.unwrap_or(OnFailure::STOP), window_line })
}

/// One expression that gives a list, or the list itself.
fn list(cx: &mut Context<'_>, entry: &Entry, names: Names<'_>) -> Option<Template> {
    match &entry.node.value {
        Value::List(_) => {
            cx.check_templates(&entry.node, names);
            Some(template_of(&Json::Array(entry.node.json().as_array().cloned().unwrap_or_default())))
        }
        Value::Scalar { .. } if entry.node.text().is_some() => {
            cx.expression(&entry.node, "with_items", names)
        }
        _ => {
            cx.wrong_type(&entry.node, "with_items", "a list or one `{{ expression }}`", None);
            None
        }
    }
}

fn on_failure(cx: &mut Context<'_>, entry: &Entry) -> Option<OnFailure> {
    if entry.node.text() == Some("tolerate") {
        let help = "say how many: `{ tolerate: 5 }`";
        cx.wrong_type(&entry.node, "on_failure", "`stop`, `continue` or an object", Some(help));
        return None;
    }
    if !matches!(entry.node.value, Value::Map(_)) {
        return cx.choice(entry, &ON_FAILURE_WORDS);
    }
    let fields = cx.fields(&entry.node, "on_failure", &grammar::ON_FAILURE)?;
    cx.required(&fields, "tolerate")?;
    cx.count_of(&fields, "tolerate").map(OnFailure::Tolerate)
}
