//! `tidegate runs show`: one run as it is now, or as it ended.

use super::list::described;
use super::{find, open};
use crate::args::{self, Output};
use crate::failure::{Exit, Failure};
use crate::out::{print, say};
use crate::run::{Frame, Open, draw, is_left, no_definition};
use crate::time::{date, now};
use jiff::tz::TimeZone;
use serde_json::{Value as Json, json};
use std::path::Path;
use tidegate_core::ids::{NodeId, TaskId};
use tidegate_core::model::{OWN_TAGS, RETRY_TAG};
use tidegate_core::protocol::{Body, NodeRow, Payload, StepKind};
use tidegate_core::state::State;
use tidegate_store::{Reads, Sought, SqliteReader, StoreError, rows_of};

pub fn show(options: &args::RunsShow) -> Result<Exit, Failure> {
    let (mut reader, path) = open(&options.store)?;
    let failed = |error| Failure::store(&error, path);
    let root = find(&mut reader, options.id.as_deref(), path)?;
    let rows = rows_of(&mut reader, root).map_err(failed)?;
    let snapshot = reader.load().map_err(failed)?.snapshot;
    let mut open = Open::seen(&snapshot.declared, &rows).ok_or_else(|| no_definition(path))?;
    // Flows inside items that have not ended.
    open.view.take_in(&snapshot.nodes);
    complete(&mut open, &rows, &mut reader).map_err(failed)?;
    let read = |payload: Option<Payload>| -> Json {
        payload.and_then(|payload| serde_json::from_slice(payload.bytes()).ok()).unwrap_or_default()
    };
    let task = TaskId::node(root);
    let input = read(reader.payload(task).map_err(failed)?);
    let output = read(reader.ended(task).map_err(failed)?.and_then(|ended| ended.output));
    let Some(row) = rows.first() else { return Ok(Exit::Success) };
    match options.output {
        Output::Json => print(json_of(row, &open, path, input, output))?,
        Output::Text => print_text(row, &open, &input, &output)?,
    }
    if options.output == Output::Text && is_left(row, path) {
        say(options.store.left_help("its process has ended", open.id));
    }
    Ok(Exit::Success)
}

/// What is not in the rows: how items fare, and whether what was reused is still there.
fn complete(open: &mut Open, rows: &[NodeRow], reader: &mut SqliteReader) -> Result<(), StoreError> {
    for row in rows {
        let Body::Step(body) = &row.body else { continue };
        match body.kind {
            StepKind::Loop { .. } => count_items(open, row.node, reader)?,
            StepKind::Reused { of, .. } if reader.find(&[Sought::Part(of)])? == [None] => {
                open.view.output_is_gone(row.node);
            }
            _ => {}
        }
    }
    Ok(())
}

fn count_items(open: &mut Open, step: NodeId, reader: &mut SqliteReader) -> Result<(), StoreError> {
    let states = reader.item_states(step)?;
    open.view.count_items(step, &states);
    let failed = states.iter().filter(|items| items.state.is_failure());
    if let Some(first) = failed.map(|items| items.first).min() {
        let error = reader.ended(TaskId::item(step, first))?.and_then(|ended| ended.error);
        open.view.item_failed(step, first, error.unwrap_or_else(|| "it failed".to_owned()));
    }
    Ok(())
}

fn print_text(row: &NodeRow, open: &Open, input: &Json, output: &Json) -> Result<(), Failure> {
    let frame = Frame { now: now(), width: usize::MAX, height: 0, turn: 0, live: false };
    for line in draw(&open.view, &open.id.to_string(), &frame) {
        print(line)?;
    }
    print("")?;
    let zone = TimeZone::system();
    print(format!("submitted  {}", date(row.accepted, &zone)))?;
    if row.priority != 0 {
        print(format!("priority   {}", row.priority))?;
    }
    if input.as_object().is_some_and(|given| !given.is_empty()) {
        print(format!("inputs     {input}"))?;
    }
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

fn json_of(row: &NodeRow, open: &Open, store: &Path, input: Json, output: Json) -> Json {
    let time = |at: tidegate_core::time::Moment| at.timestamp().to_string();
    let mut described = described(row, store);
    let steps = open.view.steps().map(|(name, step)| {
        let items = step.items.as_ref().map(|items| {
            json!({
                "count": items.count, "succeeded": items.succeeded, "failed": items.failed,
                "cancelled": items.cancelled, "running": items.running.len(),
                "first_failed": items.error.as_ref().map(|(index, error)| {
                    json!({ "index": index, "error": error })
                }),
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
    described["inputs"] = input;
    described["output"] = output;
    described
}
