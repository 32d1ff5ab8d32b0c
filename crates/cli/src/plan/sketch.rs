//! What there is to tell about a flow: its steps in an order in which they may run, and what each asks for.

use super::time::{Longest, Time};
use serde_json::Value as Json;
use tidegate_core::admission::LimitKey;
use tidegate_core::ids::Name;
use tidegate_core::model::{Action, Flow, OnFailure, Origin, Retry, Rule, Step, Template, Work};
use tidegate_core::time::Span;
use tidegate_core::{Core, Demand};
use tidegate_flow::Document;
use tidegate_flow::submit::Submission;

/// Flows inside flows inside flows are shown; what is deeper is named.
const DEEPEST: usize = 3;

pub struct Sketch<'a> {
    pub flow: &'a Flow,
    pub place: String,
    /// What a run asks for before it starts, if it is not inside another, and what its steps share.
    pub limits: Vec<Demand>,
    /// Tags and key depend on inputs that are not known.
    pub is_vague: bool,
    pub steps: Vec<StepSketch<'a>>,
    pub longest: Longest,
    pub time: Time,
}

pub struct StepSketch<'a> {
    pub step: &'a Step,
    pub does: String,
    pub after: Vec<&'a str>,
    pub when: Option<String>,
    pub each: Option<Looped>,
    pub retry: Option<&'a Retry>,
    /// Of one attempt.
    pub timeout: Option<Span>,
    pub limits: Vec<Demand>,
    pub inside: Inside<'a>,
    pub time: Time,
}

/// What a loop goes through.
pub struct Looped {
    pub items: String,
    /// How many, if that stands in the file.
    pub count: Option<usize>,
    pub on_failure: OnFailure,
}

pub enum Inside<'a> {
    Nothing,
    Flow(Box<Sketch<'a>>),
    /// It is inside itself, or too deep.
    NotShown,
}

/// Where everything is looked up.
pub struct Surroundings<'a> {
    pub core: &'a Core,
    pub document: &'a Document,
}

impl<'a> Sketch<'a> {
    pub fn of(flow: &'a Flow, submission: Option<&Submission>, around: &Surroundings<'a>) -> Sketch<'a> {
        let (key, tags) = submission.map(|given| (given.key.clone(), given.tags.clone())).unwrap_or_default();
        let mut sketch = Sketch::inside(flow, &mut Vec::new(), around);
        let of_run = around.core.demands_of_run(&flow.name, key, &tags);
        sketch.limits.splice(..0, of_run);
        sketch.is_vague = submission.is_none() && (flow.key.is_some() || !flow.tags.is_empty());
        sketch
    }

    fn inside(flow: &'a Flow, outer: &mut Vec<&'a Name>, around: &Surroundings<'a>) -> Sketch<'a> {
        outer.push(&flow.name);
        let order = in_order(&flow.steps);
        let steps: Vec<_> = order.iter().map(|&at| step(flow, at, outer, around)).collect();
        outer.pop();
        let (longest, time) = super::time::through(flow, &order, &steps);
        let place = flow.origin().to_string();
        let limits = around.core.demands_of_step(&flow.name, 0).into_iter().filter(is_shared).collect();
        Sketch { flow, place, limits, is_vague: false, steps, longest, time }
    }
}

/// `tidegate.yaml:4`, if it stands in a file.
pub fn place(origin: &Origin) -> Option<String> {
    origin.file.is_some().then(|| origin.to_string())
}

/// The steps, each behind those it waits for, and otherwise as they stand in the file.
fn in_order(steps: &[Step]) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::with_capacity(steps.len());
    let mut missing: Vec<usize> = steps.iter().map(|step| step.after.len()).collect();
    let mut ready: std::collections::BTreeSet<usize> =
        (0..steps.len()).filter(|at| missing[*at] == 0).collect();
    while let Some(at) = ready.pop_first() {
        order.push(at);
        for (later, step) in steps.iter().enumerate() {
            if step.after.contains(&(at as u32)) {
                missing[later] -= 1;
                if missing[later] == 0 {
                    ready.insert(later);
                }
            }
        }
    }
    order
}

