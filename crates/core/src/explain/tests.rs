//! The words for what scenarios do not wait for.

use super::render::describe;
use super::{Reason, render};
use crate::admission::LimitKey;
use crate::ids::{NodeId, TaskId};
use crate::model::{
    Each, LimitsDocument, MatchRule, OnFailure, Origin, QuotaPolicy, QuotaWindow, RatePolicy, Requirement,
    Step, TagLimit, WhenExhausted, Work,
};
use crate::protocol::{Command, Evaluation, LimitValue, Outcome, Pausable, Payload, SetLimit, Submit};
use crate::testkit::{Kit, action, doing, flow, limits, looping, pool, rendered, run, step, template};
use crate::time::Span;

fn says(kit: &Kit, node: NodeId) -> String {
    let explanation = kit.core.explain(TaskId::node(node), kit.now).expect("it is open");
    render(&explanation)
}

#[test]
fn every_limit_has_a_name_that_people_use() {
    let (name, key) = (|| "x".into(), || Some("k".into()));
    let gpu = Requirement { labels: vec!["gpu".into()], ..Requirement::process() };
    let cases = [
        (LimitKey::Runs, "runs at once", "runs"),
        (LimitKey::Tag { tag: name(), value: "k".into() }, "runs with x=k", "tag:x=k"),
        (LimitKey::Flow { flow: name(), key: None }, "runs of x", "flow:x"),
        (LimitKey::Flow { flow: name(), key: key() }, "runs of x for k", "flow:x/k"),
        (LimitKey::Steps(NodeId(1)), "steps of the run", "run:1"),
        (LimitKey::Window(NodeId(1)), "window of the loop", "window:1"),
        (LimitKey::ActionKey { action: name(), key: "k".into() }, "action x for k", "action:x/k"),
        (LimitKey::Action(name()), "action x", "action:x"),
        (LimitKey::Total(name()), "total of x", "total:x"),
        (pool("x"), "pool x", "pool:x"),
        (LimitKey::Quota { of: name(), key: key() }, "quota of x", "quota:x/k"),
        (LimitKey::Rate { of: name(), key: None }, "rate of x", "rate:x"),
        (LimitKey::Slot(gpu), "workers", "workers:default+gpu"),
    ];
    for (key, said, written) in cases {
        assert_eq!((describe(&key).as_str(), key.to_string().as_str()), (said, written));
    }
}

#[test]
fn what_is_not_open_is_not_explained() {
    let mut kit = Kit::new(1);
    kit.declare(vec![flow("one", vec![step("a"), step("b")])], Vec::new(), None);
    let run = kit.run("one");
    kit.answer_step(run, 0, Evaluation::Skipped);
    let each = TaskId::item(run.step(1), 0);
    for task in [TaskId::node(NodeId(99)), TaskId::node(run.step(0)), TaskId::node(run.step(7))] {
        assert_eq!(kit.core.explain(task, kit.now), None, "{task:?}");
    }
    kit.answer_step(run, 1, Evaluation::Order(rendered(None)));
    assert_eq!(kit.core.explain(each, kit.now), None, "a plain step has no items");
}

