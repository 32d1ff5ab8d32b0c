//! Pace and crowds: `rate`, `quota`, `line`, `when_busy`, shared by actions and limits.

use super::context::{Context, Fields};
use crate::duration::parse_duration;
use crate::grammar::{self, QUOTA_WINDOWS, WHEN_BUSY, WHEN_EXHAUSTED, WHEN_FULL};
use crate::problem::{Problem, quoted};
use crate::yaml::{Entry, Node, Value};
use tidegate_core::ids::Name;
use tidegate_core::model::{Each, EachLines, Line, QuotaPolicy, RatePolicy, WhenBusy, WhenExhausted};
use tidegate_core::time::Span;

pub(super) fn when_busy(cx: &mut Context<'_>, fields: &Fields<'_>) -> WhenBusy {
    fields.get("when_busy").and_then(|entry| cx.choice(entry, &WHEN_BUSY)).unwrap_or_default()
}

/// `concurrency`, `rate` and `quota`, wherever they stand.
pub(super) fn each(cx: &mut Context<'_>, fields: &Fields<'_>) -> Each {
    let line = |cx: &Context<'_>, field| fields.get(field).map(|entry| cx.line(entry.key_span));
    let lines =
        EachLines { concurrency: line(cx, "concurrency"), rate: line(cx, "rate"), quota: line(cx, "quota") };
    Each {
        lines,
        concurrency: cx.count_of(fields, "concurrency"),
        rate: fields.get("rate").and_then(|entry| rate(cx, entry)),
        quota: fields.get("quota").and_then(|entry| quota(cx, entry)),
    }
}

/// `100/1m`, or `{ limit: 100/1m, burst: 20, when_busy: wait }`. Without `burst` there is none: starts are
/// spread evenly.
fn rate(cx: &mut Context<'_>, entry: &Entry) -> Option<RatePolicy> {
    let (mut burst, mut when_busy) = (1, WhenExhausted::default());
    let mut limit = &entry.node;
    if let Value::Map(_) = entry.node.value {
        let fields = cx.fields(&entry.node, "rate", &grammar::RATE)?;
        burst = cx.count_of(&fields, "burst").unwrap_or(1);
        when_busy = exhausted(cx, &fields);
        limit = &cx.required(&fields, "limit")?.node;
    }
    let text = cx.text(limit, "rate")?;
    let parsed = fraction(text).and_then(|(limit, per)| Some((limit, parse_duration(per)?)));
    let Some((limit, per)) = parsed.filter(|(_, per)| *per > Span::ZERO) else {
        cx.report(limit.span, Problem::BadRate { text: quoted(text) });
        return None;
    };
    Some(RatePolicy { limit, per, burst, when_busy })
}

/// `10000/1d`, or `{ limit: 10000/1d, zone: UTC, when_busy: reject }`.
fn quota(cx: &mut Context<'_>, entry: &Entry) -> Option<QuotaPolicy> {
    let (mut zone, mut when_busy) = (Name::new("UTC"), WhenExhausted::default());
    let mut limit = &entry.node;
    if let Value::Map(_) = entry.node.value {
        let fields = cx.fields(&entry.node, "quota", &grammar::QUOTA)?;
        if let Some(entry) = fields.get("zone") {
            zone = self::zone(cx, &entry.node)?;
        }
        when_busy = exhausted(cx, &fields);
        limit = &cx.required(&fields, "limit")?.node;
    }
    let text = cx.text(limit, "quota")?;
    let window = |per: &str| QUOTA_WINDOWS.iter().find(|(word, _)| *word == per).map(|(_, window)| *window);
    let Some((limit, window)) = fraction(text).and_then(|(limit, per)| Some((limit, window(per)?))) else {
        cx.report(limit.span, Problem::BadQuota { text: quoted(text) });
        return None;
    };
    Some(QuotaPolicy { limit, window, zone, when_busy })
}

/// A zone of the database that is part of this program.
fn zone(cx: &mut Context<'_>, node: &Node) -> Option<Name> {
    let text = cx.text(node, "zone")?;
    let good = jiff::tz::TimeZone::get(text).is_ok();
    if !good {
        cx.report(node.span, Problem::BadZone { zone: quoted(text) });
    }
    good.then(|| Name::new(text))
}

fn exhausted(cx: &mut Context<'_>, fields: &Fields<'_>) -> WhenExhausted {
    fields.get("when_busy").and_then(|entry| cx.choice(entry, &WHEN_EXHAUSTED)).unwrap_or_default()
}

/// `100/1m` as 100 and `1m`.
fn fraction(text: &str) -> Option<(u32, &str)> {
    let (limit, per) = text.split_once('/')?;
    let limit = limit.trim().parse().ok().filter(|limit| *limit > 0)?;
    Some((limit, per.trim()))
}

pub(super) fn line(cx: &mut Context<'_>, entry: Option<&Entry>) -> Line {
    let Some(entry) = entry else { return Line::default() };
    let Some(fields) = cx.fields(&entry.node, "line", &grammar::LINE) else { return Line::default() };
    let usual = Line::default();
    Line {
        max_length: cx.count_of(&fields, "max_length").unwrap_or(usual.max_length),
        start_within: match fields.get("start_within") {
            Some(_) => cx.time_of(&fields, "start_within"),
            None => usual.start_within,
        },
        when_full: fields
            .get("when_full")
            .and_then(|entry| cx.choice(entry, &WHEN_FULL))
            .unwrap_or(usual.when_full),
    }
}
