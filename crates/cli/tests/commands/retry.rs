//! `tidegate runs retry`, from the outside: what succeeded does not run again.

use crate::support::{Test, golden};
use rustix::process::Signal;
use serde_json::Value as Json;
use tidegate_store::{Before, Reads, SqliteStore, Store, Wanted};

/// Every process writes down that it ran; the third fails until there is a file.
const FLOW: &str = r#"
flow: nightly
inputs: { day: { type: string, default: monday } }
tags: { team: data }
steps:
  list: { run: [sh, -c, "echo list >> ran; echo '[1, 2]'"] }
  fetch:
    after: [list]
    with_items: "{{ steps.list.output.json }}"
    concurrency: 1
    run: [sh, -c, 'echo "fetch $0" >> ran', "{{ item }}"]
  load: { after: [fetch], run: [sh, -c, "echo load >> ran; test -e ready"] }
  never: { after: [fetch], when: "{{ inputs.day == 'sunday' }}", run: [ls] }
  clean: { after: [load, never], always: true, run: [sh, -c, "echo clean >> ran"] }
outputs: { said: "{{ steps.fetch.output.done }} items on {{ inputs.day }}" }
"#;

/// A run that failed.
fn failed() -> Test {
    let test = Test::new().file("nightly.yaml", FLOW);
    let test = test.args(["run", "-q", "nightly.yaml", "-i", "day=friday", "--priority", "7"]).status(1);
    test.run();
    assert_eq!(ran(&test), "list, fetch 1, fetch 2, load, clean");
    test
}

/// What ran since this was last asked.
fn ran(test: &Test) -> String {
    let ran = std::fs::read_to_string(test.path("ran")).unwrap_or_default();
    let _ = std::fs::remove_file(test.path("ran"));
    ran.lines().collect::<Vec<_>>().join(", ")
}

fn ready(test: Test) -> Test {
    test.file("ready", "")
}

#[test]
fn what_failed_is_done_again_and_what_succeeded_is_not() {
    let (test, runs) = failed().ids();
    let test = test.args(["runs", "retry", &runs[0]]).status(1);
    test.run();
    assert_eq!(ran(&test), "load, clean");
    let (test, runs) = ready(test).ids();
    let test = test.args(["runs", "retry", &runs[0]]);
    let outcome = test.run();
    assert_eq!(outcome.stdout, "said  2 items on friday\n");
    golden("retry", &outcome.stderr);
    assert_eq!(ran(&test), "load, clean");
    let test = test.args(["runs", "show"]);
    golden("retry-show", &test.run().stdout);
    let test = test.args(["runs", "events"]);
    golden("retry-events", &test.run().stdout);

    let test = test.args(["runs", "show", "-o", "json"]);
    let shown: Json = serde_json::from_str(&test.run().stdout).unwrap();
    assert_eq!((&shown["priority"], &shown["tags"]["team"]), (&7.into(), &"data".into()));
    assert_eq!(shown["tags"]["tidegate.retry_of"], runs[0].as_str());
    let reused = |step: usize| shown["steps"][step]["reused"]["from"].clone();
    assert_eq!((reused(0), reused(1)), (runs[1].as_str().into(), runs[1].as_str().into()), "where it ran");
    assert_eq!((reused(2), &shown["steps"][3]["state"]), (Json::Null, &"skipped".into()));

    let (test, runs) = test.ids();
    let test = test.args(["runs", "logs", &format!("{}/list", runs[0])]);
    assert_eq!(test.run().stderr, format!("it was reused: see `tidegate runs logs {}/list`\n", runs[2]));
}

#[test]
fn from_the_start_everything_runs_again() {
    let (test, runs) = ready(failed()).ids();
    let test = test.args(["runs", "retry", "-q", "--from-start", "-o", "json", &runs[0]]);
    let outcome = test.run();
    assert_eq!((outcome.stdout.trim(), outcome.stderr.as_str()), (r#"{"said":"2 items on friday"}"#, ""));
    assert_eq!(ran(&test), "list, fetch 1, fetch 2, load, clean");
    let (test, runs) = test.ids();
    let test = test.args(["runs", "retry", &runs[0]]).status(4);
    golden("retry-succeeded", &test.run().stderr);
    let test = test.args(["runs", "retry", "--from-start", "-q", &runs[0]]);
    test.run();
    assert_eq!(ran(&test), "list, fetch 1, fetch 2, load, clean");
    let test = test.args(["runs", "retry", "run_7"]).status(3);
    golden("retry-nothing", &test.run().stderr);
    let test = test.args(["runs", "retry", "run_7/load"]).status(3);
    golden("retry-part", &test.run().stderr);
}

#[test]
fn an_action_is_done_anew() {
    let action = "action: fragile\nrun: [sh, -c, \"echo it >> ran; test -e ready\"]\n";
    let test = Test::new().file("fragile.yaml", action).args(["run", "-q", "fragile.yaml"]).status(1);
    test.run();
    let (test, runs) = ready(test).ids();
    let test = test.args(["runs", "retry", &runs[0]]);
    golden("retry-action", &test.run().stderr);
    assert_eq!(ran(&test), "it, it");
}

#[test]
fn a_retry_that_is_killed_is_finished_and_reuses_what_it_did() {
    let gated = FLOW.replace("test -e ready", "test -e ready && exec 3>alive && cat gate");
    let test = Test::new().file("nightly.yaml", &gated).args(["run", "-q", "nightly.yaml"]).status(1);
    test.run();
    let (test, runs) = ready(test).ids();
    let (alive, gate) = (test.pipe("alive"), test.pipe("gate"));
    ran(&test);
    let test = test.args(["runs", "retry", &runs[0]]).status(-1);
    let retry = test.start();
    let held = alive.held();
    let (test, open) = test.ids();
    let test = test.args(["runs", "retry", &open[0]]).status(4);
    golden("retry-under-way", &test.run().stderr);
    retry.signal(Signal::KILL);
    held.until_gone();
    retry.finish();

    let test = test.args(["runs", "retry", &open[0]]).status(4);
    golden("retry-left-open", &test.run().stderr);
    let test = test.args(["run", "--resume"]);
    let resumed = test.start();
    let held = alive.held();
    gate.release();
    held.until_gone();
    golden("retry-resumed", &(resumed.finish() + "\n"));
    assert_eq!(ran(&test), "load, load, clean");
}

#[test]
fn what_was_reused_may_be_deleted_once_the_retry_has_ended() {
    let (test, runs) = ready(failed()).ids();
    let test = test.args(["runs", "retry", "-q", &runs[0]]);
    test.run();
    let mut store = SqliteStore::open(test.path(".tidegate/state.db")).unwrap();
    let newest = store.submitted(&Wanted::default(), 1).unwrap().remove(0);
    assert_eq!(store.prune(Before::all(newest.accepted), 99).unwrap().roots, 1);
    drop(store);
    let test = test.args(["runs", "show"]);
    golden("retry-gone", &test.run().stdout);
    let (test, left) = test.ids();
    assert_eq!(left.len(), 1);
    let test = test.args(["runs", "retry", &runs[0]]).status(3);
    assert!(test.run().stderr.contains("there is no"));
}
