//! One module a resource. Handlers translate: what is decided is decided by the engine.

pub mod apply;
pub mod audit;
pub mod definitions;
pub mod events;
pub mod health;
pub mod limits;
mod page;
pub mod queue;
pub mod runs;
pub mod stats;
mod steps;
pub mod tasks;
pub mod tokens;
pub mod work;
pub mod workers;

use crate::problem::Problem;
use std::time::Duration;
use tidegate::{Moment, RunId};

fn time(at: Moment) -> String {
    at.timestamp().to_string()
}

/// A whole id, as it was given out.
fn run_id(text: &str) -> Result<RunId, Problem> {
    RunId::parse(text).ok_or_else(|| Problem::not_found(format!("`{}` is no id of a run", short(text))))
}

/// As much of a text as an answer repeats.
fn short(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn duration(text: &str) -> Result<Duration, Problem> {
    let span = tidegate_flow::parse_duration(text)
        .ok_or_else(|| Problem::invalid(format!("`{}` is not a duration such as `90s`", short(text))))?;
    Ok(Duration::from_micros(span.0))
}
