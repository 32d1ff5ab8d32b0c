//! `tidegate run`, killed at one moment after the other and resumed. What was recorded as finished is not done again, what
//! was interrupted is done at most once more, and nothing of a killed process goes on.

use crate::support::Test;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use tidegate_core::ids::TaskId;
use tidegate_core::protocol::NodeRow;
use tidegate_core::state::State;
use tidegate_store::{Reads, SqliteReader, SqliteStore, Wanted};

/// Every process writes down that it started, and takes a moment.
const FLOW: &str = r#"
action: note
inputs: { name: { type: string, required: true } }
shell: |
  echo "$NAME" >> started
  echo at work
  sleep 0.02
env: { NAME: "{{ inputs.name }}" }
max_losses: 1000
---
flow: killed
steps:
  first: { action: note, inputs: { name: first } }
  each:
    after: [first]
    with_items: [0, 1, 2, 3, 4]
    concurrency: 2
    action: note
    inputs: { name: "each#{{ item }}" }
  inner: { after: [each], flow: inner }
  last: { after: [inner], action: note, inputs: { name: last } }
---
flow: inner
steps: { deep: { action: note, inputs: { name: inner/deep } } }
"#;

/// How often each has been started so far, by name.
fn started(test: &Test) -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(test.path("started")).unwrap_or_default();
    text.lines().fold(BTreeMap::new(), |mut counts, name| {
        *counts.entry(name.to_owned()).or_default() += 1;
        counts
    })
}

/// The run, if it was accepted before the first kill.
fn begun(test: &Test) -> Option<(SqliteReader, NodeRow)> {
    let mut reader = SqliteStore::open_reader(test.path(".tidegate/state.db")).ok()?;
    let root = reader.submitted(&Wanted::default(), 1).unwrap().pop()?;
    Some((reader, root))
}

/// What the store says has succeeded, by the names that processes write down.
fn recorded(test: &Test) -> BTreeSet<String> {
    let Some((mut reader, root)) = begun(test) else { return BTreeSet::new() };
    let rows = reader.tree(root.node).unwrap();
    let mut names = BTreeSet::new();
    for (index, name) in ["first", "each", "inner", "last"].into_iter().enumerate() {
        let step = root.node.step(index);
        if name == "each" {
            let items = reader.ended_items(step, 0, 5).unwrap();
            names.extend(
                items
                    .into_iter()
                    .filter(|(_, end)| end.state == State::Succeeded)
                    .map(|(at, _)| format!("each#{at}")),
            );
        } else if name == "inner" {
            let run = rows.iter().find(|row| row.parent == Some(step));
            let deep = run.and_then(|run| reader.ended(TaskId::node(run.node.step(0))).unwrap());
            names.extend(deep.filter(|end| end.state == State::Succeeded).map(|_| "inner/deep".to_owned()));
        } else {
            let end = reader.ended(TaskId::node(step)).unwrap();
            names.extend(end.filter(|end| end.state == State::Succeeded).map(|_| name.to_owned()));
        }
    }
    names
}

/// The reading end of the pipe that a life and all its processes hold; whoever opens the other end does not wait.
fn watch(test: &Test) -> File {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    File::options().read(true).custom_flags(nonblocking).open(test.path("alive")).unwrap()
}

/// Waits until nobody is left who holds the other end.
fn until_gone(mut alive: File) {
    rustix::fs::fcntl_setfl(&alive, rustix::fs::OFlags::empty()).unwrap();
    alive.read_to_end(&mut Vec::new()).unwrap();
}

/// Lets a run go on until it has said so many lines, and kills it. Whether it was still there to be killed.
fn live(test: &Test, lines: usize) -> bool {
    let alive = watch(test);
    let (recorded, before) = (recorded(test), started(test));
    let status = test.start_holding("alive").kill_after(lines);
    until_gone(alive);
    for (name, count) in started(test) {
        let times = count - before.get(&name).unwrap_or(&0);
        let most = usize::from(!recorded.contains(&name));
        assert!(times <= most, "{name} was started {times} times in one life; recorded were {recorded:?}");
    }
    // The second: it had ended when it was killed the last time, so nothing was left to resume.
    assert!(matches!(status, None | Some(0 | 3)), "{status:?}");
    status.is_none()
}

#[test]
fn a_run_that_is_killed_at_any_moment_is_finished_by_those_after_it() {
    // More of them with `cargo xtask chaos`.
    let kills: usize = std::env::var("TIDEGATE_KILLS").map_or(12, |kills| kills.parse().unwrap());
    let (mut killed, mut moment, mut interrupted) = (0, 0, 0);
    while killed < kills {
        let mut test = Test::new().file("killed.yaml", FLOW).args(["run", "killed.yaml"]);
        drop(test.pipe("alive"));
        // After how many lines: other numbers each time, and later kills at all distances from the first.
        let mut lines = moment % 29 + 1;
        moment += 1;
        while live(&test, lines) {
            killed += 1;
            let known = recorded(&test);
            interrupted += usize::from(started(&test).keys().any(|name| !known.contains(name)));
            lines = (lines * 7 + moment) % 23 + 1;
            let again = if begun(&test).is_some() { "--resume" } else { "killed.yaml" };
            test = test.args(["run", again]);
        }
        let names: BTreeSet<String> = started(&test).into_keys().collect();
        assert_eq!(recorded(&test), names, "all was done, and is known to be");
        assert_eq!(names.len(), 8);
    }
    eprintln!("{killed} kills of `tidegate run`, {interrupted} found something at work, all were resumed");
    assert!(interrupted * 3 >= killed, "only {interrupted} of {killed} kills found something at work");
}