#[test]
fn limits_say_where_they_were_written_down() {
    let origin = |line| Origin { file: Some("limits.yaml".into()), line };
    let when_busy = WhenExhausted::Wait;
    let rate = RatePolicy { limit: 1, per: Span::minutes(1), burst: 1, when_busy };
    let quota = QuotaPolicy { limit: 1, window: QuotaWindow::Day, zone: "UTC".into(), when_busy };
    let bounds = Each { concurrency: Some(1), rate: Some(rate), quota: Some(quota), ..Each::default() };
    let rule = |pattern: &str, each: &Each, total: &Each, line| MatchRule {
        pattern: pattern.into(),
        each: each.clone(),
        total: total.clone(),
        origin: origin(line),
    };
    let none = Each::default();
    let document = LimitsDocument {
        runs: Some(1),
        runs_origin: origin(1),
        tags: vec![TagLimit { tag: "env".into(), value: None, limit: 1, origin: origin(2) }],
        actions: vec![rule("w*", &none, &bounds, 3), rule("*", &bounds, &none, 4)],
        ..limits(&[("db", 1)])
    };
    let mut kit = Kit::new(1);
    kit.declare(vec![flow("one", vec![step("a")])], Vec::new(), Some(document));
    let of = |of: &str| (of.into(), None);
    let (tag, value) = ("env".into(), "prod".into());
    let ((work, key), (pattern, _)) = (of("work"), of("w*"));
    let cases = [
        (LimitKey::Runs, 1),
        (LimitKey::Tag { tag, value }, 2),
        (LimitKey::Total("w*".into()), 3),
        (LimitKey::Rate { of: pattern, key: None }, 3),
        (LimitKey::Quota { of: work, key }, 4),
        (LimitKey::Action("other".into()), 4),
        (LimitKey::Flow { flow: "one".into(), key: None }, 1),
        (LimitKey::Slot(Requirement::process()), 0),
        (pool("nowhere"), 0),
    ];
    for (key, line) in cases {
        assert_eq!(kit.core.catalog.origin(&key).line, line, "{key}");
    }
    kit.job("work");
    let second = kit.job("work");
    let said = says(&kit, second);
    for part in ["action work ", "total of w*", "quota of work", "rate of w*", "workers"] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

#[test]
fn limits_of_one_run_or_loop_say_where_they_were_written_down() {
    let mut kit = Kit::new(9);
    let each = Step { line: 5, ..looping("each", Some(1), OnFailure::STOP) };
    let mut narrow = flow("narrow", vec![each, step("b")]);
    (narrow.parallel_steps, narrow.parallel_line) = (Some(1), Some(3));
    kit.declare(vec![narrow], Vec::new(), None);
    let run = kit.run("narrow");
    let each = kit.answer_loop(run, 0, 2);
    kit.answer_step(run, 1, Evaluation::Order(rendered(None)));
    let second = kit.core.explain(TaskId::item(each, 1), kit.now).expect("it is open");
    assert!(render(&second).contains("declared at flows.yaml:5"), "{}", render(&second));
    let other = says(&kit, run.step(1));
    assert!(other.contains("declared at flows.yaml:3"), "{other}");
}

#[test]
fn an_override_says_who_set_what_and_for_how_long() {
    let mut kit = Kit::new(9);
    let when_busy = WhenExhausted::Wait;
    let rate = RatePolicy { limit: 1, per: Span::minutes(1), burst: 1, when_busy };
    let quota = QuotaPolicy { limit: 1, window: QuotaWindow::Day, zone: "UTC".into(), when_busy };
    let values = [
        (LimitKey::Rate { of: "work".into(), key: None }, LimitValue::Rate(rate), "1 per 1m"),
        (LimitKey::Quota { of: "work".into(), key: None }, LimitValue::Quota(quota), "1"),
        (LimitKey::Action("work".into()), LimitValue::Units(1), "1"),
    ];
    for (key, value, said) in values {
        let until = Some(kit.now + Span::hours(1));
        let set = SetLimit { key: key.clone(), value: Some(value), by: "ada".into(), until };
        kit.apply(Command::SetLimit(set));
        let first = kit.job("work");
        let waits = kit.job("work");
        let text = says(&kit, waits);
        assert!(text.contains(&format!("      {said} set by ada 0s ago, for another 1h")), "{text}");
        kit.apply(Command::Cancel(TaskId::node(waits)));
        kit.succeed(TaskId::node(first));
        kit.set(key, None);
    }
}

#[test]
fn what_a_step_is_busy_with_is_said() {
    let mut kit = Kit::new(1);
    let sub = doing("sub", Work::Flow { flow: "inner".into(), inputs: template() });
    let wait = doing("wait", Work::Wait(template()));
    let steps = vec![sub, wait, looping("each", Some(1), OnFailure::STOP)];
    kit.declare(vec![flow("inner", vec![step("a")]), flow("outer", steps)], Vec::new(), None);
    let run = kit.run("outer");
    kit.answer_step(run, 0, Evaluation::SubFlow { inputs: Payload::new("{}") });
    kit.answer_step(run, 1, Evaluation::Until(kit.now + Span::minutes(5)));
    let each = kit.answer_loop(run, 2, 3);
    kit.now = kit.now + Span::seconds(2);
    let inside = "has been running 2s: a flow runs inside it\n  a                  is about to ask";
    assert!(says(&kit, run.step(0)).ends_with(inside));
    assert!(says(&kit, run.step(1)).ends_with("starts in 4m 58s"));
    assert!(says(&kit, each).ends_with("has been running 2s: 0 of 3 items done, 1 running"));
    let inner = NodeId(run.0 + 4);
    assert_eq!(kit.core.root_id(inner.step(0)), None, "it is not a task yet");
    assert_eq!(kit.core.root_id(inner), kit.core.root_id(run));
    assert!(says(&kit, inner.step(0)).contains("/sub/a is about to ask"));
    assert!(kit.core.describe_open(kit.now).starts_with("5 open: run_"));
    kit.apply(Command::Pause(Pausable::Node(run)));
    let item = kit.core.explain(TaskId::item(each, 2), kit.now).expect("it waits");
    assert_eq!(item.reason, Reason::Paused);
}

#[test]
fn estimates_follow_from_what_was_measured() {
    let mut kit = Kit::new(9);
    kit.declare(Vec::new(), vec![action("work", Some(2), &[])], None);
    for seconds in [1, 2, 3, 10] {
        let job = kit.job("work");
        kit.advance(Span::seconds(seconds));
        kit.heartbeat("w", 1, vec![kit.lease(TaskId::node(job))]);
        kit.succeed(TaskId::node(job));
    }
    let jobs: Vec<NodeId> = (0..6).map(|_| kit.job("work")).collect();
    let estimate = |node| kit.core.explain(TaskId::node(node), kit.now).and_then(|it| it.estimate);
    let likely = |node| estimate(node).map(|estimate| (estimate.likely, estimate.unlikely));
    assert_eq!(likely(jobs[0]), None, "it runs");
    assert_eq!(likely(jobs[2]), Some((Span::seconds(2), Span::seconds(3))));
    assert_eq!(likely(jobs[5]), Some((Span::seconds(4), Span::seconds(6))), "two rounds of two");
    assert!(says(&kit, jobs[5]).contains("expected to start in about 4s (p90 6s)"));
}

#[test]
fn only_what_went_well_says_how_long_such_work_takes() {
    let mut kit = Kit::new(9);
    kit.declare(Vec::new(), vec![action("work", Some(1), &[])], None);
    for _ in 0..4 {
        let job = kit.job("work");
        kit.advance(Span::seconds(1));
        let lease = kit.lease(TaskId::node(job));
        kit.finish(lease, Outcome::failed("boom"));
    }
    kit.job("work");
    let waits = kit.job("work");
    let estimate = kit.core.explain(TaskId::node(waits), kit.now).and_then(|it| it.estimate);
    assert_eq!(estimate, None);
}

#[test]
fn what_runs_inside_carries_the_tags_of_its_root() {
    let mut kit = Kit::new(0);
    let sub = doing("sub", Work::Flow { flow: "inner".into(), inputs: template() });
    kit.declare(vec![flow("inner", vec![step("a")]), flow("outer", vec![sub])], Vec::new(), None);
    let tags = vec![("env".into(), "prod".into())];
    let tagged = Submit { tags: tags.clone(), ..kit.submit(run("outer")) };
    let outer = kit.accepted(tagged);
    kit.answer_step(outer, 0, Evaluation::SubFlow { inputs: Payload::new("{}") });
    let inner = NodeId(outer.0 + 2);
    kit.answer_step(inner, 0, Evaluation::Order(rendered(None)));
    let explained = kit.core.explain(TaskId::node(inner.step(0)), kit.now).expect("it waits");
    assert_eq!(explained.tags, tags);
}
