//! What a step does: exactly one of `run`, `shell`, `http`, `sql`, `do`, `action`, `flow`, `wait`.

pub(super) mod chain;
pub(super) mod http;
pub(super) mod process;
pub(super) mod sql;
pub(super) mod text;

use super::calls::{Call, Callee};
use super::connections::Connections;
use super::context::{Context, Fields};
use super::templates::template_of;
use crate::duration::parse_duration;
use crate::grammar;
use crate::problem::{Problem, quoted};
use crate::source::Span;
use crate::template::{Names, is_template};
use crate::yaml::Entry;
use serde_json::{Value as Json, json};
use tidegate_core::ids::Name;
use tidegate_core::model::{Requirement, Template, Work};

/// What a worker can do by itself.
pub(super) const BUILT_IN: [&str; 5] = ["run", "shell", http::WORK, sql::WORK, chain::WORK];

pub(super) fn compile(
    cx: &mut Context<'_>,
    step: &Entry,
    fields: &Fields<'_>,
    connections: &Connections,
    names: Names<'_>,
) -> Option<Work> {
    let found: Vec<&Entry> = step
        .node
        .entries()
        .iter()
        .filter(|entry| grammar::STEP.one_of.contains(&entry.key.as_str()))
        .collect();
    let entry = match found.as_slice() {
        [] => {
            cx.report(step.key_span, Problem::NoWork { what: "step", name: quoted(&step.key) });
            return None;
        }
        [one] => *one,
        [first, second, ..] => {
            let (first, second_key) = (first.key.clone(), second.key.clone());
            let (what, name) = ("step", quoted(&step.key));
            let problem = Problem::TwoWorks { what, name, first, second: second_key };
            cx.report(second.key_span, problem);
            return None;
        }
    };
    let kind = *grammar::STEP.one_of.iter().find(|work| **work == entry.key)?;
    companions(cx, fields, kind);
    match kind {
        kind if BUILT_IN.contains(&kind) => {
            let owner = (step.key.as_str(), step.key_span);
            Some(Work::Order(order(cx, owner, entry, fields, connections, names)))
        }
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

/// What a worker carries out by itself, for a step or an action of that name.
pub(super) fn order(
    cx: &mut Context<'_>,
    owner: (&str, Span),
    entry: &Entry,
    fields: &Fields<'_>,
    connections: &Connections,
    names: Names<'_>,
) -> Template {
    match entry.key == chain::WORK || fields.get("repeat").is_some() {
        true => chain::compile(cx, owner, entry, fields, connections, names),
        false => single(cx, entry, fields, connections, names),
    }
}

/// What one runner carries out, once.
fn single(
    cx: &mut Context<'_>,
    entry: &Entry,
    fields: &Fields<'_>,
    connections: &Connections,
    names: Names<'_>,
) -> Template {
    match entry.key.as_str() {
        http::WORK => http::compile(cx, entry, names),
        sql::WORK => sql::compile(cx, entry, connections, names),
        _ => process::compile(cx, entry, fields, names),
    }
}

/// Which workers can do it.
pub(super) fn runner(fields: &Fields<'_>, work: &Work) -> Requirement {
    match work {
        Work::Action { action, .. } => Requirement::function(action.clone()),
        Work::Order(_) => built_in(fields),
        Work::Flow { .. } | Work::Wait(_) => Requirement::process(),
    }
}

/// Which workers can do what one of their runners does.
pub(super) fn built_in(fields: &Fields<'_>) -> Requirement {
    let is_io = [http::WORK, sql::WORK].iter().any(|work| fields.get(work).is_some());
    match fields.get(chain::WORK) {
        Some(chain) if !chain::has_process(&chain.node) => Requirement::io(),
        None if is_io => Requirement::io(),
        _ => Requirement::process(),
    }
}

/// The call that a step makes, for a check once everything is known.
pub(super) fn call(
    cx: &Context<'_>,
    fields: &Fields<'_>,
    work: Option<&Work>,
    demands: &[(Name, u32)],
) -> Option<Call> {
    let (callee, head) = match work? {
        Work::Action { action, .. } => (Callee::Action(action.clone()), "action"),
        Work::Flow { flow, .. } => (Callee::Flow(flow.clone()), "flow"),
        Work::Order(_) | Work::Wait(_) => return None,
    };
    Call::new(cx, callee, fields.get(head)?, fields.get("inputs"), demands)
}

fn companions(cx: &mut Context<'_>, fields: &Fields<'_>, kind: &'static str) {
    for entry in grammar::STEP.strangers(kind).filter_map(|field| fields.get(field.name)) {
        let problem = match entry.key.as_str() {
            "with_items" => Problem::LoopOverWait,
            field => Problem::WrongPlace { field: field.to_owned(), kind: step_kind(kind) },
        };
        cx.report(entry.key_span, problem);
    }
}

fn step_kind(kind: &str) -> &'static str {
    match kind {
        "run" => "a `run` step",
        "shell" => "a `shell` step",
        http::WORK => "an `http` step",
        sql::WORK => "an `sql` step",
        chain::WORK => "a `do` step",
        "action" => "an `action` step",
        "flow" => "a `flow` step",
        _ => "a `wait` step",
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
