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
