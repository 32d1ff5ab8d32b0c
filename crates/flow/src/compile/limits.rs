//! `limits:`, `pools:` and `connections:`: the operator's documents. Several of them add up to one.

use super::connections::Connections;
use super::context::Context;
use super::document::Firsts;
use super::policy;
use crate::grammar;
use crate::problem::{Problem, quoted};
use crate::yaml::{Entry, Node};
use std::ops::RangeInclusive;
use tidegate_core::ids::Name;
use tidegate_core::model::{LimitsDocument, MatchRule, Pool, TagLimit};
use tidegate_core::time::Span;

pub(super) fn compile(
    cx: &mut Context<'_>,
    node: &Node,
    document: &mut LimitsDocument,
    connections: &mut Connections,
    firsts: &mut Firsts,
) {
    let Some(fields) = cx.fields(node, "limits", &grammar::CAPACITY) else { return };
    if let Some(entry) = fields.get("connections") {
        connections.declare(cx, entry, firsts);
    }
    if let Some(entry) = fields.get("limits") {
        limits(cx, entry, document, firsts);
    }
    if let Some(entry) = fields.get("pools") {
        for pool in cx.entries(entry) {
            document.pools.extend(self::pool(cx, pool, firsts));
        }
    }
}

fn limits(cx: &mut Context<'_>, entry: &Entry, document: &mut LimitsDocument, firsts: &mut Firsts) {
    let Some(fields) = cx.fields(&entry.node, "limits", &grammar::LIMITS) else { return };
    if let Some(runs) = fields.get("runs")
        && firsts.declare(cx, "limit", "runs", runs.key_span)
    {
        document.runs_origin = cx.origin(runs.key_span);
        document.runs = match runs.node.text() {
            Some("unlimited") => None,
            Some(_) => {
                cx.wrong_type(&runs.node, "runs", "an integer or `unlimited`", None);
                None
            }
            None => cx.count_of(&fields, "runs"),
        };
    }
    if let Some(tags) = fields.get("tags") {
        for node in cx.list(tags, None).unwrap_or_default() {
            document.tags.extend(tag(cx, node, firsts));
        }
    }
    if let Some(actions) = fields.get("actions") {
        for node in cx.list(actions, None).unwrap_or_default() {
            document.actions.extend(rule(cx, node, firsts));
        }
    }
}

/// `{ tag: env=prod, limit: 2 }` or `{ tag: tenant, per_value: 1 }`.
fn tag(cx: &mut Context<'_>, node: &Node, firsts: &mut Firsts) -> Option<TagLimit> {
    let fields = cx.fields(node, "tags", &grammar::TAG)?;
    let tag = cx.required(&fields, "tag")?;
    let text = cx.text(&tag.node, "tag")?;
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(Name::new(value))),
        None => (text, None),
    };
    let (bound, other) = if value.is_some() { ("limit", "per_value") } else { ("per_value", "limit") };
    if let Some(entry) = fields.get(other) {
        let kind =
            if value.is_some() { "a limit on one value of a tag" } else { "a limit on each value of a tag" };
        cx.report(entry.key_span, Problem::WrongPlace { field: other.to_owned(), kind });
        return None;
    }
    let limit = cx.required(&fields, bound).and_then(|_| cx.count_of(&fields, bound));
    let name = cx.name(name, tag.node.span, "a tag");
    let first = firsts.declare(cx, "limit on tag", text, tag.node.span);
    let (tag_name, limit) = (name?, limit?);
    first.then(|| TagLimit { tag: tag_name, value, limit, origin: cx.origin(node.span) })
}

/// `{ match: "billing.*", each: { concurrency: 20 }, total: { concurrency: 60 } }`.
fn rule(cx: &mut Context<'_>, node: &Node, firsts: &mut Firsts) -> Option<MatchRule> {
    let fields = cx.fields(node, "actions", &grammar::MATCH)?;
    let mut bounds = |field: &str| {
        let entry = fields.get(field)?;
        let fields = cx.fields(&entry.node, field, &grammar::BOUNDS)?;
        Some(policy::each(cx, &fields))
    };
    let (each, total) = (bounds("each").unwrap_or_default(), bounds("total").unwrap_or_default());
    let pattern = cx.required(&fields, "match")?;
    let text = cx.text(&pattern.node, "match")?;
    let literal = text.strip_suffix('*').unwrap_or(text);
    let good = !text.is_empty()
        && text.len() <= 100
        && literal.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if !good {
        cx.report(pattern.node.span, Problem::BadPattern { pattern: quoted(text) });
        return None;
    }
    let first = firsts.declare(cx, "limit on actions", text, pattern.node.span);
    let origin = cx.origin(node.span);
    first.then(|| MatchRule { pattern: Name::new(text), each, total, origin })
}

/// Workers renew three times a lease: a shorter one would be lost to a slow network, a longer one is no lease.
const LEASES: RangeInclusive<Span> = Span::seconds(1)..=Span::hours(1);

fn lease(cx: &mut Context<'_>, entry: &Entry) -> Option<Span> {
    let lease = cx.duration(entry)?;
    if !LEASES.contains(&lease) {
        cx.report(entry.node.span, Problem::BadLease { text: lease.to_string() });
    }
    Some(lease)
}

/// `database: { slots: 5, lease: 5m }`.
fn pool(cx: &mut Context<'_>, entry: &Entry, firsts: &mut Firsts) -> Option<Pool> {
    let name = cx.name(&entry.key, entry.key_span, "a pool");
    let first = firsts.declare(cx, "pool", &entry.key, entry.key_span);
    let fields = cx.fields(&entry.node, &entry.key, &grammar::POOL)?;
    let slots = cx.required(&fields, "slots").and_then(|_| cx.count_of(&fields, "slots"));
    let lease = fields.get("lease").and_then(|entry| lease(cx, entry));
    let (name, slots) = (name?, slots?);
    first.then(|| Pool { name, slots, lease, origin: cx.origin(entry.key_span) })
}
