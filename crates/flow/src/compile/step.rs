//! One step: when it runs, how often it is tried, what it needs.

use super::calls::Call;
use super::context::{Context, Fields};
use super::document::Declared;
use super::graph::Graph;
use super::pools;
use super::templates::looks_at_states;
use super::{looping, work};
use crate::grammar::{self, BACKOFFS, CAUSES};
use crate::problem::{Problem, quoted};
use crate::template::{Names, Outline};
use crate::yaml::{Entry, Node, Value};
use tidegate_core::ids::Name;
use tidegate_core::model::{Cause, Requirement, Retry, Rule, Step};
use tidegate_core::suggest::nearest;
use tidegate_core::time::Span;

/// What a step may refer to.
pub(super) struct Surroundings<'a> {
    pub inputs: &'a [String],
    pub declared: &'a Declared,
    pub graph: &'a Graph,
    /// What each step of the flow puts out.
    pub outputs: &'a [Outline],
}

pub(super) fn compile(
    cx: &mut Context<'_>,
    index: usize,
    entry: &Entry,
    around: &Surroundings<'_>,
    calls: &mut Vec<Call>,
) -> Option<Step> {
    let name = cx.identifier(&entry.key, entry.key_span, "a step");
    let fields = cx.fields(&entry.node, &entry.key, &grammar::STEP)?;
    let looped = fields.get("with_items").is_some() || fields.get("cursor").is_some();
    let ended = around.graph.ended_before(index);
    let names = Names {
        inputs: around.inputs,
        steps: Some(&around.graph.indexes),
        outputs: around.outputs,
        step: Some((&entry.key, &ended)),
        in_loop: false,
        before_loop: looped,
        run: true,
        ..Names::default()
    };
    let each = looping::compile(cx, entry, &fields, names);
    let work = {
        let names = Names { in_loop: looped, ..names };
        work::compile(cx, entry, &fields, &around.declared.connections, names)
    };
    let pools = pools::demands(cx, fields.get("pools"), &around.declared.pools);
    calls.extend(work::call(cx, &fields, work.as_ref(), &pools));
    let runner = work.as_ref().map_or_else(Requirement::process, |work| work::runner(&fields, work));
    let needs = needs(cx, fields.get("on"), runner);
    Some(Step {
        after: around.graph.after[index].clone(),
        rule: rule(cx, &fields, names),
        each,
        pools,
        needs,
        retry: fields.get("retry").map(|entry| retry(cx, entry)),
        max_losses: max_losses(cx, &fields),
        timeout: cx.time_of(&fields, "timeout"),
        start_within: cx.time_of(&fields, "start_within"),
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

pub(super) fn max_losses(cx: &mut Context<'_>, fields: &Fields<'_>) -> Option<u32> {
    cx.count_of(fields, "max_losses")
}

pub(super) fn retry(cx: &mut Context<'_>, entry: &Entry) -> Retry {
    let Some(fields) = cx.fields(&entry.node, "retry", &grammar::RETRY) else { return Retry::ONCE };
    let attempts = cx.required(&fields, "attempts").and_then(|_| cx.count_of(&fields, "attempts"));
    let backoff = fields.get("backoff").and_then(|entry| cx.choice(entry, &BACKOFFS));
    let delay = fields.get("delay").and_then(|entry| cx.duration(entry)).unwrap_or(Retry::ONCE.delay);
    let max_delay: Option<Span> = fields.get("max_delay").and_then(|entry| cx.duration(entry));
    Retry {
        attempts: attempts.unwrap_or(1),
        backoff: backoff.unwrap_or(Retry::ONCE.backoff),
        delay,
        // Whoever asks for a delay of ten minutes does not want the usual five.
        max_delay: max_delay.unwrap_or_else(|| Retry::ONCE.max_delay.max(delay)),
        jitter: fields.get("jitter").and_then(|entry| cx.flag(entry)).unwrap_or(false),
        on: fields.get("on").map(|entry| causes(cx, entry)).unwrap_or_default(),
    }
}

/// `on: timeout`, `on: [connect, status:5xx, exit:75]`.
fn causes(cx: &mut Context<'_>, entry: &Entry) -> Vec<Cause> {
    let nodes = match &entry.node.value {
        Value::List(nodes) => nodes.as_slice(),
        _ => std::slice::from_ref(&entry.node),
    };
    let mut causes = Vec::new();
    for node in nodes {
        let Some(text) = cx.text(node, "on") else { continue };
        let (kind, _) = text.split_once(':').unwrap_or((text, ""));
        if CAUSES.contains(&kind) && is_cause(text) {
            causes.push(Cause(Name::new(text)));
        } else {
            let meant = nearest(kind, CAUSES.iter().copied());
            cx.report(node.span, Problem::BadCause { text: quoted(text), meant });
        }
    }
    causes
}

/// What follows the colon is one word: a number, a code, digits with `x` for any of them.
fn is_cause(text: &str) -> bool {
    let detail = text.split_once(':').map(|(_, detail)| detail);
    detail.is_none_or(|detail| !detail.is_empty() && detail.chars().all(|c| c.is_ascii_alphanumeric()))
}

/// `on: { queue: gpu, labels: [a100] }`.
pub(super) fn needs(cx: &mut Context<'_>, entry: Option<&Entry>, mut needs: Requirement) -> Requirement {
    let Some(entry) = entry else { return needs };
    let Some(fields) = cx.fields(&entry.node, "on", &grammar::NEEDS) else { return needs };
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