fn step<'a>(
    flow: &'a Flow,
    at: usize,
    outer: &mut Vec<&'a Name>,
    around: &Surroundings<'a>,
) -> StepSketch<'a> {
    let step = &flow.steps[at];
    let action = match &step.work {
        Work::Action { action, .. } => action_of(around.document, action),
        _ => None,
    };
    let inside = match &step.work {
        Work::Flow { flow: called, .. } => inside(called, outer, around),
        _ => Inside::Nothing,
    };
    let each = step.each.as_ref().map(|each| {
        let value = value(&each.items);
        let count = value.as_array().map(Vec::len);
        Looped { items: plain(&value), count, on_failure: each.on_failure }
    });
    let timeout = step.timeout.or(action.and_then(|action| action.policy.timeout));
    let retry = step.retry.as_ref().or(action.map(|action| &action.policy.retry));
    let retry = retry.filter(|retry| retry.attempts > 1);
    let limits = match (&step.work, &step.each) {
        (Work::Flow { .. }, None) | (Work::Wait(_), _) => Vec::new(),
        _ => around.core.demands_of_step(&flow.name, at),
    };
    let limits = limits.into_iter().filter(|demand| !is_shared(demand)).collect();
    let time = super::time::of_step(step, each.as_ref(), retry, timeout, &inside);
    StepSketch {
        step,
        does: does(&step.work),
        after: step.after.iter().map(|&before| flow.steps[before as usize].name.as_str()).collect(),
        when: when(&step.rule),
        each,
        retry,
        timeout,
        limits,
        inside,
        time,
    }
}

/// Whether all steps of a run ask for it, also those that no worker carries out.
fn is_shared(demand: &Demand) -> bool {
    matches!(demand.limit, LimitKey::Steps(_))
}

fn inside<'a>(called: &Name, outer: &mut Vec<&'a Name>, around: &Surroundings<'a>) -> Inside<'a> {
    let known = around.document.flows.iter().find(|flow| flow.name == *called);
    match known.filter(|flow| outer.len() <= DEEPEST && !outer.contains(&&flow.name)) {
        Some(flow) => Inside::Flow(Box::new(Sketch::inside(flow, outer, around))),
        None => Inside::NotShown,
    }
}

fn action_of<'a>(document: &'a Document, name: &Name) -> Option<&'a Action> {
    document.actions.iter().find(|action| action.policy.action == *name)
}

fn when(rule: &Rule) -> Option<String> {
    let condition = rule.when().map(|when| plain(&value(when)));
    match (rule, condition) {
        (Rule::Always { .. }, None) => Some("whatever happened before".to_owned()),
        (Rule::Always { .. }, Some(when)) => Some(format!("whatever happened before, if {when}")),
        (_, when) => when.map(|when| format!("if {when}")),
    }
}

/// What a step does, in a line.
fn does(work: &Work) -> String {
    match work {
        Work::Action { action, .. } => format!("action {action}"),
        Work::Flow { flow, .. } => format!("flow {flow}"),
        Work::Wait(time) => format!("wait {}", plain(&value(time))),
        Work::Order(order) => order_does(&value(order)),
    }
}

fn order_does(order: &Json) -> String {
    let Some((runner, order)) = order.as_object().and_then(|order| order.iter().next()) else {
        return String::new();
    };
    let text = |field: &str| plain(&order[field]);
    match runner.as_str() {
        "run" => {
            let argv = order["argv"].as_array().map(Vec::as_slice).unwrap_or_default();
            format!("run {}", argv.iter().map(plain).collect::<Vec<_>>().join(" "))
        }
        "shell" => format!("shell {}", text("script")),
        "http" => format!("http {} {}", text("method"), text("url")),
        "sql" => {
            let statements = order["statements"].as_array().map(Vec::as_slice).unwrap_or_default();
            let queries: Vec<String> = statements.iter().map(|one| plain(&one["query"])).collect();
            format!("sql {}: {}", plain(&order["connection"]["name"]), queries.join("; "))
        }
        other => other.to_owned(),
    }
}

fn value(template: &Template) -> Json {
    serde_json::from_str(&template.0).unwrap_or_default()
}

/// On one line, without quotes around text.
fn plain(value: &Json) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_stand_behind_what_they_wait_for() {
        let text = "flow: a\nsteps:\n  last: { after: [b, c], run: [ls] }\n  c: { after: [b], run: [ls] }\n  b: { run: [ls] }\n  free: { run: [ls] }\n";
        let document = tidegate_flow::parse("a.yaml", text).unwrap();
        let steps = &document.flows[0].steps;
        let names: Vec<&str> = in_order(steps).into_iter().map(|at| steps[at].name.as_str()).collect();
        assert_eq!(names, ["b", "c", "last", "free"]);
    }
}
