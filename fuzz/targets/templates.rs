//! Any text as a template: whatever it makes of its variables is bounded, and the same every time.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use tidegate_core::protocol::{Evaluation, Payload};
use tidegate_flow::evaluate::{Scope, StepResult, evaluate_step, list_place};

/// No order, and so nothing that a template makes for one, is larger. Some is added around it.
const LARGEST: usize = 3 * 1024 * 1024;

const OUTPUT: &str =
    r#"{"json": [{"id": 7, "name": "é\u0000"}, null, [1, 2.5, true]], "text": "some", "deep": {"rows": []}}"#;

fn scope() -> Scope {
    let output: Value = serde_json::from_str(OUTPUT).expect("it is JSON");
    let first = StepResult { state: "succeeded".into(), output, error: Some("a reason".into()) };
    Scope {
        inputs: json!({ "a": [1, "two", 3.5], "b": { "c": -1 } }),
        steps: [("first".to_owned(), first)].into(),
        run: "run_1".into(),
        ..Scope::default()
    }
}

fn flow(work: &str) -> Option<tidegate_core::model::Flow> {
    let text = format!(
        "flow: f\ninputs: {{ a: {{ type: any }}, b: {{ type: any }} }}\nsteps:\n  first: {{ run: [x] }}\n  it:\n    after: [first]\n    {work}\n"
    );
    tidegate_flow::parse("f.yaml", text).ok()?.flows.pop()
}

fuzz_target!(|text: &str| {
    let quoted = serde_json::to_string(text).expect("text is JSON");
    if let Some(flow) = flow(&format!("run: [echo, {quoted}]")) {
        let answer = evaluate_step(&flow, 1, &scope());
        if let Evaluation::Order(rendered) = &answer {
            assert!(rendered.order.bytes().len() <= LARGEST, "an order has an end");
        }
        assert_eq!(answer, evaluate_step(&flow, 1, &scope()), "the same question has the same answer");
    }
    if let Some(flow) = flow(&format!("with_items: {quoted}\n    run: [x]")) {
        let made = evaluate_step(&flow, 1, &scope());
        let inputs = Payload::new(scope().inputs.to_string());
        let taken = list_place(&flow, 1).and_then(|place| match place.within {
            tidegate_flow::evaluate::Within::Inputs => place.read(&inputs),
            tidegate_flow::evaluate::Within::Output(_) => place.read(&Payload::new(OUTPUT)),
        });
        if let Some(Evaluation::List { items, count }) = taken {
            let Evaluation::List { items: others, count: number } = made else { panic!("{made:?}") };
            let read = |payload: &Payload| serde_json::from_slice::<Value>(payload.bytes()).expect("a list");
            assert_eq!((read(&items), count), (read(&others), number), "both ways lead to one list");
        }
    }
});
