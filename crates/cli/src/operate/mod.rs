//! What operators ask a server, and tell it: `tidegate queue`, `limits`, `actions`, `workers`, `audit`.
//!
//! - [`show`]: in which form, and how often
//! - [`table`]: the form for people

mod actions;
mod limits;
mod show;
mod table;

pub use actions::actions;
pub use limits::limits;

use crate::args;
use crate::failure::{Exit, Failure};
use crate::server::segment;
use serde_json::Value as Json;
use show::age;
pub use show::{Reading, list, show, text};
pub use table::Table;

pub async fn queue(options: &args::Queue) -> Result<Exit, Failure> {
    let mut path = format!("/api/v1/queue?most={}", options.most);
    for (name, value) in [("name", &options.name), ("limit", &options.limit), ("run", &options.run)] {
        path.extend(value.iter().map(|value| format!("&{name}={}", segment(value))));
    }
    let reading = Reading { path: &path, items: "items", draw: draw_queue };
    show(&options.shown, &reading).await
}

fn draw_queue(queue: &Json) -> Vec<String> {
    let mut table = Table::new(&["NAME", "WHAT", "PRIORITY", "WAITED", "WHY"]);
    for row in list(&queue["items"]) {
        let more = row["count"].as_u64().unwrap_or(1).saturating_sub(1);
        let name = match more {
            0 => text(&row["name"]),
            more => format!("{} and {more} more", text(&row["name"])),
        };
        table.row([
            name,
            text(&row["what"]),
            text(&row["priority"]),
            age(&row["since"]),
            text(&row["waits"]),
        ]);
    }
    let mut lines = if list(&queue["items"]).is_empty() { Vec::new() } else { table.lines() };
    let waiting = queue["waiting"].as_u64().unwrap_or(0);
    let mut by_limit: Vec<(&String, u64)> = queue["by_limit"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(limit, count)| (limit, count.as_u64().unwrap_or(0)))
        .collect();
    by_limit.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let parts: Vec<String> = by_limit.iter().map(|(limit, count)| format!("{count} for {limit}")).collect();
    show::note(
        &mut lines,
        &match (waiting, parts.is_empty()) {
            (0, _) => "nothing waits".to_owned(),
            (waiting, true) => format!("{waiting} waiting"),
            (waiting, false) => format!("{waiting} waiting: {}", parts.join(", ")),
        },
    );
    lines
}

pub async fn workers(options: &args::Workers) -> Result<Exit, Failure> {
    let args::WorkersCommand::List(options) = &options.command;
    let reading = Reading { path: "/api/v1/workers", items: "", draw: draw_workers };
    show(&options.shown, &reading).await
}

fn draw_workers(workers: &Json) -> Vec<String> {
    let mut table =
        Table::new(&["NAME", "STATE", "PROCESSES", "I/O", "QUEUES", "LABELS", "FUNCTIONS", "LAST HEARD"]);
    for worker in list(workers) {
        let names = |field: &str| list(&worker[field]).iter().map(text).collect::<Vec<_>>().join(",");
        let state = if worker["connected"] == true { "connected" } else { "gone" };
        let slots = |kind: &str| format!("{}/{}", text(&worker["busy"][kind]), text(&worker["slots"][kind]));
        table.row([
            text(&worker["name"]),
            state.to_owned(),
            slots("process"),
            slots("io"),
            names("queues"),
            names("labels"),
            names("actions"),
            format!("{} ago", age(&worker["seen"])),
        ]);
    }
    if list(workers).is_empty() {
        let mut lines = Vec::new();
        show::note(&mut lines, "there are no workers");
        return lines;
    }
    table.lines()
}

pub async fn audit(options: &args::Audit) -> Result<Exit, Failure> {
    let path = format!("/api/v1/audit?limit={}", options.most);
    show(&options.shown, &Reading { path: &path, items: "items", draw: draw_audit }).await
}

fn draw_audit(changes: &Json) -> Vec<String> {
    let mut table = Table::new(&["AT", "BY", "WHAT", "ABOUT", "MORE"]);
    for change in list(&changes["items"]) {
        table.row(["at", "by", "what", "about", "more"].map(|field| text(&change[field])));
    }
    let mut lines = Vec::new();
    if list(&changes["items"]).is_empty() {
        show::note(&mut lines, "nothing was changed");
        return lines;
    }
    lines.extend(table.lines());
    lines
}
