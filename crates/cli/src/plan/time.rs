//! The longest way through a flow: by its number of steps, and by the time that is allowed for it.
//!
//! Only work counts, never waiting for limits: what a limit makes one wait is not known before somebody holds it.

use super::sketch::{Inside, Looped, StepSketch};
use tidegate_core::model::{Flow, Retry, Step, Work};
use tidegate_core::time::Span;
use tidegate_flow::parse_duration;

/// The way with the most steps, by their names; those of flows inside are written behind a slash.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Longest(pub Vec<String>);

/// How long something may take.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Time {
    /// As far as anything is said about it.
    pub known: Span,
    /// Steps about which nothing is said. If there are none, `known` is a bound.
    pub open: Vec<String>,
}

/// Of one step with all its attempts and items.
pub fn of_step(
    step: &Step,
    each: Option<&Looped>,
    retry: Option<&Retry>,
    timeout: Option<Span>,
    inside: &Inside<'_>,
) -> Time {
    let once = match (&step.work, inside) {
        (Work::Wait(template), _) => pause(&template.0),
        (Work::Flow { .. }, Inside::Flow(flow)) if each.is_none_or(|each| each.count.is_some()) => {
            let open = flow.time.open.iter().map(|inner| format!("{}/{inner}", step.name)).collect();
            return Time { known: flow.time.known.times(rounds(step, each).unwrap_or(1)), open };
        }
        (Work::Flow { .. }, _) => None,
        _ => timeout.map(|timeout| tries(timeout, retry)),
    };
    let all = once.and_then(|once| Some(once.times(rounds(step, each)?)));
    let open = if all.is_some() { Vec::new() } else { vec![step.name.to_string()] };
    Time { known: all.unwrap_or(Span::ZERO), open }
}

/// How often a whole window of items is gone through; once, where there is no loop.
fn rounds(step: &Step, each: Option<&Looped>) -> Option<u64> {
    let Some(Looped { count, .. }) = each else { return Some(1) };
    Some((*count)?.div_ceil(step.window()? as usize) as u64)
}

/// Every attempt takes as long as it may, and so does every pause.
fn tries(timeout: Span, retry: Option<&Retry>) -> Span {
    let Some(retry) = retry else { return timeout };
    let pauses = (1..retry.attempts).map(|failures| retry.pause(failures, 0));
    pauses.fold(timeout.times(u64::from(retry.attempts)), |sum, pause| sum + pause)
}

/// A pause that is a duration, or a number of seconds.
fn pause(template: &str) -> Option<Span> {
    match serde_json::from_str(template).ok()? {
        serde_json::Value::String(text) => parse_duration(&text),
        serde_json::Value::Number(seconds) => Some(Span((seconds.as_f64()? * 1e6) as u64)),
        _ => None,
    }
}

/// Of a whole flow, whose steps are given in an order in which each stands behind those it waits for.
pub fn through(flow: &Flow, order: &[usize], steps: &[StepSketch<'_>]) -> (Longest, Time) {
    let mut ways: Vec<Longest> = vec![Longest::default(); flow.steps.len()];
    let mut times = vec![Span::ZERO; flow.steps.len()];
    for (&at, sketch) in order.iter().zip(steps) {
        let before = flow.steps[at].after.iter().map(|&before| before as usize);
        let mut way = Vec::new();
        for before in before {
            if ways[before].0.len() > way.len() {
                way.clone_from(&ways[before].0);
            }
            times[at] = times[at].max(times[before]);
        }
        way.extend(own(sketch));
        ways[at] = Longest(way);
        times[at] = times[at] + sketch.time.known;
    }
    let mut longest = Longest::default();
    for way in ways {
        if way.0.len() > longest.0.len() {
            longest = way;
        }
    }
    let known = times.into_iter().max().unwrap_or(Span::ZERO);
    let open: Vec<String> = steps.iter().flat_map(|sketch| sketch.time.open.clone()).collect();
    let time = match flow.timeout {
        // A run that takes longer is stopped, whatever its steps say.
        Some(timeout) if !open.is_empty() || known > timeout => Time { known: timeout, open: Vec::new() },
        _ => Time { known, open },
    };
    (longest, time)
}

fn own(sketch: &StepSketch<'_>) -> Vec<String> {
    match &sketch.inside {
        Inside::Flow(flow) => {
            flow.longest.0.iter().map(|inner| format!("{}/{inner}", sketch.step.name)).collect()
        }
        _ => vec![sketch.step.name.to_string()],
    }
}
