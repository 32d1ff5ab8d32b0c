//! A plan for programs: everything that the text says, and what it leaves out for lack of room.

use super::draw::{is_keyed, name};
use super::sketch::{Inside, Sketch, StepSketch, place};
use super::time::Time;
use serde_json::{Map, Value as Json, json};
use tidegate_core::{Bound, Demand};

pub fn object(sketch: &Sketch<'_>) -> Json {
    json!({
        "flow": sketch.flow.name,
        "declared": sketch.place,
        "limits": sketch.limits.iter().map(limit).collect::<Vec<_>>(),
        "steps": sketch.steps.iter().map(step).collect::<Vec<_>>(),
        "longest": sketch.longest.0,
        "time": time(&sketch.time),
    })
}

fn step(sketch: &StepSketch<'_>) -> Json {
    let mut step = Map::from_iter([
        ("name".to_owned(), json!(sketch.step.name)),
        ("does".to_owned(), json!(sketch.does)),
        ("after".to_owned(), json!(sketch.after)),
        ("limits".to_owned(), sketch.limits.iter().map(limit).collect()),
        ("attempts".to_owned(), json!(sketch.retry.map_or(1, |retry| retry.attempts))),
        ("timeout_ms".to_owned(), json!(sketch.timeout.map(|timeout| timeout.0 / 1_000))),
        ("time".to_owned(), time(&sketch.time)),
    ]);
    if let Some(when) = &sketch.when {
        step.insert("when".to_owned(), json!(when));
    }
    if let Some(each) = &sketch.each {
        step.insert("items".to_owned(), json!(each.items));
    }
    if let Inside::Flow(flow) = &sketch.inside {
        step.insert("inside".to_owned(), object(flow));
    }
    Json::Object(step)
}

fn limit(demand: &Demand) -> Json {
    let mut limit = match &demand.bound {
        Bound::Units(capacity) => json!({ "units": demand.units, "capacity": capacity }),
        Bound::Rate(rate) => {
            json!({ "limit": rate.limit, "per_ms": rate.per.0 / 1_000, "burst": rate.burst })
        }
        Bound::Quota(quota) => {
            json!({ "limit": quota.limit, "per": quota.window.as_str(), "zone": quota.zone })
        }
        Bound::Workers(needs) => json!({ "queue": needs.queue, "labels": needs.labels }),
    };
    limit["name"] = json!(name(&demand.limit));
    limit["per_key"] = json!(is_keyed(&demand.limit));
    limit["declared"] = json!(place(&demand.origin));
    limit
}

fn time(time: &Time) -> Json {
    json!({
        "known_ms": time.known.0 / 1_000,
        "is_bound": time.open.is_empty(),
        "without_bound": time.open,
    })
}
