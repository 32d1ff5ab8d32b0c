//! `tidegate plan`, from the outside.

use crate::support::{Test, golden_as_it_is as golden};

const FLOW: &str = r#"
flow: nightly
description: Everything that a plan can show
inputs:
  tenant: { type: string, required: true }
tags: { tenant: "{{ inputs.tenant }}", env: prod }
concurrency: 2
key: "{{ inputs.tenant }}"
parallel_steps: 3
steps:
  report:
    after: [load, notify]
    always: true
    run: [echo, done]
    timeout: 1m
  list:
    http: { url: "https://example.org/{{ inputs.tenant }}" }
    timeout: 10s
    retry: { attempts: 3, delay: 1s, backoff: constant }
    on: { queue: edge, labels: [fast] }
  load:
    after: [list]
    with_items: [1, 2, 3, 4, 5]
    concurrency: 2
    on_failure: { tolerate: 1 }
    action: warehouse.load
    inputs: { tenant: "{{ inputs.tenant }}" }
    pools: { database: 1 }
  cool_down: { after: [list], wait: 5m }
  notify:
    after: [cool_down]
    when: "{{ steps.list.output.status == 200 }}"
    flow: mails
---
flow: mails
parallel_steps: 1
steps:
  write: { shell: "echo hello", timeout: 5s }
  send: { after: [write], run: [mail, "{{ steps.write.output.stdout }}"], timeout: 30s }
---
flow: endless
steps:
  again: { flow: endless, when: "{{ 1 < 2 }}" }
  all: { with_items: "{{ [1] }}", run: [ls], on_failure: continue }
---
flow: everybody
steps:
  ask: { with_items: [1, 2, 3], flow: mails, concurrency: 2 }
  tell: { with_items: "{{ [1] }}", flow: mails, on_failure: continue }
---
action: warehouse.load
inputs: { tenant: {} }
key: "{{ inputs.tenant }}"
run: [load, "{{ inputs.tenant }}"]
timeout: 2m
rate: { limit: 100/1m, burst: 20 }
pools: { database: 1 }
"#;

const SHARED: &str = r#"
limits:
  runs: 4
  tags:
    - { tag: tenant, per_value: 1 }
  actions:
    - { match: "warehouse.*", each: { concurrency: 6, quota: 10000/1d }, total: { concurrency: 60 } }
pools:
  database: { slots: 5 }
"#;

fn test() -> Test {
    Test::new().file("nightly.yaml", FLOW).file("tidegate.yaml", SHARED)
}

#[test]
fn a_plan_shows_order_limits_and_the_longest_path() {
    let test = test().args(["plan", "nightly.yaml", "-i", "tenant=acme"]);
    let outcome = test.run();
    golden("plan", &outcome.stdout);
    assert!(outcome.stdout.lines().all(|line| line.chars().count() <= 80), "{}", outcome.stdout);
    let test = test.args(["plan", "nightly.yaml"]);
    let vague = test.run().stdout;
    assert!(vague.contains("depend on inputs") && !vague.contains("tenant=acme"), "{vague}");
    assert!(!test.path(".tidegate").exists(), "nothing is kept");
}

#[test]
fn a_plan_without_bounds_says_what_has_none() {
    golden("plan-endless", &test().args(["plan", "nightly.yaml", "--flow", "endless"]).run().stdout);
}

#[test]
fn a_plan_shows_the_window_of_a_loop_over_flows_and_what_is_inside() {
    golden("plan-over-flows", &test().args(["plan", "nightly.yaml", "--flow", "everybody"]).run().stdout);
}

#[test]
fn a_plan_for_programs_says_the_same() {
    let test = test().args(["plan", "nightly.yaml", "-i", "tenant=acme", "-o", "json"]);
    let plan: serde_json::Value = serde_json::from_str(&test.run().stdout).unwrap();
    assert_eq!(
        plan["longest"],
        serde_json::json!(["list", "cool_down", "notify/write", "notify/send", "report"])
    );
    let tag = serde_json::json!({ "name": "runs with tenant=acme", "units": 1, "capacity": 1, "per_key": false, "declared": "tidegate.yaml:5" });
    assert!(plan["limits"].as_array().unwrap().contains(&tag), "{plan:#}");
    assert_eq!(plan["steps"][1]["name"], "load");
    let pool = serde_json::json!({ "name": "pool database", "units": 2, "capacity": 5, "per_key": false, "declared": "tidegate.yaml:9" });
    assert!(plan["steps"][1]["limits"].as_array().unwrap().contains(&pool), "{plan:#}");
    assert_eq!(
        plan["time"],
        serde_json::json!({ "known_ms": 452_000, "is_bound": true, "without_bound": [] })
    );
}

#[test]
fn what_cannot_be_planned_is_said() {
    let test = test().args(["plan", "nightly.yaml", "--flow", "nihgtly"]).status(2);
    golden("plan-no-flow", &test.run().stderr);
    let test = test.args(["plan", "nightly.yaml", "-i", "tennant=a"]).status(2);
    golden("plan-wrong-inputs", &test.run().stderr);
    let greedy = FLOW.replace("pools: { database: 1 }\n  cool_down", "pools: { database: 5 }\n  cool_down");
    let test = test.file("nightly.yaml", &greedy).args(["plan", "nightly.yaml"]).status(2);
    golden("plan-impossible", &test.run().stderr);
}
