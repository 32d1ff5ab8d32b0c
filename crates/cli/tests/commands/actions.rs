//! `tidegate run` of an action by itself.

use crate::support::{Test, golden};
use rustix::process::Signal;

const ACTIONS: &str = r#"
action: greet
inputs:
  name: { type: string, required: true }
  times: { type: integer, default: 1 }
retry: { attempts: 3, delay: 10ms }
run: [sh, -c, 'test -e again || { touch again; echo not yet >&2; exit 3; }; echo "hello, $0, $1"', "{{ inputs.name }}", "{{ inputs.times }}"]
---
action: other
run: [echo, other]
"#;

#[test]
fn an_action_runs_with_its_inputs_and_its_retries() {
    let test = Test::new().file("greet.yaml", ACTIONS);
    let test = test.args(["run", "greet.yaml", "--action", "greet", "-i", "name=Ada"]);
    let outcome = test.run();
    golden("action-stdout", &outcome.stdout);
    golden("action-stderr", &outcome.stderr);
    let test = test.args(["run", "greet.yaml", "-q", "-o", "json", "--action", "other"]);
    assert_eq!(test.run().stdout, "{\"exit_code\":0,\"stderr\":\"\",\"stdout\":\"other\\n\"}\n");
}

#[test]
fn the_only_action_of_a_file_need_not_be_named() {
    let test = Test::new().file("one.yaml", "action: one\nrun: [echo, one]\n").args(["run", "one.yaml"]);
    assert!(test.run().stdout.contains("stdout     one\n"));
}

#[test]
fn an_action_that_is_not_there_or_lacks_inputs_is_refused() {
    let test = Test::new().file("greet.yaml", ACTIONS);
    let test = test.args(["run", "greet.yaml"]).status(2);
    golden("which-action", &test.run().stderr);
    let test = test.args(["run", "greet.yaml", "--action", "great"]).status(2);
    golden("no-action", &test.run().stderr);
    let test = test.args(["run", "greet.yaml", "--action", "greet", "-i", "times=x"]).status(2);
    golden("wrong-inputs-of-an-action", &test.run().stderr);
}

#[test]
fn an_action_that_was_left_open_is_finished_by_resume() {
    let action = r#"
action: last
run: [sh, -c, "exec 3>alive; echo ready; test -e finish || exec sleep 1000"]
"#;
    let test = Test::new().file("last.yaml", action).args(["run", "last.yaml"]).leave();
    let test = test.file("finish", "").args(["run", "--resume", "last.yaml"]);
    let outcome = test.run();
    assert!(outcome.stderr.contains("✓ last"), "{}", outcome.stderr);
    let test = test.args(["run", "--resume"]).status(3);
    assert!(test.run().stderr.contains("no run is open"));
}

#[test]
fn a_run_that_is_resumed_calls_actions_as_they_were_when_it_began() {
    let flow = |says: &str| {
        format!(
            r#"
flow: versions
steps:
  first: {{ run: [sh, -c, "exec 3>alive; echo ready; test -e finish || exec sleep 1000"] }}
  second: {{ after: [first], action: say }}
outputs:
  said: "{{{{ steps.second.output.stdout }}}}"
---
action: say
run: [echo, {says}]
"#
        )
    };
    let test = Test::new().file("versions.yaml", &flow("old")).args(["run", "versions.yaml"]).leave();
    let test = test.file("versions.yaml", &flow("new")).file("finish", "");
    let test = test.args(["run", "-o", "json", "versions.yaml"]).status(0);
    assert_eq!(test.run().stdout, "{\"said\":\"new\\n\"}\n");
    let test = test.args(["run", "-o", "json", "--resume", "versions.yaml"]);
    assert_eq!(test.run().stdout, "{\"said\":\"old\\n\"}\n");
}

#[test]
fn how_long_an_action_may_take_is_what_the_file_says_when_its_run_is_resumed() {
    let flow = |timeout: &str| {
        format!(
            r#"
flow: lasting
steps:
  first: {{ run: [sh, -c, "exec 3>alive; echo ready; test -e finish || exec sleep 1000"] }}
  second: {{ after: [first], action: last }}
---
action: last
run: [sleep, "5"]
timeout: {timeout}
"#
        )
    };
    let test = Test::new().file("lasting.yaml", &flow("1h")).args(["run", "lasting.yaml"]).leave();
    let test = test.file("lasting.yaml", &flow("20ms")).file("finish", "");
    let test = test.args(["run", "--resume", "lasting.yaml"]).status(1);
    assert!(test.run().stderr.contains("timed out"));
}

#[test]
fn an_interrupt_cancels_an_action_and_leaves_no_process() {
    let action = "action: last\nrun: [sh, -c, \"exec 3>alive; echo ready; exec sleep 1000\"]\n";
    let test = Test::new().file("last.yaml", action).args(["run", "last.yaml"]).status(130);
    let alive = test.pipe("alive");
    let mut run = test.start();
    let held = alive.held();
    run.until("| ready");
    run.signal(Signal::INT);
    held.until_gone();
    golden("action-interrupted", &run.finish());
}
