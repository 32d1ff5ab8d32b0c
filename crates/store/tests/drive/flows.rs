//! Small flows that between them have every kind of step, and limits narrow enough to be felt.

use tidegate_core::ids::Name;
use tidegate_core::model::{
    Action, ActionPolicy, Backoff, Cause, Each, Flow, LimitsDocument, Loop, MatchRule, OnFailure, Origin,
    Pool, QuotaPolicy, QuotaWindow, RatePolicy, Requirement, Retry, Rule, Step, TagLimit, Template, WhenBusy,
    WhenExhausted, Work,
};
use tidegate_core::protocol::Declare;
use tidegate_core::time::Span;

pub fn actions() -> Vec<Name> {
    ["work.fast", "work.paced", "work.alone", "other"].map(Name::new).to_vec()
}

pub fn declare() -> Declare {
    Declare { flows: flows(), actions: functions(policies()), limits: Some(limits(3)), files: Vec::new() }
}

/// The same flows, with another word about how much may run.
pub fn declare_otherwise(how: u32) -> Declare {
    let mut policies = policies();
    policies[0].each.concurrency = Some(1 + how % 4);
    Declare { actions: functions(policies), limits: Some(limits(1 + how % 5)), ..Declare::default() }
}

fn functions(policies: Vec<ActionPolicy>) -> Vec<Action> {
    policies.into_iter().map(Action::function).collect()
}

fn policies() -> Vec<ActionPolicy> {
    let silent = |name: &str| ActionPolicy::silent(name.into());
    let retry = Retry {
        attempts: 2,
        backoff: Backoff::Constant,
        delay: Span::seconds(5),
        max_delay: Span::seconds(5),
        jitter: true,
        on: vec![Cause("timeout".into()), Cause("exit".into())],
    };
    let rate = RatePolicy { limit: 2, per: Span::seconds(10), burst: 2, when_busy: WhenExhausted::Wait };
    let zone = Name::new("Europe/Berlin");
    let quota = QuotaPolicy { limit: 6, window: QuotaWindow::Hour, zone, when_busy: WhenExhausted::Wait };
    let fast = Each { concurrency: Some(3), ..Each::default() };
    let paced = Each { rate: Some(rate), quota: Some(quota), ..Each::default() };
    let alone = Each { concurrency: Some(1), ..Each::default() };
    vec![
        ActionPolicy { each: fast, retry, max_losses: 1, ..silent("work.fast") },
        ActionPolicy { each: paced, pools: vec![("gpu".into(), 1)], ..silent("work.paced") },
        ActionPolicy { each: alone, when_busy: WhenBusy::Replace, ..silent("work.alone") },
    ]
}

fn limits(runs: u32) -> LimitsDocument {
    let total = Each { concurrency: Some(5), ..Each::default() };
    let tag = TagLimit { tag: "team".into(), value: None, limit: 2, origin: Origin::default() };
    let rule =
        MatchRule { pattern: "work.*".into(), each: Each::default(), total, origin: Origin::default() };
    let pool = Pool { name: "gpu".into(), slots: 2, lease: None, origin: Origin::default() };
    LimitsDocument {
        runs: Some(runs),
        runs_origin: Origin::default(),
        tags: vec![tag],
        actions: vec![rule],
        pools: vec![pool],
    }
}

pub fn flows() -> Vec<Flow> {
    let each = |window, on_failure| Some(Loop { items: template(), window, on_failure, window_line: None });
    let run = || Work::Order(template());
    let inner = Work::Flow { flow: "plain".into(), inputs: template() };
    let looped =
        |window, on_failure| Step { each: each(window, on_failure), ..step("all", action("work.fast")) };
    let plain = vec![step("a", action("work.fast")), Step { after: vec![0], ..step("b", run()) }];
    let narrow = vec![
        Step { start_within: Some(Span::seconds(30)), ..step("a", action("work.paced")) },
        step("b", run()),
        looped(Some(2), OnFailure::Tolerate(1)),
        step("pause", Work::Wait(template())),
    ];
    let outer = vec![
        step("inside", inner.clone()),
        Step { after: vec![0], rule: Rule::States { when: template() }, ..step("rescue", run()) },
        Step { after: vec![0], ..looped(None, OnFailure::Continue) },
        Step { each: each(Some(2), OnFailure::Tolerate(1)), ..step("each", inner) },
    ];
    vec![
        flow("plain", plain),
        Flow { parallel_steps: Some(2), timeout: Some(Span::minutes(2)), ..flow("narrow", narrow) },
        Flow { outputs: Some(template()), fail_fast: false, ..flow("outer", outer) },
        Flow { concurrency: Some(1), ..flow("empty", Vec::new()) },
    ]
}

fn template() -> Template {
    Template("{}".into())
}

fn action(name: &str) -> Work {
    Work::Action { action: name.into(), inputs: template() }
}

fn step(name: &str, work: Work) -> Step {
    Step {
        name: name.into(),
        after: Vec::new(),
        rule: Rule::Success { when: None },
        work,
        each: None,
        pools: Vec::new(),
        needs: Requirement::process(),
        retry: None,
        max_losses: Some(1),
        timeout: Some(Span::seconds(60)),
        start_within: None,
        line: 1,
    }
}

fn flow(name: &str, steps: Vec<Step>) -> Flow {
    Flow {
        name: name.into(),
        description: None,
        inputs: Vec::new(),
        tags: Vec::new(),
        concurrency: None,
        key: None,
        when_busy: WhenBusy::Queue,
        parallel_steps: None,
        timeout: None,
        fail_fast: true,
        steps,
        outputs: None,
        file: "flows.yaml".into(),
        line: 1,
        parallel_line: None,
    }
}
