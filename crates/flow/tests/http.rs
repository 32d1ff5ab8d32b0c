//! Requests: what stands in a file, what a worker is handed, and that nothing in between can become something else.

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_core::model::{ActionWork, Flow, Order, Request, Runner, SlotKind};
use tidegate_core::protocol::Evaluation;
use tidegate_flow::evaluate::{Scope, evaluate_job, evaluate_step};
use tidegate_flow::parse;

/// A flow whose only step is this request.
fn flow(http: &str) -> Flow {
    let text =
        format!("flow: demo\ninputs:\n  v: {{ type: any }}\nsteps:\n  ask:\n    http:\n      {http}\n");
    let mut document = parse("demo.yaml", text).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    document.flows.remove(0)
}

fn evaluate(http: &str, value: Value) -> Evaluation {
    evaluate_step(&flow(http), 0, &Scope { inputs: json!({ "v": value }), ..Scope::default() })
}

fn order(http: &str, value: Value) -> Value {
    match evaluate(http, value) {
        Evaluation::Order(rendered) => serde_json::from_slice(rendered.order.bytes()).unwrap(),
        other => panic!("{http}: {other:?}"),
    }
}

#[test]
fn what_is_not_said_has_a_default() {
    let plain = json!({ "method": "GET", "url": "https://example.org", "redirects": 5, "max_size": 1048576 });
    assert_eq!(order("url: https://example.org", json!(null)), json!({ "http": plain }));
    for content in ["json: null", "form: {}", "body: ''"] {
        let order = order(&format!("{{ url: https://example.org, {content} }}"), json!(null));
        assert_eq!(order["http"]["method"], "POST", "{content}");
    }
}

#[test]
fn a_request_keeps_everything_it_says() {
    let text = r#"{ url: "https://{{ inputs.v }}/x", method: PUT, query: { page: 7, gone: "{{ none }}" },
        headers: { X-Token: { secret: "env:TOKEN" }, Accept: "text/{{ inputs.v }}" },
        auth: { basic: { user: me, password: { secret: "file:/run/password" } } },
        json: { list: ["{{ inputs.v }}", 1], secret: "no reference" },
        redirects: 0, max_size: 2KiB, ok: [404, 3xx] }"#;
    let expected = json!({
        "method": "PUT",
        "url": "https://h/x",
        "query": { "page": "7" },
        "headers": { "accept": "text/h", "x-token": { "secret": "env:TOKEN" } },
        "auth": { "basic": { "user": "me", "password": { "secret": "file:/run/password" } } },
        "content": { "json": r#"{"list":["h",1],"secret":"no reference"}"# },
        "redirects": 0,
        "max_size": 2048,
        "ok": ["status:404", "status:3xx"],
    });
    let order = order(text, json!("h"));
    assert_eq!(order, json!({ "http": expected }));
    assert!(matches!(serde_json::from_value(order).unwrap(), Order::Http(_)), "a worker reads it");
}

#[test]
fn requests_of_steps_and_actions_take_io_slots() {
    let step = &flow("url: https://example.org").steps[0];
    assert_eq!((&step.needs.runner, step.needs.slot()), (&Runner::Io, SlotKind::Io));
    let text = "action: ask\ninputs: { id: { type: integer } }\nhttp: { url: \"https://h/{{ inputs.id }}\", form: { a: b } }\n";
    let action = parse("demo.yaml", text).unwrap().actions.remove(0);
    assert_eq!(action.policy.needs.runner, Runner::Io);
    assert!(matches!(action.work, ActionWork::Order(_)));
    let rendered = evaluate_job(&action, json!({ "id": 7 })).unwrap();
    let order: Value = serde_json::from_slice(rendered.order.bytes()).unwrap();
    assert_eq!(order["http"]["url"], "https://h/7");
    assert_eq!(order["http"]["content"], json!({ "form": { "a": "b" } }));
}

#[test]
fn what_cannot_be_rendered_names_its_field() {
    for (text, error) in [
        (r#"url: "{{ inputs.v.x }}""#, "`url`"),
        (r#"{ url: https://h, headers: { a: "{{ inputs.v.x }}" } }"#, "`headers.a`"),
        (r#"{ url: https://h, auth: { bearer: "{{ none }}" } }"#, "`auth.bearer`"),
    ] {
        match evaluate(text, json!(1)) {
            Evaluation::Failed { error: found } => assert!(found.contains(error), "{found}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn values_can_be_made_fit_for_a_path() {
    let order = order(r#"url: "https://h/{{ inputs.v | urlencode }}""#, json!("a b?c"));
    assert_eq!(order["http"]["url"], "https://h/a%20b%3Fc");
}

proptest! {
    /// No value becomes a reference to a secret, another parameter, or another field of the order.
    #[test]
    fn values_stay_values(value in any::<String>().prop_filter("text", |text| !text.contains('\0'))) {
        let text = r#"{ url: https://h, query: { a: "{{ inputs.v }}" }, headers: { b: "{{ inputs.v }}" },
            form: { c: "{{ inputs.v }}" } }"#;
        for value in [json!(value), json!({ "secret": "env:HOME" })] {
            let order = order(text, value.clone());
            let expected = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            prop_assert_eq!(&order["http"]["query"], &json!({ "a": expected }));
            prop_assert_eq!(&order["http"]["headers"], &json!({ "b": expected }));
            prop_assert_eq!(&order["http"]["content"], &json!({ "form": { "c": expected } }));
            let read: Request = serde_json::from_value(order["http"].clone()).unwrap();
            prop_assert_eq!(read.url, "https://h");
        }
    }
}
