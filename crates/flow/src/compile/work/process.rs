//! Processes: `run`, a program and its arguments, and `shell`, a script.

use super::text::{plain, plain_or_secret};
use crate::compile::context::{Context, Fields};
use crate::compile::templates::template_of;
use crate::problem::{Problem, quoted};
use crate::template::{Names, is_template};
use crate::yaml::{Entry, Node};
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
    let program = argv.first();
    if program.is_none_or(|program| program.text() == Some("")) {
        cx.report(program.unwrap_or(&entry.node).span, Problem::NoProgram);
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
        variables.insert(variable.key.clone(), plain_or_secret(cx, variable, names));
    }
    Json::Object(variables)
}
