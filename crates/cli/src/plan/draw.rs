//! A plan as text, for a screen of 80 columns.

use super::sketch::{Inside, Looped, Sketch, StepSketch, place};
use super::time::Time;
use crate::line::{Line, Tone};
use tidegate_core::admission::LimitKey;
use tidegate_core::explain::describe;
use tidegate_core::model::{OnFailure, Requirement};
use tidegate_core::time::Span;
use tidegate_core::{Bound, Demand};

const WIDTH: usize = 80;
/// Where the amounts and the places of limits begin, counted from where their names do.
const AMOUNTS: usize = 27;
const PLACES: usize = 50;
/// Names of a long list that are shown.
const SHOWN: usize = 8;

pub fn lines(sketch: &Sketch<'_>) -> Vec<Line> {
    let mut lines = vec![
        Line::new()
            .with(Tone::Strong, format!("flow {}", sketch.flow.name))
            .with(Tone::Dim, format!("  {}", sketch.place)),
    ];
    lines.extend(
        sketch.flow.description.iter().map(|text| Line::new().with(Tone::Plain, format!("  {text}"))),
    );
    lines.extend(sketch.limits.iter().filter_map(|demand| limit(demand, 2)));
    if sketch.is_vague {
        let note = "  tags and key depend on inputs: -i NAME=VALUE shows their limits";
        lines.push(Line::new().with(Tone::Dim, note));
    }
    steps(sketch, 0, &mut lines);
    lines.push(Line::new());
    let way = names(&sketch.longest.0, " → ");
    let count = match sketch.longest.0.len() {
        1 => "1 step".to_owned(),
        n => format!("{n} steps"),
    };
    wrapped(&mut lines, "longest path  ", &format!("{count}: {way}"));
    wrapped(&mut lines, "time          ", &allowed(&sketch.time));
    lines
}

fn steps(sketch: &Sketch<'_>, indent: usize, lines: &mut Vec<Line>) {
    let digits = sketch.steps.len().to_string().len();
    for (number, step) in sketch.steps.iter().enumerate() {
        if indent == 0 {
            lines.push(Line::new());
        }
        let head = format!("{:indent$}{:>digits$}. ", "", number + 1);
        let inner = head.chars().count();
        let name = Line::new().with(Tone::Dim, head).with(Tone::Strong, step.step.name.as_str());
        lines.push(match step.after.as_slice() {
            [] => name,
            after => name.with(Tone::Dim, "  after ").with(Tone::Plain, names(after, ", ")),
        });
        let detail = |text: String| Line::new().with(Tone::Plain, format!("{:inner$}{text}", "")).clip(WIDTH);
        lines.push(detail(step.does.clone()));
        lines.extend(step.each.as_ref().map(|each| detail(looped(each))));
        lines.extend(step.when.iter().map(|when| detail(when.clone())));
        lines.extend(attempts(step).map(detail));
        lines.extend(step.limits.iter().filter_map(|demand| limit(demand, inner)));
        match &step.inside {
            Inside::Nothing => {}
            Inside::Flow(flow) => {
                lines.extend(flow.limits.iter().filter_map(|demand| limit(demand, inner)));
                steps(flow, inner, lines);
            }
            Inside::NotShown => lines.push(detail("… its steps are not shown here".to_owned())),
        }
    }
}

fn looped(each: &Looped) -> String {
    let failures = match each.on_failure {
        OnFailure::Tolerate(0) => String::new(),
        OnFailure::Tolerate(n) => format!(", {n} of them may fail"),
        OnFailure::Continue => ", whether or not some fail".to_owned(),
    };
    match each.count {
        Some(1) => format!("for one item{failures}"),
        Some(count) => format!("for each of {count} items{failures}"),
        None => format!("for each of {}{failures}", each.items),
    }
}

