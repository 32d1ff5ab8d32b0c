//! `action:` documents: something with a name that flows can do, and the limits that travel with it.

use super::context::{Context, Fields};
use super::document::{Declared, Firsts};
use super::work::{BUILT_IN, built_in, order, process};
use super::{flow, inputs, policy, pools, step};
use crate::grammar;
use crate::problem::{Problem, quoted};
use crate::template::Names;
use crate::yaml::Node;
use tidegate_core::model::{Action, ActionPolicy, ActionWork, MAX_LOSSES, Requirement, Retry};

pub(super) fn compile(
    cx: &mut Context<'_>,
    node: &Node,
    declared: &Declared,
    firsts: &mut Firsts,
) -> Option<Action> {
    let fields = cx.fields(node, "action", &grammar::ACTION)?;
    let head = fields.get("action")?;
    let name = cx.defined(head, "an action");
    if let Some(name) = &name {
        firsts.declare(cx, "flow or action", name.as_str(), head.node.span);
    }
    let input_names = inputs::names(fields.get("inputs"));
    let names = Names { inputs: &input_names, ..Names::default() };
    let work = work(cx, &fields, declared, names);
    let description = flow::description(cx, &fields);
    let inputs = inputs::compile(cx, fields.get("inputs"));
    let key = fields.get("key").map(|entry| cx.template(&entry.node, names));
    let needs = match work {
        ActionWork::Order(_) => built_in(&fields),
        ActionWork::Function => Requirement::function(name.clone()?),
    };
    let policy = ActionPolicy {
        each: policy::each(cx, &fields),
        keyed: key.is_some(),
        when_busy: policy::when_busy(cx, &fields),
        line: policy::line(cx, fields.get("line")),
        pools: pools::demands(cx, fields.get("pools"), &declared.pools),
        needs: step::needs(cx, fields.get("on"), needs),
        retry: fields.get("retry").map_or(Retry::ONCE, |entry| step::retry(cx, entry)),
        max_losses: step::max_losses(cx, &fields).unwrap_or(MAX_LOSSES),
        timeout: cx.time_of(&fields, "timeout"),
        origin: cx.origin(head.key_span),
        action: name?,
    };
    Some(Action { policy, description, inputs, key, work })
}

/// `run`, `shell`, `http`, `sql`, `do`, or a function that a worker registered (`worker: true`, which is also the default).
fn work(cx: &mut Context<'_>, fields: &Fields<'_>, declared: &Declared, names: Names<'_>) -> ActionWork {
    let head = fields.get("action");
    let owner = head.and_then(|head| Some((head.node.text()?, head.node.span))).unwrap_or_default();
    let worker = fields.get("worker").filter(|entry| cx.flag(entry) == Some(true));
    let built_in = BUILT_IN.iter().filter_map(|work| fields.get(work));
    let mut works = built_in.chain(worker);
    let (first, second) = (works.next(), works.next());
    if let (Some(first), Some(second)) = (first, second) {
        let (what, name) = ("action", quoted(owner.0));
        let problem = Problem::TwoWorks { what, name, first: first.key.clone(), second: second.key.clone() };
        cx.report(second.key_span, problem);
    }
    let built_in = first.filter(|first| first.key != "worker");
    let kind = match built_in {
        Some(entry) if process::WORKS.contains(&entry.key.as_str()) => None,
        Some(entry) if entry.key == "http" => Some("an `http` action"),
        Some(entry) if entry.key == "sql" => Some("an `sql` action"),
        Some(_) => Some("a `do` action"),
        None => Some("a function of a worker"),
    };
    for entry in ["env", "cwd"].iter().filter_map(|field| fields.get(field)) {
        if let Some(kind) = kind {
            cx.report(entry.key_span, Problem::WrongPlace { field: entry.key.clone(), kind });
        }
    }
    match built_in {
        Some(entry) => ActionWork::Order(order(cx, owner, entry, fields, &declared.connections, names)),
        None => ActionWork::Function,
    }
}
