//! One step: when it runs, how often it is tried, what it needs.

use super::calls::Call;
use super::context::{Context, Fields};
use super::graph::Graph;
use super::pools::{self, Pools};
use super::templates::looks_at_states;
use super::{looping, work};
use crate::template::Names;
use crate::yaml::{Entry, Node};
use tidegate_core::ids::Name;
use tidegate_core::model::{Backoff, MAX_LOSSES, Requirement, Retry, Rule, Step};
use tidegate_core::time::Span;

pub(super) const FIELDS: [&str; 20] = [
    "after",
    "when",
    "always",
    "with_items",
    "cursor",
    "concurrency",
    "on_failure",
    "run",
    "env",
    "cwd",
    "action",
    "inputs",
    "flow",
    "wait",
    "pools",
    "retry",
    "timeout",
    "start_within",
    "max_losses",
    "on",
];
const LATER: [&str; 6] = ["shell", "http", "sql", "do", "repeat", "priority"];
const BACKOFFS: [(&str, Backoff); 3] =
    [("constant", Backoff::Constant), ("linear", Backoff::Linear), ("exponential", Backoff::Exponential)];
const MAX_ATTEMPTS: u32 = 10_000;

/// What a step may refer to.
pub(super) struct Surroundings<'a> {
    pub inputs: &'a [String],
    pub pools: &'a Pools,
    pub graph: &'a Graph,
}

pub(super) fn compile(
    cx: &mut Context<'_>,
    index: usize,
    entry: &Entry,
    around: &Surroundings<'_>,
    calls: &mut Vec<Call>,
) -> Option<Step> {
    let name = cx.identifier(&entry.key, entry.key_span, "a step");
    let fields = cx.fields(&entry.node, &entry.key, "a step", &FIELDS, &LATER)?;
    let looped = fields.get("with_items").is_some() || fields.get("cursor").is_some();
    let ended = around.graph.ended_before(index);
    let names = Names {
        inputs: around.inputs,
        steps: Some(&around.graph.indexes),
        step: Some((&entry.key, &ended)),
        in_loop: false,
        before_loop: looped,
        run: true,
    };
    let each = looping::compile(cx, entry, &fields, names);
    let work = work::compile(cx, entry, &fields, Names { in_loop: looped, ..names });
    calls.extend(work::call(cx, &fields, work.as_ref()));
    let pools = pools::demands(cx, fields.get("pools"), around.pools);
    let needs = needs(cx, fields.get("on"), work.as_ref());
    let duration = |cx: &mut Context<'_>, field| fields.get(field).and_then(|entry| cx.duration(entry));
    Some(Step {
        after: around.graph.after[index].clone(),
        rule: rule(cx, &fields, names),
        each,
        pools,
        needs,
        retry: retry(cx, fields.get("retry")),
        max_losses: fields
            .get("max_losses")
            .and_then(|entry| cx.count(&entry.node, "max_losses", 0..=MAX_ATTEMPTS))
            .unwrap_or(MAX_LOSSES),
        timeout: duration(cx, "timeout"),
        start_within: duration(cx, "start_within"),
        line: cx.line(entry.key_span),
        name: name?,
        work: work?,
    })
}

fn rule(cx: &mut Context<'_>, fields: &Fields<'_>, names: Names<'_>) -> Rule {
    let entry = fields.get("when");
    let when = entry.and_then(|entry| cx.expression(&entry.node, "when", names));
    let states = entry.and_then(|entry| entry.node.text()).is_some_and(looks_at_states);
    let always = fields.get("always").and_then(|entry| cx.flag(entry)).unwrap_or(false);
    match when {
        when if always => Rule::Always { when },
        Some(when) if states => Rule::States { when },
        when => Rule::Success { when },
    }
}

pub(super) fn retry(cx: &mut Context<'_>, entry: Option<&Entry>) -> Retry {
    let Some(entry) = entry else { return Retry::ONCE };
    let known = ["attempts", "backoff", "delay", "max_delay"];
    let Some(fields) = cx.fields(&entry.node, "retry", "`retry`", &known, &["on", "jitter"]) else {
        return Retry::ONCE;
    };
    let attempts = cx
        .required(&fields, "attempts")
        .and_then(|entry| cx.count(&entry.node, "attempts", 1..=MAX_ATTEMPTS));
    let backoff = fields.get("backoff").and_then(|entry| cx.choice(entry, &BACKOFFS));
    let delay = fields.get("delay").and_then(|entry| cx.duration(entry)).unwrap_or(Retry::ONCE.delay);
    let max_delay: Option<Span> = fields.get("max_delay").and_then(|entry| cx.duration(entry));
    Retry {
        attempts: attempts.unwrap_or(1),
        backoff: backoff.unwrap_or(Retry::ONCE.backoff),
        delay,
        // Whoever asks for a delay of ten minutes does not want the usual five.
        max_delay: max_delay.unwrap_or_else(|| Retry::ONCE.max_delay.max(delay)),
    }
}

/// `on: { queue: gpu, labels: [a100] }`.
fn needs(
    cx: &mut Context<'_>,
    entry: Option<&Entry>,
    work: Option<&tidegate_core::model::Work>,
) -> Requirement {
    let mut needs = match work {
        Some(tidegate_core::model::Work::Action { action, .. }) => Requirement::function(action.clone()),
        _ => Requirement::process(),
    };
    let Some(entry) = entry else { return needs };
    let Some(fields) = cx.fields(&entry.node, "on", "`on`", &["queue", "labels"], &[]) else { return needs };
    if let Some(queue) = fields.get("queue").and_then(|entry| cx.named(entry, "a queue")) {
        needs.queue = queue;
    }
    let labels: &[Node] = fields.get("labels").and_then(|entry| cx.list(entry, None)).unwrap_or_default();
    let mut names: Vec<Name> = labels
        .iter()
        .filter_map(|node| {
            let text = cx.text(node, "labels")?;
            cx.name(text, node.span, "a label")
        })
        .collect();
    names.sort();
    names.dedup();
    needs.labels = names;
    needs
}