fn attempts(step: &StepSketch<'_>) -> Option<String> {
    match (step.retry, step.timeout) {
        (None, None) => None,
        (None, Some(timeout)) => Some(format!("at most {timeout}")),
        (Some(retry), None) => Some(format!("up to {} attempts", retry.attempts)),
        (Some(retry), Some(timeout)) => {
            Some(format!("up to {} attempts of at most {timeout}", retry.attempts))
        }
    }
}

/// One limit: its name, how much of it is wanted, where it stands. Workers are worth a line if not all of them will do.
fn limit(demand: &Demand, indent: usize) -> Option<Line> {
    let keyed = if is_keyed(&demand.limit) { " per key" } else { "" };
    let amount = match &demand.bound {
        Bound::Units(capacity) => format!("{} of {capacity}{keyed}", demand.units),
        Bound::Rate(rate) => {
            let burst = if rate.burst > 1 { format!(", {} at once", rate.burst) } else { String::new() };
            format!("{} per {}{keyed}{burst}", rate.limit, rate.per)
        }
        Bound::Quota(quota) => format!("{} per {}{keyed}", quota.limit, quota.window.as_str()),
        Bound::Workers(needs) => workers(needs)?,
    };
    let line = Line::new().with(Tone::Plain, format!("{:indent$}{}", "", name(&demand.limit)));
    let line = spaced(line, indent + AMOUNTS).with(Tone::Plain, amount);
    Some(match place(&demand.origin) {
        Some(place) => spaced(line, indent + PLACES).with(Tone::Dim, place),
        None => line,
    })
}

/// Up to a column, and at least two blanks.
fn spaced(line: Line, column: usize) -> Line {
    line.with(Tone::Plain, "  ").pad(column)
}

/// As `why` calls it; which key it is for is not known yet.
pub fn name(limit: &LimitKey) -> String {
    match limit.clone() {
        LimitKey::ActionKey { action, .. } => describe(&LimitKey::Action(action)),
        limit => describe(&limit),
    }
}

/// Whether it is there once for every key of an action.
pub fn is_keyed(limit: &LimitKey) -> bool {
    matches!(
        limit,
        LimitKey::ActionKey { .. }
            | LimitKey::Rate { key: Some(_), .. }
            | LimitKey::Quota { key: Some(_), .. }
    )
}

fn workers(needs: &Requirement) -> Option<String> {
    let usual = Requirement::process();
    if needs.queue == usual.queue && needs.labels.is_empty() {
        return None;
    }
    let labels: Vec<&str> = needs.labels.iter().map(|label| label.as_str()).collect();
    Some(match labels.is_empty() {
        true => format!("of queue {}", needs.queue),
        false => format!("of queue {}, with {}", needs.queue, labels.join(", ")),
    })
}

fn allowed(time: &Time) -> String {
    match time.open.as_slice() {
        [] => format!("at most {}, waiting for limits not counted", time.known),
        open if time.known == Span::ZERO => format!("no bound: {}", names(open, ", ")),
        open => format!("at least {} is allowed; no bound: {}", time.known, names(open, ", ")),
    }
}

/// The first and last of many.
fn names<T: AsRef<str>>(all: &[T], between: &str) -> String {
    let texts: Vec<&str> = all.iter().map(AsRef::as_ref).collect();
    if texts.len() <= SHOWN {
        return texts.join(between);
    }
    let (first, last) = (&texts[..SHOWN / 2], &texts[texts.len() - SHOWN / 2..]);
    let more = format!("… {} more …", texts.len() - SHOWN);
    [first, &[more.as_str()], last].concat().join(between)
}

/// A heading and a text that goes on below where it began.
fn wrapped(lines: &mut Vec<Line>, heading: &str, text: &str) {
    let indent = heading.chars().count();
    let mut line = Line::new().with(Tone::Dim, heading);
    for word in text.split(' ') {
        if line.width() > indent && line.width() + 1 + word.chars().count() > WIDTH {
            lines.push(std::mem::replace(&mut line, Line::new().pad(indent)));
        }
        let blank = if line.width() > indent { " " } else { "" };
        line = line.with(Tone::Plain, format!("{blank}{word}"));
    }
    lines.push(line);
}
