//! Answers the core's questions as a server would: with the language's evaluator, over what the store has.

use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use tidegate_core::ids::TaskId;
use tidegate_core::protocol::{Evaluation, Payload, Question};
use tidegate_core::state::State;
use tidegate_core::time::Moment;
use tidegate_core::{Asked, Called};
use tidegate_flow::evaluate::{
    Callee, Part, Scope, StepResult, evaluate_items, evaluate_outputs, evaluate_step, steps_needed,
};
use tidegate_store::{MemoryStore, Reads};

pub fn evaluate(asked: &Asked, store: &mut MemoryStore, now: Moment) -> Evaluation {
    let step = asked.step.unwrap_or(0) as usize;
    match asked.question {
        Question::Step { .. } => {
            evaluate_step(&asked.flow, step, &scope(asked, Part::Step(step), store, now))
        }
        Question::Items { step: node, from, to } => {
            let list = json_of(store.payload(TaskId::node(node)).expect("memory answers"));
            let items = &list.as_array().expect("a list")[from as usize..to as usize];
            evaluate_items(&asked.flow, step, &scope(asked, Part::Items(step), store, now), from, items)
        }
        Question::Outputs { .. } => evaluate_outputs(&asked.flow, &scope(asked, Part::Outputs, store, now)),
    }
}

fn scope(asked: &Asked, part: Part, store: &mut MemoryStore, now: Moment) -> Scope {
    let mut steps = BTreeMap::new();
    for needed in steps_needed(&asked.flow, part) {
        let Some(state) = asked.ended.get(needed.step as usize).copied().flatten() else { continue };
        let name = asked.flow.steps[needed.step as usize].name.to_string();
        steps.insert(name, step_result(asked, needed.step, state, store));
    }
    Scope {
        inputs: json_of(store.payload(asked.inputs).expect("memory answers")),
        steps,
        run: asked.run_name.clone(),
        now,
        callee: match &asked.callee {
            Some(Called::Action(action)) => Callee::Action(action.clone()),
            Some(Called::Flow(flow)) => Callee::Flow(flow.clone()),
            None => Callee::Unknown,
        },
    }
}

fn step_result(asked: &Asked, step: u32, state: State, store: &mut MemoryStore) -> StepResult {
    let task = asked.step_task(step);
    let ended = store.ended(task).expect("memory answers");
    let error = ended.as_ref().and_then(|ended| ended.error.clone());
    let output = match &asked.flow.steps[step as usize].each {
        None => json_of(ended.and_then(|ended| ended.output)),
        Some(_) => loop_output(task, store),
    };
    StepResult { state: state.to_string(), output, error }
}

fn loop_output(task: TaskId, store: &mut MemoryStore) -> Json {
    let items = store.ended_items(task.node, 0, u32::MAX).expect("memory answers");
    let count = |state| items.iter().filter(|(_, ended)| ended.state == state).count();
    let (done, failed) = (count(State::Succeeded), count(State::Failed));
    let outputs = items.iter().map(|(_, ended)| {
        json!({ "state": ended.state.as_str(), "output": json_of(ended.output.clone()), "error": ended.error })
    });
    json!({ "items": outputs.collect::<Vec<_>>(), "done": done, "failed": failed })
}

fn json_of(payload: Option<Payload>) -> Json {
    payload.and_then(|payload| serde_json::from_slice(payload.bytes()).ok()).unwrap_or(Json::Null)
}
