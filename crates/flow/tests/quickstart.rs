//! The example loads, and carried out one process after the other it does what its comments say.

use serde_json::{Value, json};
use std::process::Command;
use tidegate_core::model::{Flow, Order, Text};
use tidegate_core::protocol::{Evaluation, Rendered};
use tidegate_flow::evaluate::{Scope, StepResult, evaluate_items, evaluate_outputs, evaluate_step};
use tidegate_flow::{Document, parse, submit};

fn quickstart() -> Document {
    let text = include_str!("../../../examples/quickstart.yaml");
    parse("quickstart.yaml", text).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

#[test]
fn the_quickstart_loads() {
    let document = quickstart();
    let flow = &document.flows[0];
    assert_eq!(flow.steps.len(), 6);
    assert_eq!(flow.steps[1].each.as_ref().and_then(|each| each.window), Some(3));
    assert_eq!(document.limits.map(|limits| limits.pools[0].slots), Some(2));
    let demands: Vec<u32> = flow.steps.iter().flat_map(|step| &step.pools).map(|(_, units)| *units).collect();
    assert_eq!(demands, [2, 1], "together they want more than there is");
}

/// What a worker reports about a process.
fn carry_out(rendered: &Rendered, attempt: u32) -> Value {
    let order = serde_json::from_slice(rendered.order.bytes()).unwrap();
    let Order::Run { argv, surroundings } = order else { panic!("{order:?}") };
    let env = surroundings.env.into_iter().map(|(name, text)| match text {
        Text::Plain(text) => (name, text),
        Text::Secret { secret } => panic!("{secret}"),
    });
    let output = Command::new(&argv[0])
        .args(&argv[1..])
        .envs(env)
        .env("TIDEGATE_RUN", "run_1")
        .env("TIDEGATE_ATTEMPT", attempt.to_string())
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let mut result = json!({ "exit_code": output.status.code(), "stdout": stdout, "stderr": "" });
    if let Ok(value) = serde_json::from_str::<Value>(&stdout) {
        result["json"] = value;
    }
    result
}

fn step(flow: &Flow, index: usize, scope: &Scope) -> Value {
    match evaluate_step(flow, index, scope) {
        Evaluation::Order(rendered) => {
            let tries = (1..=flow.steps[index].attempts()).map(|attempt| carry_out(&rendered, attempt));
            tries.into_iter().find(|output| output["exit_code"] == 0).expect("a try that succeeds")
        }
        Evaluation::List { items, .. } => {
            let items: Vec<Value> = serde_json::from_slice(items.bytes()).unwrap();
            let Evaluation::Items(orders) = evaluate_items(flow, index, scope, 0, &items) else { panic!() };
            let orders: Vec<_> = orders.into_iter().map(Result::unwrap).collect();
            let results: Vec<Value> = orders
                .iter()
                .map(|order| json!({ "state": "succeeded", "output": carry_out(order, 1), "attempts": 1 }))
                .collect();
            json!({ "done": results.len(), "failed": 0, "items": results })
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_quickstart_does_what_it_says() {
    let flow = quickstart().flows.remove(0);
    let given = submit::inputs_from_text(&flow.inputs, [("greeting", "Ahoy")]).unwrap();
    let inputs = submit::submission(&flow, given).unwrap().inputs;
    let mut scope = Scope { inputs, run: "run_1".to_owned(), ..Scope::default() };
    for index in 0..flow.steps.len() {
        let output = step(&flow, index, &scope);
        let result = StepResult { state: "succeeded".to_owned(), output, error: None };
        scope.steps.insert(flow.steps[index].name.to_string(), result);
    }
    let Evaluation::Outputs(outputs) = evaluate_outputs(&flow, &scope) else { panic!() };
    let outputs: Value = serde_json::from_slice(outputs.bytes()).unwrap();
    let summary = "6 greetings, the first: Ahoy, ada (number 1)\n3 batches loaded, 3 rows indexed\n";
    assert_eq!(outputs, json!({ "greetings": 6, "summary": summary }));
    let flaky = carry_out(
        &match evaluate_step(&flow, 4, &scope) {
            Evaluation::Order(rendered) => rendered,
            other => panic!("{other:?}"),
        },
        1,
    );
    assert_eq!(flaky["exit_code"], 1, "the first try fails");
}
