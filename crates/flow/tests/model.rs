//! What files become.

use tidegate_core::model::{
    ActionWork, Backoff, OnFailure, Pool, QuotaWindow, Rule, Runner, WhenBusy, WhenExhausted, WhenFull, Work,
};
use tidegate_core::time::Span;
use tidegate_flow::{Document, Elsewhere, parse, parse_many, parse_with};

fn good(text: &str) -> Document {
    parse("demo.yaml", text).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

const EVERYTHING: &str = r#"
flow: demo
description: Shows everything
inputs:
  api: { type: string, default: http://127.0.0.1 }
  pages: { type: integer, required: true }
tags: { team: data, api: "{{ inputs.api }}", level: 3 }
concurrency: 2
key: "{{ inputs.api }}"
when_busy: cancel_running
parallel_steps: 4
timeout: 2h
fail_fast: true
steps:
  list:
    run: [sh, -c, "exit 0"]
    cwd: /tmp
    env: { PAGES: "{{ inputs.pages }}", N: 007 }
  fetch:
    after: [list]
    with_items: "{{ steps.list.output.json }}"
    concurrency: 20
    on_failure: { tolerate: 10 }
    run: [echo, "{{ item.id }}", "{{ index }}"]
    pools: { web: 2, api: 1 }
    retry: { attempts: 5, backoff: linear, delay: 200ms, max_delay: 30s }
    timeout: 30s
    start_within: 1h30m
    max_losses: 7
    on: { queue: gpu, labels: [b, a, b] }
  failed:
    after: [fetch]
    when: "{{ steps.fetch.state == 'failed' }}"
    action: mail.send
    inputs: { to: "{{ inputs.api }}" }
  pause:
    after: fetch
    wait: 5m
    when: "{{ steps.fetch.output.done > 3 }}"
  child:
    after: [pause, failed]
    always: true
    flow: other
outputs:
  done: "{{ steps.fetch.output.done }}"
"#;

#[test]
fn a_flow_keeps_everything_it_says() {
    let document = good(EVERYTHING);
    let flow = &document.flows[0];
    assert_eq!((flow.name.as_str(), flow.concurrency, flow.line), ("demo", Some(2), 8));
    assert_eq!((flow.when_busy, flow.parallel_steps), (WhenBusy::CancelRunning, Some(4)));
    assert_eq!((flow.timeout, flow.fail_fast), (Some(Span::hours(2)), true));
    assert_eq!(flow.tags[2].1.0.as_ref(), "3");
    let [list, fetch, failed, pause, child] = flow.steps.as_slice() else { panic!() };
    let Work::Order(run) = &list.work else { panic!() };
    assert_eq!(
        run.0.as_ref(),
        r#"{"run":{"argv":["sh","-c","exit 0"],"cwd":"/tmp","env":{"N":"007","PAGES":"{{ inputs.pages }}"}}}"#
    );
    let each = fetch.each.as_ref().unwrap();
    assert_eq!((each.window, each.on_failure), (Some(20), OnFailure::Tolerate(10)));
    assert_eq!(fetch.pools, [("api".into(), 1), ("web".into(), 2)]);
    assert_eq!(
        (fetch.attempts(), fetch.retry.as_ref().map(|retry| retry.backoff)),
        (5, Some(Backoff::Linear))
    );
    assert_eq!((fetch.start_within, fetch.max_losses), (Some(Span::minutes(90)), Some(7)));
    assert_eq!((fetch.needs.queue.as_str(), fetch.needs.labels.len()), ("gpu", 2));
    assert!(matches!(failed.rule, Rule::States { .. }));
    assert_eq!(failed.needs.runner, Runner::Function("mail.send".into()));
    assert!(matches!(pause.rule, Rule::Success { when: Some(_) }));
    assert_eq!(pause.after, [1]);
    assert_eq!((child.after.as_slice(), &child.rule), ([2, 3].as_slice(), &Rule::Always { when: None }));
    assert_eq!(flow.outputs.as_ref().unwrap().0.as_ref(), r#"{"done":"{{ steps.fetch.output.done }}"}"#);
}

#[test]
fn limits_pools_and_actions_keep_everything_they_say() {
    let document = good(
        r#"
limits:
  runs: unlimited
  tags:
    - { tag: env=prod, limit: 2 }
    - { tag: tenant, per_value: 1 }
  actions:
    - { match: "billing.*", each: { concurrency: 20, rate: 50/1s }, total: { concurrency: 60 } }
pools:
  database: { slots: 5, lease: 5m }
---
action: billing.charge
inputs: { tenant: { type: string } }
worker: true
concurrency: 4
key: "{{ inputs.tenant }}"
rate: { limit: 100/1m, burst: 20, when_busy: wait }
quota: { limit: 10000/1d, zone: Europe/Berlin, when_busy: reject }
line: { max_length: 50, start_within: 10m, when_full: drop_oldest }
pools: { database: 2 }
---
action: say
inputs: { what: { type: string, required: true } }
run: [echo, "{{ inputs.what }}"]
---
flow: demo
steps:
  one: { action: say, inputs: { what: hello } }
"#,
    );
    let limits = document.limits.unwrap();
    assert_eq!((limits.runs, limits.runs_origin.line), (None, 3));
    assert_eq!(limits.tags[0].value, Some("prod".into()));
    assert_eq!((limits.tags[1].tag.as_str(), &limits.tags[1].value), ("tenant", &None));
    let rule = &limits.actions[0];
    assert_eq!((rule.each.concurrency, rule.total.concurrency), (Some(20), Some(60)));
    assert_eq!(rule.each.rate.unwrap().per, Span::seconds(1));
    assert_eq!((limits.pools[0].slots, limits.pools[0].lease), (5, Some(Span::minutes(5))));
    let policy = &document.actions[0].policy;
    let (rate, quota) = (policy.each.rate.unwrap(), policy.each.quota.as_ref().unwrap());
    assert_eq!((rate.limit, rate.burst, rate.when_busy), (100, 20, WhenExhausted::Wait));
    assert_eq!((quota.window, quota.zone.as_str()), (QuotaWindow::Day, "Europe/Berlin"));
    assert_eq!((policy.line.max_length, policy.line.when_full), (50, WhenFull::DropOldest));
    assert_eq!(policy.pools, [("database".into(), 2)]);
    assert!(matches!(document.actions[0].work, ActionWork::Function));
    assert!(matches!(document.actions[1].work, ActionWork::Order(_)));
    assert_eq!(document.flows[0].steps[0].needs.runner, Runner::Process, "the action is a process");
}

#[test]
fn pools_may_be_declared_elsewhere() {
    let flow = "flow: demo\nsteps:\n  one: { run: [echo], pools: { gpu: 2 } }\n";
    let pools = "pools: { gpu: { slots: 1 } }\n";
    assert!(parse("a.yaml", flow).is_ok(), "who knows what the server has");
    let codes = |result: Result<Document, tidegate_flow::Diagnostics>| {
        let errors = result.unwrap_err();
        errors.iter().map(|error| (error.problem.code(), error.file, error.line)).collect::<Vec<_>>()
    };
    let both = parse_many(&[("pools.yaml", pools.as_bytes()), ("a.yaml", flow.as_bytes())]);
    assert_eq!(codes(both), [("pool-too-small", 1, 3)]);
    assert_eq!(
        codes(parse_with(&[("a.yaml", flow.as_bytes())], Elsewhere::Nothing)),
        [("unknown-pool", 0, 3)]
    );
    let known = Pool { name: "gpu".into(), slots: 9, lease: None, origin: Default::default() };
    assert!(parse_with(&[("a.yaml", flow.as_bytes())], Elsewhere::Pools(&[known])).is_ok());
}

#[test]
fn workers_may_have_functions_and_nothing_else() {
    let read = |text: &str, elsewhere| parse_with(&[("a.yaml", text.as_bytes())], elsewhere).map(drop);
    let known = "flow: demo\nsteps: { one: { action: far } }\n---\naction: far\n";
    assert!(read(known, Elsewhere::Workers).is_ok() && read(known, Elsewhere::Nothing).is_err());
    for unknown in ["action: far", "flow: far", "run: [ls], pools: { far: 1 }"] {
        let text = format!("flow: demo\nsteps: {{ one: {{ {unknown} }} }}\n");
        assert!(read(&text, Elsewhere::Workers).is_err(), "{unknown}");
    }
}

#[test]
fn aliases_stand_for_what_they_name() {
    let document = good(
        "flow: demo\nsteps:\n  one:\n    run: [echo]\n    retry: &often { attempts: 9 }\n  two:\n    run: [echo]\n    retry: *often\n",
    );
    assert_eq!(document.flows[0].steps[1].attempts(), 9);
}

#[test]
fn a_byte_order_mark_and_windows_lines_are_fine() {
    let document = good("\u{feff}flow: demo\r\nsteps:\r\n  one: { run: [echo] }\r\n");
    assert_eq!(document.flows[0].steps[0].line, 3);
}
