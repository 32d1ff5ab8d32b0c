//! `tidegate actions`: what was declared, and one of them in numbers.

use super::show::{Reading, list, note, show, text};
use super::table::Table;
use crate::args::{self, ActionsCommand};
use crate::failure::{Exit, Failure};
use crate::server::segment;
use crate::time::took;
use serde_json::Value as Json;
use tidegate_core::time::Span;

pub async fn actions(options: &args::Actions) -> Result<Exit, Failure> {
    match &options.command {
        ActionsCommand::List(shown) => {
            show(shown, &Reading { path: "/api/v1/actions", items: "", draw: draw_list }).await
        }
        ActionsCommand::Stats(options) => {
            let path = format!("/api/v1/actions/{}/queue-stats", segment(&options.name));
            show(&options.shown, &Reading { path: &path, items: "", draw: draw_stats }).await
        }
    }
}

fn draw_list(actions: &Json) -> Vec<String> {
    let mut table = Table::new(&["NAME", "VERSION", "INPUTS", "DECLARED AT", "DESCRIPTION"]);
    for action in list(actions) {
        let inputs: Vec<String> = list(&action["inputs"]).iter().map(|input| text(&input["name"])).collect();
        let cell = |field: &str| text(&action[field]);
        table.row([
            cell("name"),
            cell("version"),
            inputs.join(","),
            cell("declared_at"),
            cell("description"),
        ]);
    }
    let mut lines = Vec::new();
    if list(actions).is_empty() {
        note(&mut lines, "there are no actions");
        return lines;
    }
    lines.extend(table.lines());
    lines
}

fn draw_stats(stats: &Json) -> Vec<String> {
    let mut table = Table::new(&["NAME", "WAITING", "RUNNING", "FIRST WAITS", "TOOK P50", "TOOK P90"]);
    table.row([
        text(&stats["name"]),
        text(&stats["waiting"]),
        text(&stats["running"]),
        seconds(&stats["first_waits"]),
        seconds(&stats["took"]["p50"]),
        seconds(&stats["took"]["p90"]),
    ]);
    let mut lines = table.lines();
    let mut waited = Table::new(&["WAITED FOR", "STARTS", "MEAN", "P50", "P90", "P99"]);
    for kind in ["limit", "worker"] {
        let of = &stats["waited"][kind];
        let bound = |percentile: &str| match (of["count"].as_u64(), seconds(&of[percentile])) {
            (Some(1..), longer) if longer.is_empty() => "> 1h".to_owned(),
            (_, bound) if bound.is_empty() => bound,
            (_, bound) => format!("≤ {bound}"),
        };
        let mean = seconds(&of["mean"]);
        waited.row([format!("{kind}s"), text(&of["count"]), mean, bound("p50"), bound("p90"), bound("p99")]);
    }
    lines.push(String::new());
    lines.extend(waited.lines());
    let ended = stats["ended"].as_object().filter(|ended| !ended.is_empty());
    if let Some(ended) = ended {
        let mut table = Table::new(&["ENDED", "COUNT"]);
        ended.iter().for_each(|(state, count)| table.row([state.clone(), text(count)]));
        lines.push(String::new());
        lines.extend(table.lines());
    }
    lines
}

/// Seconds as people read them.
fn seconds(value: &Json) -> String {
    value.as_f64().map(|seconds| took(Span((seconds * 1_000_000.0) as u64))).unwrap_or_default()
}
