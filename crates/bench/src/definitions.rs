//! The actions, pools and flows of the scenarios. Flows are written as people write them.

use tidegate_core::ids::Name;
use tidegate_core::model::{
    Action, ActionPolicy, Each, Flow, Input, InputType, LimitsDocument, Line, Origin, Pool,
};
use tidegate_core::protocol::{Payload, Submission};
use tidegate_worker::order;

/// A function with a line that is never full, and perhaps a limit.
pub fn action(name: &str, concurrency: Option<u32>, pools: &[(&str, u32)]) -> Action {
    let line = Line { max_length: u32::MAX, start_within: None, ..Line::default() };
    let policy = ActionPolicy {
        each: Each { concurrency, ..Each::default() },
        line,
        pools: pools.iter().map(|(pool, units)| (Name::new(pool), *units)).collect(),
        ..ActionPolicy::silent(name.into())
    };
    let number = Input {
        name: "number".into(),
        kind: InputType::Any,
        required: false,
        default: None,
        description: None,
    };
    Action { inputs: vec![number], ..Action::function(policy) }
}

pub fn pool(name: &str, slots: u32) -> LimitsDocument {
    let pool = Pool { name: name.into(), slots, lease: None, origin: Origin::default() };
    LimitsDocument { pools: vec![pool], ..LimitsDocument::default() }
}

/// The job of that number.
pub fn job(action: &Name, number: u64) -> Submission {
    let order = order::call(action, &Payload::new(number.to_string()));
    Submission::Job { action: action.clone(), key: None, order }
}

/// One step after the other.
pub fn chain(name: &str, action: &str, steps: u32) -> Flow {
    read(chain_text(name, action, steps))
}

/// The file of [`chain`].
pub fn chain_text(name: &str, action: &str, steps: u32) -> String {
    let step = |index| format!("action: {action}, inputs: {{ number: {index} }}");
    text(name, "", &steps_in_turn(steps, &step))
}

/// As [`chain`], of processes that do nothing.
pub fn chain_of_processes(name: &str, steps: u32) -> Flow {
    read(text(name, "", &steps_in_turn(steps, &|_| "run: [\"true\"]".to_owned())))
}

fn steps_in_turn(steps: u32, work: &dyn Fn(u32) -> String) -> String {
    let step = |index| match index {
        1 => format!("  s1: {{ {} }}\n", work(1)),
        _ => format!("  s{index}: {{ after: [s{}], {} }}\n", index - 1, work(index)),
    };
    (1..=steps).map(step).collect()
}

/// Steps that wait for nothing but what their action needs. They are given nothing: 10,000 just fit into a file.
pub fn storm(name: &str, action: &str, steps: u32) -> Flow {
    let steps: String = (0..steps).map(|index| format!("  s{index}: {{action: {action}}}\n")).collect();
    read(text(name, "", &steps))
}

/// One loop over the input `list`.
pub fn window(name: &str, action: &str, window: u32) -> Flow {
    looping(name, action, window, "{{ item }}")
}

/// The same, where each item is given so many bytes before its number.
pub fn wide_window(name: &str, action: &str, window: u32, width: usize) -> Flow {
    looping(name, action, window, &format!("{} {{{{ item }}}}", "x".repeat(width)))
}

fn looping(name: &str, action: &str, window: u32, number: &str) -> Flow {
    let inputs = "inputs: { list: { type: list } }\n";
    let step = format!(
        "  each:\n    with_items: '{{{{ inputs.list }}}}'\n    concurrency: {window}\n    action: {action}\n    inputs: {{ number: '{number}' }}\n"
    );
    read(text(name, inputs, &step))
}

fn text(name: &str, inputs: &str, steps: &str) -> String {
    format!("flow: {name}\n{inputs}steps:\n{steps}")
}

/// A flow as people write it.
pub fn read(text: String) -> Flow {
    let read = tidegate_flow::parse("bench.yaml", text).map(|mut document| document.flows.remove(0));
    read.unwrap_or_else(|errors| panic!("{errors}"))
}
