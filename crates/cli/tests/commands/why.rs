//! `tidegate why`, from the outside, while a run is under way.

use crate::support::{Test, golden};

/// `holder` has the whole pool until it is let go; `second` asks for it only after that.
const FLOW: &str = r#"
flow: queue
tags: { team: data }
steps:
  holder: { run: [sh, -c, "echo > held; cat gate"], pools: { database: 2 } }
  ticket: { run: [cat, held] }
  second: { after: [ticket], run: [echo, second], pools: { database: 1 } }
  last: { after: [second], run: [echo, last] }
---
pools:
  database: { slots: 2 }
"#;

#[test]
fn a_wait_is_explained_from_another_process() {
    let test = Test::new().file("queue.yaml", FLOW).args(["run", "queue.yaml", "--slots", "4"]);
    let (gate, _held) = (test.pipe("gate"), test.pipe("held"));
    let mut run = test.start();
    let id = run.until("queue run_").split_whitespace().last().expect("it says its id").to_owned();
    assert!(run.until("second").contains("waits for pool database (2 of 2 in use)"));

    let all = test.args(["why"]);
    let outcome = all.run();
    golden("why-all", &outcome.stdout);
    golden("why-all-stderr", &outcome.stderr);
    let mut test = all;
    for (name, step) in [
        ("why-second", "/second"),
        ("why-last", "/last"),
        ("why-holder", "/holder"),
        ("why-ticket", "/ticket"),
    ] {
        let task = format!("{id}{step}");
        test = test.args(["why", &task]);
        let outcome = test.run();
        golden(name, &outcome.stdout);
    }
    let short = format!("{}/second", &id[..20]);
    let test = test.args(["why", &short]);
    assert!(test.run().stdout.contains("has been waiting"));
    gate.release();
    run.finish();
}

#[test]
fn what_is_not_there_is_not_found() {
    let test = Test::new().args(["why"]).status(3);
    golden("why-no-store", &test.run().stderr);
    let flow = "flow: quick\nsteps: { one: { run: [echo] } }\n";
    let test = test.file("quick.yaml", flow).args(["run", "quick.yaml", "-q"]);
    test.run();
    let outcome = test.args(["why", "run_0/one"]).status(3).run();
    golden("why-not-found", &outcome.stderr);
}

/// The first guest has the desk until it is let go. The second comes when it has, and waits for it inside its flow; the
/// third waits for the window.
const EACH: &str = r#"
flow: guests
steps:
  each:
    with_items: [ada, bert, cleo]
    concurrency: 2
    flow: guest
    inputs: { name: "{{ item }}" }
---
flow: guest
inputs: { name: { type: string } }
steps:
  come: { run: [sh, -c, 'test "$0" != bert || cat held > come', "{{ inputs.name }}"] }
  sign:
    after: [come]
    run: [sh, -c, 'test "$0" != ada || { echo > held; cat gate; }', "{{ inputs.name }}"]
    pools: { desk: 1 }
  leave: { after: [sign], run: [echo, "bye {{ inputs.name }}"] }
---
pools:
  desk: { slots: 1 }
"#;

#[test]
fn what_is_inside_the_items_of_a_loop_is_named_and_explained() {
    let test = Test::new().file("guests.yaml", EACH).args(["run", "guests.yaml", "--slots", "4"]);
    let (gate, _held) = (test.pipe("gate"), test.pipe("held"));
    let mut run = test.start();
    let id = run.until("guests run_").split_whitespace().last().expect("it says its id").to_owned();
    assert!(run.until("each#1/sign").contains("waits for pool desk (1 of 1 in use)"));

    let mut test = test.args(["why"]);
    let mut said = test.run().stdout;
    for part in ["each", "each#0", "each#1", "each#1/sign", "each#1/leave", "each#2"] {
        test = test.args(["why", &format!("{id}/{part}")]);
        said += &test.run().stdout;
    }
    test = test.args(["runs", "show"]);
    golden("why-inside-items", &(said + &test.run().stdout));
    test = test.args(["why", &format!("{id}/each/sign")]).status(3);
    golden("why-which-item", &test.run().stderr);
    gate.release();
    run.finish();

    let part = format!("{id}/each#1");
    test = test.args(["runs", "logs", &part]).status(0);
    golden("runs-logs-of-an-item", &test.run().stdout);
    test = test.args(["runs", "events", &part]);
    let events = test.run().stdout;
    assert_eq!(events.matches("each#1/").count(), 6, "three steps are granted and end: {events}");
    assert!(!events.contains("each#0"), "{events}");
    test = test.args(["runs", "show", "-o", "json"]);
    let shown: serde_json::Value = serde_json::from_str(&test.run().stdout).expect("it is JSON");
    assert_eq!(shown["steps"].as_array().map(Vec::len), Some(1), "what was inside is counted: {shown:#}");
    assert_eq!(shown["steps"][0]["items"]["succeeded"], 3);
}
