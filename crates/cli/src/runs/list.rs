//! `tidegate runs list`: one line each, newest first.

use super::{identity, open};
use crate::args::{self, Output};
use crate::failure::{Exit, Failure};
use crate::line::{Line, Tone};
use crate::out::{print, say};
use crate::run::{is_left, state_of, tone};
use crate::time::{date, now, took};
use jiff::tz::TimeZone;
use serde_json::{Map, Value as Json, json};
use std::path::Path;
use tidegate_core::ids::Name;
use tidegate_core::protocol::NodeRow;
use tidegate_store::{Reads, Wanted};

pub fn list(options: &args::RunsList) -> Result<Exit, Failure> {
    let (mut reader, path) = open(&options.store)?;
    let wanted = Wanted {
        before: None,
        state: options.state.map(|state| state.0),
        name: options.name.as_deref().map(Name::new),
    };
    // One more than is shown, to know whether there are more.
    let mut rows = reader
        .submitted(&wanted, options.limit.saturating_add(1))
        .map_err(|error| Failure::store(&error, path))?;
    let more = rows.len() > options.limit as usize;
    rows.truncate(options.limit as usize);
    if options.output == Output::Json {
        rows.iter().try_for_each(|row| print(described(row, path)))?;
        return Ok(Exit::Success);
    }
    if rows.is_empty() {
        say("there are none");
    }
    let (zone, now) = (TimeZone::system(), now());
    let names = rows.iter().filter_map(identity).map(|(_, name)| name.as_str().chars().count());
    let width = names.max().unwrap_or(0);
    for row in &rows {
        let Some((id, name)) = identity(row) else { continue };
        let life = &row.life;
        let span = life.started.map(|started| took(life.ended.unwrap_or(now).since(started)));
        let line = Line::new().with(Tone::Plain, id.to_string()).with(Tone::Plain, "  ");
        let line = line.with(Tone::Dim, date(row.accepted, &zone)).with(Tone::Plain, "  ");
        let line = line.with(Tone::Strong, format!("{:<width$}", name.as_str())).with(Tone::Plain, "  ");
        let line = line.with(tone(life.state), format!("{:<9}", state_of(life.state)));
        let line = line.with(Tone::Plain, format!("  {:>7}", span.unwrap_or_default()));
        let line =
            line.with(Tone::Bad, life.error.as_ref().map(|why| format!("  {why}")).unwrap_or_default());
        let left = if is_left(row, path) { "  its process has ended" } else { "" };
        print(line.with(Tone::Waits, left))?;
    }
    if let Some((id, _)) = rows.iter().find(|row| is_left(row, path)).and_then(identity) {
        say(options.store.left_help("what was left open can be finished", id));
    }
    if more {
        say("there are more: see --limit, --state and --name");
    }
    Ok(Exit::Success)
}

/// One of them, for programs.
pub(super) fn described(row: &NodeRow, store: &Path) -> Json {
    let time = |at: tidegate_core::time::Moment| at.timestamp().to_string();
    let tags: Map<String, Json> =
        row.body.tags().iter().map(|(tag, value)| (tag.to_string(), json!(value.as_str()))).collect();
    let (id, name) = identity(row).unzip();
    json!({
        "id": id.map(|id| id.to_string()),
        "name": name.map(Name::as_str),
        "state": row.life.state.as_str(),
        "left_open": is_left(row, store),
        "priority": row.priority,
        "tags": tags,
        "accepted": time(row.accepted),
        "started": row.life.started.map(time),
        "ended": row.life.ended.map(time),
        "error": row.life.error,
    })
}
