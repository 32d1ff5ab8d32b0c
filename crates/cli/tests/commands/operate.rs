//! `tidegate queue`, `limits` and `workers`, asked of the server that has the folder.

use crate::support::{Test, golden};
use rustix::process::Signal;

const LOAD: &str = r#"
action: load
run: [sh, -c, "exec 3>alive; exec cat go"]
pools: { database: 1 }
---
pools: { database: { slots: 1 } }
"#;

fn heard(test: &Test) -> String {
    let outcome = test.run();
    format!("{}--\n{}", outcome.stdout, outcome.stderr)
}

#[test]
fn an_operator_looks_at_limits_and_changes_them() {
    let dev = ["dev", ".", "--listen", "127.0.0.1:0", "--slots", "2", "--io-slots", "3"];
    let test = Test::new().file("load.yaml", LOAD).args(dev);
    let (alive, _go) = (test.pipe("alive"), test.pipe("go"));
    let mut server = test.start();
    server.until("1 of 1 files are declared");
    let test = test.args(["queue"]);
    golden("queue-empty", &heard(&test));
    // Nobody has to say where the server is.
    let test = test.args(["submit", "load"]);
    test.run();
    let held = alive.held();
    test.run();
    let test = test.args(["queue"]);
    golden("queue", &heard(&test));
    let test = test.args(["queue", "-o", "jsonl"]);
    golden("queue-jsonl", &heard(&test));
    let test = test.args(["limits", "list"]);
    golden("limits-list", &heard(&test));
    let test = test.args(["limits", "list", "--pools", "-o", "yaml"]);
    golden("limits-list-yaml", &heard(&test));
    let test = test.args(["actions", "list"]);
    golden("actions-list", &heard(&test));
    let test = test.args(["actions", "stats", "load", "-o", "json"]);
    let stats: serde_json::Value = serde_json::from_str(&test.run().stdout).expect("it is JSON");
    assert_eq!((&stats["waiting"], &stats["running"]), (&1.into(), &1.into()), "{stats}");
    let test = test.args(["actions", "stats", "load"]);
    let told = heard(&test);
    assert!(told.starts_with("NAME\tWAITING\tRUNNING\t") && told.contains("\nworkers\t1\t"), "{told}");
    let test = test.args(["actions", "stats", "laod"]).status(3);
    golden("actions-unknown", &heard(&test));
    let test = test.args(["limits", "pause", "pool:database"]);
    golden("limits-pause", &heard(&test));
    let test = test.args(["limits", "set", "pool:database", "2", "--for", "30m"]);
    golden("limits-set", &heard(&test));
    let test = test.args(["limits", "show", "pool:database"]);
    let shown = heard(&test);
    let workers = test.args(["workers", "list"]);
    let rows = workers.run().stdout;
    let cells: Vec<&str> = rows.lines().nth(1).expect("there is a worker").split('\t').collect();
    golden("limits-show", &shown.replace(cells[0], "WORKER"));
    golden("workers-list", &rows.replace(cells[0], "WORKER"));
    let test = workers.args(["limits", "resume", "pool:database"]);
    golden("limits-resume", &heard(&test));
    let test = test.args(["limits", "reset", "pool:database"]);
    golden("limits-reset", &heard(&test));
    let test = test.args(["limits", "set", "pool:databse", "2"]).status(3);
    golden("limits-unknown", &heard(&test));
    server.signal(Signal::INT);
    server.finish();
    held.until_gone();
    let test = test.args(["queue"]).status(5);
    let refused = test.run().stderr;
    assert!(refused.contains("cannot be reached") && refused.contains("tidegate serve"), "{refused}");
    assert!(!test.path(".tidegate/state.db.server").exists(), "who has ended is not looked for");
}
