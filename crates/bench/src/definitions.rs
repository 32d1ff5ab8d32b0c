//! The actions, pools and flows of the scenarios. Flows are written as people write them, as far as a file may be that long.

use std::sync::Arc;
use tidegate_core::ids::Name;
use tidegate_core::model::{
    Action, ActionPolicy, Each, Flow, Input, InputType, LimitsDocument, Line, Origin, Pool, Requirement,
    Rule, Step, Template, WhenBusy, Work,
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
    written(
        name,
        "",
        &steps_in_turn(steps, &|index| format!("action: {action}, inputs: {{ number: {index} }}")),
    )
}

/// As [`chain`], of processes that do nothing.
pub fn chain_of_processes(name: &str, steps: u32) -> Flow {
    written(name, "", &steps_in_turn(steps, &|_| "run: [\"true\"]".to_owned()))
}

fn steps_in_turn(steps: u32, work: &dyn Fn(u32) -> String) -> String {
    let step = |index| match index {
        1 => format!("  s1: {{ {} }}\n", work(1)),
        _ => format!("  s{index}: {{ after: [s{}], {} }}\n", index - 1, work(index)),
    };
    (1..=steps).map(step).collect()
}

/// Steps that wait for nothing but a pool, of which each needs one.
pub fn storm(name: &str, action: &str, steps: u32, pool: &str) -> Flow {
    let step = |index| Step { pools: vec![(Name::new(pool), 1)], ..step(action, index) };
    flow(name, (0..steps).map(step).collect())
}

/// One loop over the input `list`.
pub fn window(name: &str, action: &str, window: u32) -> Flow {
    let inputs = "inputs: { list: { type: list } }\n";
    let step = format!(
        "  each:\n    with_items: '{{{{ inputs.list }}}}'\n    concurrency: {window}\n    action: {action}\n    inputs: {{ number: '{{{{ item }}}}' }}\n"
    );
    written(name, inputs, &step)
}

/// As people write it.
fn written(name: &str, inputs: &str, steps: &str) -> Flow {
    let text = format!("flow: {name}\n{inputs}steps:\n{steps}");
    let read = tidegate_flow::parse("bench.yaml", text).map(|mut document| document.flows.remove(0));
    read.unwrap_or_else(|errors| panic!("{errors}"))
}

fn step(action: &str, index: u32) -> Step {
    let inputs = Template(Arc::from(format!(r#"{{"number":{}}}"#, index + 1)));
    Step {
        name: format!("step-{index}").into(),
        after: Vec::new(),
        rule: Rule::Success { when: None },
        work: Work::Action { action: action.into(), inputs },
        each: None,
        pools: Vec::new(),
        needs: Requirement::function(action.into()),
        retry: None,
        max_losses: None,
        timeout: None,
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
        fail_fast: false,
        steps,
        outputs: None,
        file: "bench".into(),
        line: 1,
        parallel_line: None,
    }
}
