//! Processes: `run`, a program and its arguments, and `shell`, a script.

use crate::compile::context::{Context, Fields};
use crate::compile::templates::template_of;
use crate::problem::{Problem, quoted};
use crate::template::{Names, is_template};
use crate::yaml::{Entry, Node, Value};
use serde_json::{Map, Value as Json, json};
use tidegate_core::model::Template;

pub(in crate::compile) const WORKS: &[&str] = &["run", "shell"];

/// The order as a template: `{"run": {argv, env, cwd}}` or `{"shell": {script, env, cwd}}`.
pub(in crate::compile) fn compile(
    cx: &mut Context<'_>,
    entry: &Entry,
    fields: &Fields<'_>,
    names: Names<'_>,
) -> Template {
    let mut order = match entry.key.as_str() {
        "shell" => json!({ "script": script(cx, &entry.node) }),
        _ => json!({ "argv": argv(cx, entry, names) }),
    };
    if let Some(env) = fields.get("env") {
        order["env"] = environment(cx, env, names);
    }
    if let Some(cwd) = fields.get("cwd") {
        order["cwd"] = plain(cx, &cwd.node, "cwd", names);
    }
    template_of(&Json::Object(Map::from_iter([(entry.key.clone(), order)])))
}

fn argv(cx: &mut Context<'_>, entry: &Entry, names: Names<'_>) -> Json {
    let help = "a program and its arguments, such as [echo, hello]; for a script, use `shell`";
    let Some(argv) = cx.list(entry, Some(help)) else { return json!([]) };
    if argv.is_empty() {
        cx.report(entry.node.span, Problem::NoProgram);
    }
    argv.iter().map(|node| plain(cx, node, "run", names)).collect()
}

/// A value inside it would be read as part of the script.
fn script(cx: &mut Context<'_>, node: &Node) -> Json {
    let Some(text) = cx.text(node, "shell") else { return Json::Null };
    if is_template(text) {
        cx.report(node.span, Problem::TemplateInScript);
    } else if text.trim().is_empty() {
        cx.report(node.span, Problem::NoProgram);
    }
    Json::String(text.to_owned())
}

fn environment(cx: &mut Context<'_>, env: &Entry, names: Names<'_>) -> Json {
    let mut variables = Map::new();
    for variable in cx.entries(env) {
        if variable.key.is_empty() || variable.key.contains(['=', '\0']) {
            let rule = "any text without `=`";
            let problem =
                Problem::BadName { name: quoted(&variable.key), what: "an environment variable", rule };
            cx.report(variable.key_span, problem);
        }
        let value = match &variable.node.value {
            Value::Map(_) => secret(cx, &variable.node),
            _ => plain(cx, &variable.node, &variable.key, names),
        };
        variables.insert(variable.key.clone(), value);
    }
    Json::Object(variables)
}

/// `{ secret: "env:TOKEN" }`: a reference, which only the worker that needs it follows.
pub(in crate::compile) fn secret(cx: &mut Context<'_>, node: &Node) -> Json {
    let Some(fields) = cx.fields(node, "secret", "a secret", &["secret"], &[]) else { return Json::Null };
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

/// A single value that becomes text. Numbers keep their spelling: `007` is an argument, not seven.
fn plain(cx: &mut Context<'_>, node: &Node, field: &str, names: Names<'_>) -> Json {
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
