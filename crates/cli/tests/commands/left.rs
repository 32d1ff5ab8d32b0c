//! Runs whose process was killed: who looks is told, and any of them can be finished.

use crate::support::{Test, golden};

const LASTING: &str = r#"
flow: lasting
inputs: { name: { type: string, default: Ada } }
steps:
  one: { run: [sh, -c, "test -e finish || { exec 3>alive; echo ready; exec sleep 1000; }"] }
  two: { after: [one], run: [echo, "{{ inputs.name }}"] }
outputs: { said: "{{ steps.two.output.stdout | trim }}" }
"#;

#[test]
fn whoever_looks_is_told_that_the_process_of_a_run_has_ended() {
    let test = Test::new().file("lasting.yaml", LASTING).args(["run", "lasting.yaml"]).leave();
    let (test, ids) = test.ids();
    let heard = |test: &Test| {
        let outcome = test.run();
        format!("{}--\n{}", outcome.stdout, outcome.stderr)
    };
    let test = test.args(["runs", "list"]);
    golden("left-list", &heard(&test));
    let test = test.args(["runs", "list", "-o", "json"]);
    assert!(test.run().stdout.contains(r#""left_open":true"#));
    let test = test.args(["runs", "show"]);
    golden("left-show", &heard(&test));
    let test = test.args(["why"]);
    golden("left-why", &heard(&test));
    let test = test.args(["why", &ids[0]]);
    golden("left-why-run", &heard(&test));
}

#[test]
fn any_run_that_was_left_is_finished_by_its_id() {
    let test = Test::new().file("lasting.yaml", LASTING).args(["run", "lasting.yaml"]).leave();
    let test = test.args(["run", "lasting.yaml", "-i", "name=Bob"]).leave();
    let (test, ids) = test.ids();
    let test = test.file("finish", "").args(["runs", "resume", &ids[1], "-q", "-o", "json"]);
    assert_eq!(test.run().stdout, "{\"said\":\"Ada\"}\n");
    let test = test.args(["runs", "resume", &ids[1]]).status(4);
    golden("resume-ended", &test.run().stderr);
    let test = test.args(["runs", "resume", "run_7"]).status(3);
    assert!(test.run().stderr.contains("begins with `run_7`"));
    let (test, open) = test.ids();
    assert_eq!(open, ids, "nothing was submitted");
    let test = test.args(["runs", "resume", &ids[0], "lasting.yaml", "-q", "-o", "json"]);
    assert_eq!(test.run().stdout, "{\"said\":\"Bob\"}\n");
}

/// A flow whose first step can be killed, and whose second calls an action that fails until it is called for the third time.
fn calling(attempts: u32) -> String {
    format!(
        r#"
flow: calling
steps:
  one: {{ run: [sh, -c, "test -e finish || {{ exec 3>alive; echo ready; exec sleep 1000; }}"] }}
  two: {{ after: [one], action: third-time }}
---
action: third-time
run: [sh, -c, "echo x >> calls; test $(wc -l < calls) = 3"]
retry: {{ attempts: {attempts}, delay: 0s }}
"#
    )
}

#[test]
fn how_often_an_action_is_tried_is_what_the_file_says_when_its_run_is_resumed() {
    let test = Test::new().file("calling.yaml", &calling(1)).args(["run", "calling.yaml"]).leave();
    let test = test.file("finish", "").file("calling.yaml", &calling(3));
    let test = test.args(["run", "--resume", "calling.yaml"]);
    let said = test.run().stderr;
    assert!(said.contains("try 3 of 3"), "{said}");
}

#[test]
fn how_often_an_action_is_tried_is_what_the_file_says_when_its_run_is_retried() {
    let test = Test::new().file("calling.yaml", &calling(1)).file("finish", "");
    let test = test.args(["run", "-q", "calling.yaml"]).status(1);
    test.run();
    let (test, ids) = test.ids();
    let test = test.file("calling.yaml", &calling(2)).args(["runs", "retry", &ids[0], "calling.yaml"]);
    let said = test.run().stderr;
    assert!(said.contains("try 2 of 2"), "{said}");
}
