//! What a step does: exactly one of `run`, `action`, `flow`, `wait`.

use super::calls::{Call, Callee};
use super::context::{Context, Fields};
use super::templates::template_of;
use crate::duration::parse_duration;
use crate::problem::{Problem, quoted};
use crate::template::{Names, is_template};
use crate::yaml::{Entry, Node, Value};
use serde_json::{Value as Json, json};
use tidegate_core::model::{Template, Work};

const WORKS: [&str; 4] = ["run", "action", "flow", "wait"];
/// Works of the language that are refused elsewhere; a step that has one does something all the same.
const LATER: [&str; 4] = ["shell", "http", "sql", "do"];

/// Fields that make sense only with some kinds of work.
const ONLY_WITH: [(&str, &[&str]); 8] = [
    ("env", &["run"]),
    ("cwd", &["run"]),
    ("inputs", &["action", "flow"]),
    ("pools", &["run", "action"]),
    ("retry", &["run", "action"]),
    ("on", &["run", "action"]),
    ("max_losses", &["run", "action"]),
    ("start_within", &["run", "action"]),
];

pub(super) fn compile(
    cx: &mut Context<'_>,
    step: &Entry,
    fields: &Fields<'_>,
    names: Names<'_>,
) -> Option<Work> {
    let found: Vec<&Entry> =
        step.node.entries().iter().filter(|entry| is_work(&entry.key)).collect::<Vec<_>>();
    let entry = match found.as_slice() {
        [] => {
            cx.report(step.key_span, Problem::NoWork { step: quoted(&step.key) });
            return None;
        }
        [one] => *one,
        [first, second, ..] => {
            let (first, second_key) = (first.key.clone(), second.key.clone());
            let problem = Problem::TwoWorks { step: quoted(&step.key), first, second: second_key };
            cx.report(second.key_span, problem);
            return None;
        }
    };
    let kind = *WORKS.iter().find(|work| **work == entry.key)?;
    companions(cx, fields, kind);
    match kind {
        "run" => Some(Work::Run(run(cx, entry, fields, names))),
        "wait" => wait(cx, entry, names).map(Work::Wait),
        "action" => {
            let action = cx.named(entry, "an action");
            let inputs = call_inputs(cx, fields, names);
            Some(Work::Action { action: action?, inputs })
        }
        _ => {
            let flow = cx.named(entry, "a flow");
            let inputs = call_inputs(cx, fields, names);
            Some(Work::Flow { flow: flow?, inputs })
        }
    }
}

/// The call that a step makes, for a check once everything is known.
pub(super) fn call(cx: &Context<'_>, fields: &Fields<'_>, work: Option<&Work>) -> Option<Call> {
    let (callee, head) = match work? {
        Work::Action { action, .. } => (Callee::Action(action.clone()), "action"),
        Work::Flow { flow, .. } => (Callee::Flow(flow.clone()), "flow"),
        Work::Run(_) | Work::Wait(_) => return None,
    };
    Call::new(cx, callee, fields.get(head)?, fields.get("inputs"))
}

fn is_work(key: &str) -> bool {
    WORKS.contains(&key) || LATER.contains(&key)
}

fn companions(cx: &mut Context<'_>, fields: &Fields<'_>, kind: &'static str) {
    for (field, kinds) in ONLY_WITH {
        if let Some(entry) = fields.get(field).filter(|_| !kinds.contains(&kind)) {
            let problem = Problem::WrongPlace { field: field.to_owned(), kind: step_kind(kind) };
            cx.report(entry.key_span, problem);
        }
    }
    let looped = fields.get("with_items").or_else(|| fields.get("cursor"));
    if let Some(entry) = looped.filter(|_| matches!(kind, "flow" | "wait")) {
        cx.report(entry.key_span, Problem::LoopOver { work: kind });
    }
}

fn step_kind(kind: &str) -> &'static str {
    match kind {
        "run" => "a `run` step",
        "action" => "an `action` step",
        "flow" => "a `flow` step",
        _ => "a `wait` step",
    }
}

/// The argument list and what surrounds it, as the template `{argv, env, cwd}`.
pub(super) fn run(cx: &mut Context<'_>, entry: &Entry, fields: &Fields<'_>, names: Names<'_>) -> Template {
    let mut order = json!({ "argv": [] });
    let help = "a program and its arguments, such as [echo, hello]; there is no shell";
    if let Some(argv) = cx.list(entry, Some(help)) {
        if argv.is_empty() {
            cx.report(entry.node.span, Problem::NoProgram);
        }
        order["argv"] = argv.iter().map(|node| plain(cx, node, "run", names)).collect();
    }
    if let Some(env) = fields.get("env") {
        let mut variables = serde_json::Map::new();
        for variable in cx.entries(env) {
            if variable.key.is_empty() || variable.key.contains(['=', '\0']) {
                let rule = "any text without `=`";
                let problem =
                    Problem::BadName { name: quoted(&variable.key), what: "an environment variable", rule };
                cx.report(variable.key_span, problem);
            }
            variables.insert(variable.key.clone(), plain(cx, &variable.node, &variable.key, names));
        }
        order["env"] = Json::Object(variables);
    }
    if let Some(cwd) = fields.get("cwd") {
        order["cwd"] = plain(cx, &cwd.node, "cwd", names);
    }
    template_of(&order)
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

fn call_inputs(cx: &mut Context<'_>, fields: &Fields<'_>, names: Names<'_>) -> Template {
    match fields.get("inputs") {
        Some(entry) => {
            cx.entries(entry);
            cx.template(&entry.node, names)
        }
        None => template_of(&json!({})),
    }
}

fn wait(cx: &mut Context<'_>, entry: &Entry, names: Names<'_>) -> Option<Template> {
    let value = entry.node.scalar();
    let good = match &value {
        Json::Number(seconds) => seconds.as_f64().is_some_and(|seconds| seconds >= 0.0),
        Json::String(text) => {
            is_template(text) || parse_duration(text).is_some() || text.parse::<jiff::Timestamp>().is_ok()
        }
        _ => {
            cx.wrong_type(&entry.node, "wait", "a duration or a time", None);
            return None;
        }
    };
    if !good {
        let text = quoted(&value.to_string());
        cx.report(entry.node.span, Problem::BadWait { text: text.trim_matches('"').to_owned() });
    }
    Some(cx.template(&entry.node, names))
}
