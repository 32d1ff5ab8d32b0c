//! What holds if nothing is said is what `docs/reference/defaults.md` says.

use crate::support::Test;
use tidegate_core::attempts::GRACE;
use tidegate_core::model::{FLOWS_AT_ONCE, LEASE, LimitsDocument, Line, MAX_LOSSES, Retry};
use tidegate_store::{Reads, Retention, SqliteStore, Wanted};
use tidegate_worker::cores;

const REFERENCE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/defaults.md"));

/// A loop about which nothing is said.
const SILENT: &str = "flow: silent\nsteps: { one: { with_items: [1], run: [cat, gate] } }\n";

#[test]
fn the_reference_says_what_the_code_does() {
    let silent = tidegate_flow::parse("silent.yaml", SILENT).unwrap();
    let flow = &silent.flows[0];
    let bound = |most: Option<u32>| most.map_or("unlimited".to_owned(), |most| most.to_string());
    let window = flow.steps[0].each.as_ref().and_then(|each| each.window);
    let run = silent_run();
    let processes =
        if run.processes == cores() { "one a core".to_owned() } else { run.processes.to_string() };
    let (line, kept) = (Line::default(), Retention::default());
    let expected = [
        ("runs of flows at once", bound(LimitsDocument::default().runs)),
        ("steps of a run at once", bound(flow.parallel_steps)),
        ("items of a loop at once", bound(window)),
        ("items of a loop over flows at once", FLOWS_AT_ONCE.to_string()),
        ("processes of a worker at once", processes),
        ("requests, statements and functions of a worker at once", run.requests.to_string()),
        ("tries", Retry::ONCE.attempts.to_string()),
        ("lost workers that a task survives", MAX_LOSSES.to_string()),
        ("from being asked to stop to being killed", GRACE.to_string()),
        ("priority", run.priority.to_string()),
        ("lease of an attempt", LEASE.to_string()),
        ("submitted jobs of an action that may wait", line.max_length.to_string()),
        (
            "how long one of them may wait for its start",
            line.start_within.map_or("for ever".to_owned(), |span| span.to_string()),
        ),
        ("how long what succeeded is kept", kept.succeeded.to_string()),
        ("how long what ended otherwise is kept", kept.failed.to_string()),
    ];
    let rows = REFERENCE.lines().filter(|line| line.starts_with('|')).skip(2);
    let said: Vec<(&str, String)> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            (cells[1], cells[3].to_owned())
        })
        .collect();
    assert_eq!(said, expected);
}

struct Silent {
    processes: u32,
    requests: u32,
    priority: i8,
}

/// What `tidegate run` does that was told nothing but the file.
fn silent_run() -> Silent {
    let test = Test::new().file("silent.yaml", SILENT).args(["run", "silent.yaml"]);
    let gate = test.pipe("gate");
    let mut run = test.start();
    run.until("one");
    let mut reader = SqliteStore::open_reader(test.path(".tidegate/state.db")).unwrap();
    let slots = reader.load().unwrap().snapshot.workers[0].slots;
    let priority = reader.submitted(&Wanted::default(), 1).unwrap()[0].priority;
    gate.release();
    run.finish();
    Silent { processes: slots.process, requests: slots.io, priority }
}
