//! Every limit that a file declares is known by the line on which it stands there.

use tidegate_core::Core;
use tidegate_core::ids::Name;
use tidegate_core::protocol::{Command, Declare};
use tidegate_core::time::Moment;
use tidegate_flow::parse;

/// Each limit has a mark behind it: what [`LimitKey`](tidegate_core::admission::LimitKey) calls it.
const FILE: &str = r#"
flow: demo
tags: { env: prod, tenant: acme }
concurrency: 4                      # flow:demo
parallel_steps: 9                   # run:0
steps:
  charge:
    with_items: [1, 2]
    action: billing.charge
    pools: { web: 1 }
    concurrency: 3                  # window:0
---
action: billing.charge
worker: true
rate:                               # rate:billing.charge
  limit: 5/1s
quota: 6/1d                         # quota:billing.charge
---
limits:
  runs: 7                           # runs
  tags:
    - { tag: env=prod, limit: 8 }   # tag:env=prod
    - tag: tenant                   # tag:tenant=acme
      per_value: 9
  actions:
    - match: "billing.*"
      each:
        rate: 1/1s
        concurrency: 2              # action:billing.charge
      total:
        concurrency: 2              # total:billing.*
        rate: 50/1s                 # rate:billing.*
        quota: 70/1h                # quota:billing.*
pools:
  web:                              # pool:web
    slots: 4
"#;

#[test]
fn every_limit_of_a_file_is_known_by_its_line() {
    let document = parse("demo.yaml", FILE).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    let mut core = Core::new(1);
    let declare = Declare {
        flows: document.flows,
        actions: document.actions,
        limits: document.limits,
        files: vec!["demo.yaml".into()],
    };
    core.apply(Command::Declare(declare), Moment(0));

    let (flow, tags) = (Name::new("demo"), [("env", "prod"), ("tenant", "acme")]);
    let tags = tags.map(|(tag, value)| (tag.into(), value.into()));
    let demands = core.demands_of_run(&flow, None, &tags).into_iter().chain(core.demands_of_step(&flow, 0));
    let declared = demands.filter(|demand| demand.origin.file.is_some());
    let mut found: Vec<(u32, String)> =
        declared.map(|demand| (demand.origin.line, demand.limit.to_string())).collect();
    found.sort();

    let marked = (1..).zip(FILE.lines()).filter_map(|(line, text)| Some((line, text.split_once("# ")?.1)));
    let marked: Vec<(u32, String)> = marked.map(|(line, mark)| (line, mark.to_owned())).collect();
    assert_eq!(found, marked);
}
