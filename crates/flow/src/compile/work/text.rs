//! Single values that become text, and references to secrets.

use crate::compile::context::Context;
use crate::grammar;
use crate::problem::{Problem, quoted};
use crate::template::{Names, is_template};
use crate::yaml::{Entry, Node, Value};
use serde_json::{Value as Json, json};

/// A single value that becomes text. Numbers keep their spelling: `007` is an argument, not seven.
pub(super) fn plain(cx: &mut Context<'_>, node: &Node, field: &str, names: Names<'_>) -> Json {
    match &node.value {
        Value::Scalar { text, .. } if !node.is_null() => {
            cx.check_templates(node, names);
            Json::String(text.clone())
        }
        _ => {
            cx.wrong_type(node, field, "text", Some("put quotes around it to make it text"));
            Json::Null
        }
    }
}

/// A single value that becomes text, or where the worker finds one.
pub(super) fn plain_or_secret(cx: &mut Context<'_>, entry: &Entry, names: Names<'_>) -> Json {
    match &entry.node.value {
        Value::Map(_) => secret(cx, &entry.node),
        _ => plain(cx, &entry.node, &entry.key, names),
    }
}

/// `{ secret: "env:TOKEN" }`: a reference, which only the worker that needs it follows.
pub(in crate::compile) fn secret(cx: &mut Context<'_>, node: &Node) -> Json {
    let Some(fields) = cx.fields(node, "secret", &grammar::SECRET) else { return Json::Null };
    let Some(entry) = cx.required(&fields, "secret") else { return Json::Null };
    let Some(text) = cx.text(&entry.node, "secret") else { return Json::Null };
    let is_reference = match text.split_once(':') {
        Some(("env", name)) => !name.is_empty() && !name.contains(['=', '\0']),
        Some(("file", path)) => !path.is_empty(),
        _ => false,
    };
    if !is_reference || is_template(text) {
        cx.report(entry.node.span, Problem::BadSecret { text: quoted(text) });
    }
    json!({ "secret": text })
}
