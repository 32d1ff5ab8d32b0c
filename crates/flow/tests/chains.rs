//! Chains: what stands in a file, what a worker is handed, and what it makes of that.

use serde_json::{Value, json};
use tidegate_core::model::{ActionWork, Flow, Order, SlotKind};
use tidegate_core::protocol::Evaluation;
use tidegate_core::time::Span;
use tidegate_flow::chain::{Chain, MemberWork, Scope};
use tidegate_flow::evaluate::{
    Extent, Needed, Part, Scope as RunScope, StepResult, evaluate_items, evaluate_job, evaluate_step,
    steps_needed,
};
use tidegate_flow::{Document, parse};

fn document(text: &str) -> Document {
    parse("demo.yaml", text).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

/// A flow whose last step, `it`, is this. There are steps before it, and inputs.
fn flow(step: &str) -> Flow {
    let inputs = "inputs: { api: { type: string }, big: { type: list, default: [] } }";
    let step = step.replace('\n', "\n    ");
    let text = format!(
        "flow: demo\n{inputs}\nsteps:\n  list: {{ run: [echo] }}\n  other: {{ run: [echo] }}\n  it:\n    after: [list, other]\n    {step}\n"
    );
    document(&text).flows.remove(0)
}

const PAGES: &str = "do:
  - name: pages
    repeat: { while: \"{{ page.output.body.more }}\", delay: 200ms, max: 50 }
    do:
      - { name: page, http: { url: \"{{ inputs.api }}/p/{{ repeat.index }}\", query: { of: \"{{ steps.list.output.json.id }}\" } } }
      - name: save
        when: \"{{ page.output.status == 200 }}\"
        run: [cat, \"{{ page.output.body.text }}\", \"{{ run.id }}\"]
        timeout: 5s
        retry: { attempts: 3, delay: 1s }
  - { name: done, wait: \"{{ pages.output.rounds }}\" }";

fn scope() -> RunScope {
    let output = |output| StepResult { state: "succeeded".into(), output, error: None };
    RunScope {
        inputs: json!({ "api": "http://a", "big": vec![0; 100] }),
        steps: [
            ("list".to_owned(), output(json!({ "json": { "id": 7, "more": [1, 2] }, "stdout": "long" }))),
            ("other".to_owned(), output(json!({ "stdout": "x" }))),
        ]
        .into(),
        run: "run_1".to_owned(),
        ..RunScope::default()
    }
}

fn order(flow: &Flow, scope: &RunScope) -> Value {
    match evaluate_step(flow, 2, scope) {
        Evaluation::Order(rendered) => serde_json::from_slice(rendered.order.bytes()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn chain(step: &str) -> Chain {
    serde_json::from_value(order(&flow(step), &scope())["do"].clone()).unwrap()
}

fn members(work: &MemberWork) -> &[std::sync::Arc<tidegate_flow::chain::Member>] {
    match work {
        MemberWork::Do(members) => members,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_order_holds_the_chain_and_what_its_templates_name() {
    let flow = flow(PAGES);
    let expected = json!({
        "inputs": { "api": "http://a" },
        "steps": { "list": { "output": { "json": { "id": 7 } } } },
        "run": { "id": "run_1" },
    });
    assert_eq!(order(&flow, &scope())["do"]["scope"], expected);
    assert_eq!(steps_needed(&flow, Part::Step(2)), [Needed { step: 0, extent: Extent::Output }]);
    let chain = chain(PAGES);
    let [pages, done] = members(&chain.root.work) else { panic!() };
    let repeat = pages.repeat.as_ref().unwrap();
    assert_eq!((repeat.delay, repeat.max), (Span::millis(200), 50));
    let [_, save] = members(&pages.work) else { panic!() };
    assert_eq!((save.timeout, save.retry.as_ref().unwrap().attempts), (Some(Span::seconds(5)), 3));
    assert_eq!(save.retry.as_ref().unwrap().max_delay, Span::minutes(1), "it pauses on the worker");
    assert_eq!(done.name.as_str(), "done");
}

#[test]
fn what_is_named_whole_comes_whole_and_what_is_missing_stays_so() {
    let argv = "[echo, \"{{ inputs }}\", \"{{ inputs.api }}\", \"{{ steps.list.output.json.more[0] }}\", \"{{ steps.list.output.json.none.x | default('-') }}\", \"{{ steps.other.state }}\"]";
    let chain = chain(&format!("do: [{{ name: a, run: {argv} }}]"));
    assert_eq!(chain.scope["inputs"], scope().inputs);
    let list = json!({ "output": { "json": { "more": [1, 2] } } });
    assert_eq!(chain.scope["steps"], json!({ "list": list, "other": { "state": "succeeded" } }));
    let failed = Scope::new(&chain.scope).order(&members(&chain.root.work)[0].work).unwrap_err();
    assert_eq!(failed, "`run[4]`: `steps.list.output.json.none` is undefined");
}

#[test]
fn a_chain_that_brings_too_much_is_refused() {
    let mut scope = scope();
    scope.inputs["big"] = json!(["x".repeat(1024 * 1024)]);
    let small = flow("do: [{ name: a, run: [echo, \"{{ inputs.api }}\"] }]");
    order(&small, &scope);
    let large = flow("do: [{ name: a, run: [echo, \"{{ inputs.big | length }}\"] }]");
    let Evaluation::Failed { error } = evaluate_step(&large, 2, &scope) else { panic!() };
    assert_eq!(error, "`inputs`: the value is larger than 1048576 bytes (demo.yaml:6)");
    scope.inputs["big"] = json!(["x".repeat(600 * 1024)]);
    scope.steps.get_mut("list").unwrap().output = json!({ "stdout": "x".repeat(600 * 1024) });
    let large =
        flow("do: [{ name: a, run: [echo, \"{{ inputs.big }}\", \"{{ steps.list.output.stdout }}\"] }]");
    let Evaluation::Failed { error } = evaluate_step(&large, 2, &scope) else { panic!() };
    assert_eq!(
        error,
        "the chain and everything that its templates refer to are larger than 1048576 bytes (demo.yaml:6)"
    );
}

#[test]
fn members_are_rendered_from_what_came_before_them() {
    let chain = chain(PAGES);
    let [pages, done] = members(&chain.root.work) else { panic!() };
    let [page, save] = members(&pages.work) else { panic!() };
    let mut scope = Scope::new(&chain.scope);
    scope.begins_round(3);
    let Ok(Some(Order::Http(request))) = scope.order(&page.work) else { panic!() };
    assert_eq!(request.url, "http://a/p/3");
    let more = json!({ "status": 200, "body": { "more": true, "text": "hello" } });
    scope.ended("page", "succeeded", &more);
    assert_eq!(scope.holds(save.when.as_ref().unwrap(), "when"), Ok(true));
    let Ok(Some(Order::Run { argv, .. })) = scope.order(&save.work) else { panic!() };
    assert_eq!(argv, ["cat", "hello", "run_1"]);
    assert_eq!(scope.holds(&pages.repeat.as_ref().unwrap().condition, "while"), Ok(true));
    scope.ended("page", "succeeded", &json!({ "body": { "more": 1 } }));
    let wrong = scope.holds(&pages.repeat.as_ref().unwrap().condition, "while").unwrap_err();
    assert_eq!(wrong, "`while` must be `true` or `false`, not an integer");
    let MemberWork::Wait(wait) = &done.work else { panic!() };
    for (rounds, pause) in [
        (json!(3), Ok(Span::seconds(3))),
        (json!("250ms"), Ok(Span::millis(250))),
        (json!("2m"), Err("`wait`: 2m is longer than the minute that a chain may pause".to_owned())),
        (json!("soon"), Err("`wait`: `soon` is not a duration".to_owned())),
        (json!(-1), Err("`wait`: `-1` is not a duration".to_owned())),
        (json!(null), Err("`wait` must be a duration, not nothing".to_owned())),
    ] {
        scope.ended("pages", "succeeded", &json!({ "rounds": rounds }));
        assert_eq!(scope.pause(wait), pause);
    }
}

#[test]
fn items_of_a_loop_are_chains_with_an_item() {
    let flow = flow(
        "with_items: [{ id: 5, more: x }]\ndo: [{ name: a, run: [echo, \"{{ item.id }}\", \"{{ index }}\"] }]",
    );
    let Evaluation::Items(items) = evaluate_items(&flow, 2, &scope(), 4, &[json!({ "id": 5, "more": "x" })])
    else {
        panic!()
    };
    let order: Value = serde_json::from_slice(items[0].as_ref().unwrap().order.bytes()).unwrap();
    assert_eq!(order["do"]["scope"], json!({ "item": { "id": 5 }, "index": 4 }));
}

#[test]
fn whatever_starts_a_process_takes_the_slot_of_one() {
    let slot = |step: &str| flow(step).steps[2].needs.slot();
    let http = "http: { url: \"http://a\" }";
    assert_eq!(slot(&format!("do: [{{ name: a, {http} }}]")), SlotKind::Io);
    assert_eq!(slot("do: [{ name: a, wait: 1s }]"), SlotKind::Io);
    assert_eq!(slot(&format!("do: [{{ name: a, {http} }}, {{ name: b, shell: ls }}]")), SlotKind::Process);
    assert_eq!(slot("do: [{ name: a, do: [{ name: b, run: [ls] }] }]"), SlotKind::Process);
    assert_eq!(
        slot(&format!("{http}\nrepeat: {{ while: \"{{{{ it.output.body.more }}}}\" }}")),
        SlotKind::Io
    );
}

#[test]
fn what_is_repeated_by_itself_is_seen_by_its_name() {
    let chain =
        chain("run: [ls]\nrepeat: { while: \"{{ it.output.exit_code == 0 and repeat.index < 3 }}\" }");
    let repeat = chain.root.repeat.as_ref().unwrap();
    assert_eq!((chain.root.name.as_str(), repeat.delay, repeat.max), ("it", Span::ZERO, 1_000));
    assert!(matches!(chain.root.work, MemberWork::Run(_)));
    assert_eq!(chain.scope, json!({}));
}

#[test]
fn an_action_can_be_a_chain_over_its_inputs() {
    let text = "action: files.copy\ninputs: { from: { type: string }, unused: { type: any } }
do:
  - { name: get, http: { url: \"{{ inputs.from }}\", auth: { bearer: { secret: \"env:TOKEN\" } } } }
  - { name: put, run: [tee, \"{{ get.output.body }}\"] }
";
    let action = document(text).actions.remove(0);
    assert!(matches!(action.work, ActionWork::Order(_)));
    assert_eq!(action.policy.needs.slot(), SlotKind::Process);
    let rendered = evaluate_job(&action, json!({ "from": "http://a", "unused": [1] })).unwrap();
    let order: Value = serde_json::from_slice(rendered.order.bytes()).unwrap();
    assert_eq!(order["do"]["scope"], json!({ "inputs": { "from": "http://a" } }));
    let secret = &order["do"]["root"]["work"]["do"][0]["work"]["http"]["auth"]["bearer"];
    assert_eq!(*secret, json!({ "secret": "env:TOKEN" }), "it stays a reference");
}
