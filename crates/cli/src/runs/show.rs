//! `tidegate runs show`: one run as it is now, or as it ended.

use super::list::described;
use super::{find, open};
use crate::args::{self, Output};
use crate::failure::{Exit, Failure};
use crate::out::print;
use crate::run::{Frame, Open, draw, no_definition};
use crate::time::{date, now};
use jiff::tz::TimeZone;
use serde_json::{Value as Json, json};
use tidegate_core::model::{OWN_TAGS, RETRY_TAG};
use tidegate_core::protocol::{Body, NodeRow, StepKind};
use tidegate_core::state::State;
use tidegate_store::{Reads, Sought};

pub fn show(options: &args::RunsShow) -> Result<Exit, Failure> {
    let (mut reader, path) = open(&options.store)?;
    let failed = |error| Failure::store(&error, path);
    let root = find(&mut reader, options.id.as_deref(), path)?;
    let rows = reader.tree(root).map_err(failed)?;
    let declared = reader.load().map_err(failed)?.snapshot.declared;
    let mut open = Open::seen(&declared, &rows).ok_or_else(|| no_definition(path))?;
    for row in &rows {
        let Body::Step(body) = &row.body else { continue };
        match body.kind {
            StepKind::Loop { .. } => {
                open.view.count_items(row.node, &reader.item_states(row.node).map_err(failed)?);
            }
            StepKind::Reused { of, .. } if reader.find(&[Sought::Part(of)]).map_err(failed)? == [None] => {
                open.view.output_is_gone(row.node);
            }
            _ => {}
        }
    }
    let ended = reader.ended(tidegate_core::ids::TaskId::node(root)).map_err(failed)?;
    let output = ended.and_then(|ended| ended.output);
    let output: Json =
        output.and_then(|output| serde_json::from_slice(output.bytes()).ok()).unwrap_or_default();
    match (options.output, rows.first()) {
        (Output::Json, Some(row)) => print(json_of(row, &open, output))?,
        (Output::Text, Some(row)) => print_text(row, &open, &output)?,
        (_, None) => {}
    }
    Ok(Exit::Success)
}

fn print_text(row: &NodeRow, open: &Open, output: &Json) -> Result<(), Failure> {
    let frame = Frame { now: now(), width: usize::MAX, height: 0, turn: 0, live: false };
    for line in draw(&open.view, &open.id.to_string(), &frame) {
        print(line)?;
    }
    print("")?;
    let zone = TimeZone::system();
    print(format!("submitted  {}", date(row.accepted, &zone)))?;
    for (tag, value) in row.body.tags() {
        match tag.as_str() {
            RETRY_TAG => print(format!("retry of   {value}"))?,
            own if own.starts_with(OWN_TAGS) => {}
            tag => print(format!("tag        {tag}={value}"))?,
        }
    }
    if let Some(error) = &row.life.error {
        print(format!("error      {error}"))?;
    }
    if row.life.state == State::Succeeded && !output.is_null() {
        print(format!("output     {output}"))?;
    }
    Ok(())
}

fn json_of(row: &NodeRow, open: &Open, output: Json) -> Json {
    let time = |at: tidegate_core::time::Moment| at.timestamp().to_string();
    let mut described = described(row);
    let steps = open.view.steps().map(|(name, step)| {
        let items = step.items.as_ref().map(|items| {
            json!({
                "count": items.count, "succeeded": items.succeeded, "failed": items.failed,
                "cancelled": items.cancelled, "running": items.running.len(),
            })
        });
        json!({
            "name": name,
            "state": step.state.map(|state| state.as_str()),
            "started": step.started.map(time),
            "ended": step.ended.map(time),
            "attempts": step.tries,
            "error": step.error,
            "items": items,
            "reused": step.reused.map(|reused| {
                json!({ "from": reused.run.to_string(), "output_is_gone": reused.is_gone })
            }),
        })
    });
    described["steps"] = steps.collect();
    described["output"] = output;
    described
}
