//! `tidegate runs cancel`: what is under way, what was left, and what is not there.

use crate::support::{Test, golden};
use rustix::process::Signal;

const LASTING: &str = r#"
flow: lasting
steps: { last: { run: [sh, -c, "exec 3>alive; echo ready; exec sleep 1000"] }, next: { after: [last], run: [echo] } }
"#;
const BRIEF: &str = "flow: brief\nsteps: { one: { run: [echo, one] } }\n";

fn newest(test: Test) -> (Test, String) {
    let test = test.args(["runs", "list", "--limit", "1", "-o", "json"]);
    let listed: serde_json::Value = serde_json::from_str(&test.run().stdout).unwrap();
    (test, listed["id"].as_str().unwrap().to_owned())
}

#[test]
fn a_run_is_cancelled_from_outside() {
    let test = Test::new().file("lasting.yaml", LASTING).args(["run", "lasting.yaml"]).status(1);
    let alive = test.pipe("alive");
    let mut run = test.start();
    let held = alive.held();
    run.until("| ready");
    let (test, id) = newest(test);
    let test = test.args(["runs", "cancel", &id[..20], &id]);
    golden("runs-cancel", &test.run().stderr);
    held.until_gone();
    golden("cancelled-from-outside", &run.finish());
    let test = test.args(["runs", "cancel", &id]).status(4);
    golden("runs-cancel-ended", &test.run().stderr);
}

#[test]
fn what_was_left_by_a_killed_process_is_cancelled_at_once() {
    let test = Test::new().file("lasting.yaml", LASTING).args(["run", "lasting.yaml"]).leave();
    let test = test.args(["runs", "cancel", "--all"]).status(2);
    golden("runs-cancel-not-confirmed", &test.run().stderr);
    let test = test.args(["runs", "cancel", "--all", "--yes"]);
    golden("runs-cancel", &test.run().stderr);
    assert_eq!(test.run().stderr, "nothing is open in this store\n");
    let test = test.args(["run", "--resume"]).status(3);
    test.run();
}

#[test]
fn whoever_does_not_say_yes_cancels_nothing() {
    let test = Test::new().file("lasting.yaml", LASTING).args(["run", "lasting.yaml"]).status(130);
    let alive = test.pipe("alive");
    let mut run = test.start();
    let held = alive.held();
    run.until("| ready");
    let line = format!("'{}' runs cancel --all", env!("CARGO_BIN_EXE_tidegate"));
    let asked = |answer: &str| {
        let script = format!("printf '{answer}\\n' | script --quiet --return --command \"{line}\" /dev/null");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script]).current_dir(test.directory());
        let output = command.output().expect("script is there");
        (output.status.code(), String::from_utf8(output.stdout).expect("it writes text"))
    };
    let (status, said) = asked("n");
    assert!(status == Some(2) && said.contains("Cancel 1 run? [y/N]"), "{said}");
    assert!(said.contains("nothing was cancelled"), "{said}");
    run.signal(Signal::INT);
    held.until_gone();
    run.finish();
}

#[test]
fn what_is_not_there_cannot_be_cancelled() {
    let test = Test::new().file("brief.yaml", BRIEF).args(["run", "brief.yaml", "-q"]);
    test.run();
    test.run();
    let test = test.args(["runs", "cancel", "run_7"]).status(3);
    golden("runs-show-nothing", &test.run().stderr);
    let test = test.args(["runs", "cancel", "run_"]).status(3);
    golden("runs-cancel-ambiguous", &test.run().stderr);
    let test = test.args(["runs", "cancel"]).status(2);
    test.run();
    let test = test.args(["runs", "cancel", "--all", "--store", "elsewhere.db"]).status(3);
    assert!(test.run().stderr.contains("there is no store here"));
}
