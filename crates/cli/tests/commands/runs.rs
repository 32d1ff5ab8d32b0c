//! `tidegate runs`: what was submitted, looked at from the outside.

use crate::support::{Test, golden};
use rustix::process::Signal;

const FLOWS: &str = r#"
flow: shown
tags: { team: a }
steps:
  one: { run: [echo, one] }
  each:
    after: [one]
    with_items: [1, 2, 3]
    run: [sh, -c, 'test "$0" != 2', "{{ item }}"]
    on_failure: continue
  last: { after: [each], flow: inner }
outputs: { said: "{{ steps.one.output.stdout | trim }}" }
---
flow: inner
steps: { deep: { run: [echo, deep] } }
---
flow: failing
steps: { bad: { run: [sh, -c, "exit 3"] }, after: { after: [bad], run: [echo] } }
"#;

/// A store with a run that succeeded and one that failed.
fn with_runs() -> Test {
    let test = Test::new().file("flows.yaml", FLOWS).args(["run", "-q", "flows.yaml"]);
    test.run();
    let test = test.args(["run", "-q", "flows.yaml", "--flow", "failing"]).status(1);
    test.run();
    test
}

#[test]
fn what_was_submitted_is_listed_newest_first() {
    let test = with_runs().args(["runs", "list"]);
    golden("runs-list", &test.run().stdout);
    let test = test.args(["runs", "list", "--limit", "1"]);
    let outcome = test.run();
    assert_eq!(outcome.stdout.lines().count(), 1);
    assert!(outcome.stderr.contains("there are more: see --limit"), "{}", outcome.stderr);
    let test = test.args(["runs", "list", "--state", "succeeded", "-o", "json"]);
    let outcome = test.run();
    assert!(outcome.stdout.contains(r#""name":"shown""#), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains("failing"), "{}", outcome.stdout);
    let test = test.args(["runs", "list", "--name", "nobody"]);
    assert_eq!(test.run().stderr, "there are none\n");
}

#[test]
fn a_run_is_shown_with_its_steps() {
    let test = with_runs().args(["runs", "show"]);
    golden("runs-show-failed", &test.run().stdout);
    let test = test.args(["runs", "list", "--name", "shown", "-o", "json"]);
    let listed: serde_json::Value = serde_json::from_str(&test.run().stdout).unwrap();
    let id = listed["id"].as_str().unwrap().to_owned();
    let test = test.args(["runs", "show", &id]);
    golden("runs-show", &test.run().stdout);
    let test = test.args(["runs", "show", &id, "-o", "json"]);
    let shown: serde_json::Value = serde_json::from_str(&test.run().stdout).unwrap();
    let names: Vec<&str> =
        shown["steps"].as_array().unwrap().iter().filter_map(|step| step["name"].as_str()).collect();
    assert_eq!(names, ["one", "each", "last", "last/deep"]);
    let items = &shown["steps"][1]["items"];
    assert_eq!((&items["succeeded"], &items["failed"]), (&2.into(), &1.into()));
    assert_eq!(items["first_failed"], serde_json::json!({ "index": 1, "error": "exit code 1" }));
    assert_eq!(shown["output"]["said"], "one");
}

#[test]
fn what_is_not_there_is_said() {
    let test = with_runs().args(["runs", "show", "run_7"]).status(3);
    golden("runs-show-nothing", &test.run().stderr);
    let test = test.args(["runs", "show", "--store", "elsewhere.db"]).status(3);
    assert!(test.run().stderr.contains("there is no store here"));
}

#[test]
fn a_run_under_way_is_seen_by_others() {
    let flow =
        "flow: lasting\nsteps: { last: { run: [sh, -c, \"exec 3>alive; echo ready; exec sleep 1000\"] } }\n";
    let test = Test::new().file("lasting.yaml", flow).args(["run", "lasting.yaml"]).status(130);
    let alive = test.pipe("alive");
    let mut run = test.start();
    let held = alive.held();
    run.until("| ready");
    let test = test.args(["runs", "show", "-o", "json"]);
    let shown: serde_json::Value = serde_json::from_str(&test.run().stdout).unwrap();
    assert_eq!((&shown["state"], &shown["steps"][0]["state"]), (&"running".into(), &"running".into()));
    run.signal(Signal::INT);
    held.until_gone();
    run.finish();
}

const TALKATIVE: &str = r#"
flow: talkative
steps:
  one: { run: [sh, -c, "echo hello; echo problem >&2; printf 'no newline'"] }
  each:
    after: [one]
    with_items: [1, 2]
    concurrency: 1
    run: [sh, -c, 'echo item $0; test -e "mark$0" || { touch "mark$0"; exit 3; }', "{{ item }}"]
    retry: { attempts: 2, delay: 0s }
"#;

#[test]
fn what_was_written_and_what_happened_can_be_read_afterwards() {
    let test = Test::new().file("talkative.yaml", TALKATIVE).args(["run", "-q", "talkative.yaml"]);
    test.run();
    let test = test.args(["runs", "logs"]);
    let mut lines: Vec<String> = test.run().stdout.lines().map(str::to_owned).collect();
    // Both outputs of one process are read by two hands.
    lines[..3].sort_by(|one, other| one.split_once("| ").cmp(&other.split_once("| ")));
    golden("runs-logs", &(lines.join("\n") + "\n"));
    let test = test.args(["runs", "events"]);
    golden("runs-events", &test.run().stdout);

    let (test, ids) = test.ids();
    let test = test.args(["runs", "logs", &format!("{}/each#1", ids[0]), "-o", "json"]);
    let said: Vec<serde_json::Value> =
        test.run().stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said: Vec<_> = said.iter().map(|line| (&line["task"], &line["attempt"], &line["text"])).collect();
    let (task, text) = (&"each#1".into(), &"item 2".into());
    assert_eq!(said, [(task, &1.into(), text), (task, &2.into(), text)]);

    let test = test.args(["prune", "-q", "--older-than", "0s"]);
    test.run();
    assert_eq!(std::fs::read_dir(test.path(".tidegate/state.db.logs")).unwrap().count(), 0);
}

#[test]
fn a_part_that_no_run_has_is_not_found() {
    let flows = format!("{FLOWS}---\naction: alone\nrun: [echo]\n");
    let test = Test::new().file("flows.yaml", &flows).args(["run", "-q", "flows.yaml"]);
    test.run();
    let test = test.args(["run", "-q", "flows.yaml", "--action", "alone"]);
    test.run();
    let (test, ids) = test.ids();
    let (alone, shown) = (&ids[0], &ids[1]);
    let wrong = ["eech", "each#3", "each#x", "one#0", "one/deep", "each/deep", "last/deap", "last/deep/er"];
    let mut test = test;
    let mut said = String::new();
    for part in wrong.iter().map(|part| format!("{shown}/{part}")).chain([format!("{alone}/one")]) {
        test = test.args(["runs", "logs", &part]).status(3);
        said += &test.run().stderr;
        test = test.args(["runs", "events", &part]).status(3);
        test.run();
    }
    golden("runs-logs-no-such-part", &said);
    for part in ["one", "each", "each#1", "last/deep"].map(|part| format!("{shown}/{part}")) {
        test = test.args(["runs", "events", &part]);
        assert!(test.run().stdout.contains("task.finished"), "{part}");
    }
}

#[test]
fn what_ended_together_is_found_by_each_of_its_names() {
    let flow = r#"
flow: stopping
steps:
  each:
    with_items: [1, 2, 3, 4, 5, 6]
    concurrency: 1
    run: [sh, -c, "exit 3"]
"#;
    let test = Test::new().file("stopping.yaml", flow).args(["run", "-q", "stopping.yaml"]).status(1);
    test.run();
    let (test, ids) = test.ids();
    let test = test.args(["runs", "events", &format!("{}/each#4", ids[0])]);
    let said = test.run().stdout;
    assert!(said.contains("each#1") && said.contains("cancelled") && said.lines().count() == 1, "{said}");
    let test = test.args(["runs", "show"]);
    let said = test.run().stdout;
    assert!(said.contains("#0: exit code 3"), "{said}");
}

#[test]
fn a_diary_is_followed_to_the_end_of_the_run_also_when_another_process_finishes_it() {
    let script = "echo begun; exec 3>alive; cat gate; echo over";
    let flow = format!("flow: halting\nsteps: {{ it: {{ run: [sh, -c, \"{script}\"] }} }}\n");
    let test = Test::new().file("halting.yaml", &flow).args(["run", "halting.yaml"]).status(-1);
    let (alive, gate) = (test.pipe("alive"), test.pipe("gate"));
    let mut run = test.start();
    let held = alive.held();
    run.until("| begun");
    run.signal(Signal::KILL);
    held.until_gone();
    run.finish();

    let test = test.args(["run", "--resume"]);
    let resumed = test.start();
    let held = alive.held();
    let test = test.args(["runs", "logs", "-f"]);
    let follow = test.command().stdout(std::process::Stdio::piped()).spawn().unwrap();
    gate.release();
    held.until_gone();
    resumed.finish();
    let followed = follow.wait_with_output().unwrap();
    assert!(followed.status.success());
    let said = String::from_utf8(followed.stdout).unwrap();
    let texts: Vec<&str> =
        said.lines().filter_map(|line| line.split_once("| ")).map(|(_, text)| text).collect();
    // What the first process wrote right before it was killed may be lost.
    assert!(texts.ends_with(&["begun", "over"]), "{said}");
    let test = test.args(["runs", "events", "-o", "json"]);
    let happened = test.run().stdout;
    assert_eq!(happened.matches("run.queued").count(), 1, "{happened}");
    assert_eq!(happened.matches("task.granted").count(), 2, "{happened}");
    assert_eq!(happened.matches("run.finished").count(), 1, "{happened}");
}
