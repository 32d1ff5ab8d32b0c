//! `tidegate limits`: what is in force, and an operator's word about it.

use super::show::{Reading, age, list, note, show, text};
use super::table::Table;
use crate::args::{self, LimitsCommand};
use crate::failure::{Exit, Failure};
use crate::out::say;
use crate::server::{connect, failed, segment};
use serde_json::{Value as Json, json};
use std::time::Duration;
use tidegate_remote::{ClientError, Method};

/// Of one answer; there may be one for each key of an action.
const MOST: u32 = 1_000;

pub async fn limits(options: &args::Limits, quiet: bool) -> Result<Exit, Failure> {
    match &options.command {
        LimitsCommand::List(options) => {
            let path = format!("/api/v1/limits?limit={MOST}&pools={}", options.pools);
            show(&options.shown, &Reading { path: &path, items: "items", draw: draw_list }).await
        }
        LimitsCommand::Show(options) => {
            let path = path_of(&options.limit);
            show(&options.shown, &Reading { path: &path, items: "", draw: draw_one }).await
        }
        LimitsCommand::Set(options) => {
            let mut new = json!({ "capacity": options.capacity });
            if let Some(span) = &options.lasting {
                new["lasting"] = json!(span);
            }
            tell(&options.change, Method::PUT, Some(new), quiet).await
        }
        LimitsCommand::Reset(options) => tell(options, Method::DELETE, None, quiet).await,
        LimitsCommand::Pause(options) => {
            tell(options, Method::PUT, Some(json!({ "paused": true })), quiet).await
        }
        LimitsCommand::Resume(options) => {
            tell(options, Method::PUT, Some(json!({ "paused": false })), quiet).await
        }
    }
}

fn path_of(limit: &str) -> String {
    format!("/api/v1/limits/{}", segment(limit))
}

/// Does it, and says what holds then.
async fn tell(
    options: &args::LimitsChange,
    method: Method,
    new: Option<Json>,
    quiet: bool,
) -> Result<Exit, Failure> {
    let client = connect(&options.server)?;
    let path = path_of(&options.limit);
    let told: Result<Json, _> = client.ask(method, &path, new.as_ref(), Duration::ZERO).await;
    told.map_err(|error| failed(&error))?;
    if quiet {
        return Ok(Exit::Success);
    }
    let limit = &options.limit;
    say(match client.get::<Json>(&path).await {
        Ok(now) => match state(&now) {
            state if state.is_empty() => format!("{limit}: {} taken", taken(&now)),
            state => format!("{limit}: {} taken, {state}", taken(&now)),
        },
        Err(ClientError::Refused { status: 404, .. }) => {
            format!("{limit}: nobody has declared it, and nobody uses it")
        }
        Err(error) => return Err(failed(&error)),
    });
    Ok(Exit::Success)
}

fn draw_list(limits: &Json) -> Vec<String> {
    let mut table = Table::new(&["LIMIT", "TAKEN", "WAITING", "STATE", "DECLARED AT"]);
    for limit in list(&limits["items"]) {
        table.row([
            text(&limit["limit"]),
            taken(limit),
            text(&limit["waiting"]),
            state(limit),
            text(&limit["declared_at"]),
        ]);
    }
    let mut lines = Vec::new();
    if list(&limits["items"]).is_empty() {
        note(&mut lines, "there are no limits");
        return lines;
    }
    lines = table.lines();
    if !limits["next"].is_null() {
        note(&mut lines, &format!("there are more than these {MOST}"));
    }
    lines
}

fn draw_one(limit: &Json) -> Vec<String> {
    let mut lines = draw_list(&json!({ "items": [limit] }));
    if !list(&limit["held_by"]).is_empty() {
        let mut table = Table::new(&["HELD BY", "UNITS", "FOR", "WORKER"]);
        for holder in list(&limit["held_by"]) {
            let since = age(&holder["since"]);
            let worker =
                if holder["waits"] == true { "(waits itself)".to_owned() } else { text(&holder["worker"]) };
            table.row([text(&holder["name"]), text(&holder["units"]), since, worker]);
        }
        lines.push(String::new());
        lines.extend(table.lines());
    }
    if !list(&limit["waiters"]).is_empty() {
        let mut table = Table::new(&["WAITS", "WHAT", "PRIORITY", "FOR"]);
        for waiter in list(&limit["waiters"]) {
            let since = age(&waiter["since"]);
            table.row([text(&waiter["name"]), text(&waiter["what"]), text(&waiter["priority"]), since]);
        }
        lines.push(String::new());
        lines.extend(table.lines());
    }
    lines
}

/// `3/4`, `12/100 per 1m`.
fn taken(limit: &Json) -> String {
    let per = limit["per"].as_str().map(|per| format!(" per {per}")).unwrap_or_default();
    format!("{}/{}{per}", limit["used"], limit["capacity"])
}

/// What is unusual about it.
fn state(limit: &Json) -> String {
    let mut parts = Vec::new();
    if limit["paused"] == true {
        parts.push("paused".to_owned());
    }
    if let Some(set) = limit["set"].as_object() {
        let until = set["until"].as_str().map(|until| format!(" until {until}")).unwrap_or_default();
        let instead =
            limit["declared"].as_u64().map(|units| format!(" instead of {units}")).unwrap_or_default();
        parts.push(format!("set by {}{instead}{until}", text(&set["by"])));
    }
    parts.join(", ")
}
