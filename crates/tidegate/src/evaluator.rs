//! Answers the core's questions: loads what a template refers to, and lets the language render it.

mod loops;

use loops::{List, Loops, Progress};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use tidegate_core::ids::{Name, NodeId, TaskId};
use tidegate_core::model::{Action, ActionWork};
use tidegate_core::protocol::{Evaluation, Payload, Question, Rendered, Submission};
use tidegate_core::state::State;
use tidegate_core::time::Moment;
use tidegate_core::{Asked, Called};
use tidegate_engine::{Definition, Evaluate, Prepared};
use tidegate_flow::evaluate::{
    Callee, Items, Part, Scope, StepResult, evaluate_job, evaluate_outputs, evaluate_step, steps_needed,
};
use tidegate_flow::submit::submission;
use tidegate_store::{Ended, Reads, StoreError};
use tidegate_worker::order::call;

#[derive(Default)]
pub(crate) struct Evaluator {
    loops: Loops,
}

impl Evaluate for Evaluator {
    fn evaluate(&self, asked: &Asked, store: &mut dyn Reads) -> Result<Evaluation, StoreError> {
        let step = asked.step.unwrap_or(0) as usize;
        Ok(match asked.question {
            Question::Step { .. } => {
                evaluate_step(&asked.flow, step, &scope(asked, Part::Step(step), store)?)
            }
            Question::Items { step: node, from, to } => {
                let mut progress = match self.loops.take(node, from, asked.callee.as_ref()) {
                    Some(progress) => progress,
                    None => begin(asked, node, step, store)?,
                };
                let before = progress.list.clone();
                let Some(items) = progress.list.read(from, to) else {
                    return Ok(Evaluation::Failed { error: format!("the list has no items {from} to {to}") });
                };
                let evaluation = progress.items.evaluate(&asked.flow, step, from, &items);
                if !matches!(&evaluation, Evaluation::Items(rendered) if rendered.len() == items.len()) {
                    // The rest of them is asked for next.
                    progress.list = before;
                }
                self.loops.put(progress);
                evaluation
            }
            Question::Outputs { .. } => evaluate_outputs(&asked.flow, &scope(asked, Part::Outputs, store)?),
        })
    }

    fn prepare(&self, name: &Name, definition: &Definition, input: &Payload) -> Result<Prepared, String> {
        prepare(name, definition, input)
    }
}

/// What is to be submitted for a name and its input. The error is a sentence.
pub(crate) fn prepare(name: &Name, definition: &Definition, input: &Payload) -> Result<Prepared, String> {
    let given = || json(Some(input));
    match definition {
        Definition::Flow(flow) => {
            let ready = submission(flow, given()).map_err(|refused| refused.to_string())?;
            let inputs = Payload::new(ready.inputs.to_string());
            let what = Submission::Run { flow: flow.name.clone(), key: ready.key, inputs };
            Ok(Prepared { what, tags: ready.tags })
        }
        // Nothing is to be checked or rendered, so the input is not even read.
        Definition::Action(action) if takes_anything(action) => {
            Ok(Prepared::job(name, None, call(name, input)))
        }
        Definition::Action(action) => {
            let Rendered { order, key } = evaluate_job(action, given())?;
            Ok(Prepared::job(name, key, order))
        }
        Definition::Unknown => Ok(Prepared::job(name, None, call(name, input))),
    }
}

fn begin(asked: &Asked, node: NodeId, step: usize, store: &mut dyn Reads) -> Result<Progress, StoreError> {
    let items = Items::new(&scope(asked, Part::Items(step), store)?);
    let list = store.payload(TaskId::node(node))?.unwrap_or_else(Payload::null);
    Ok(Progress { step: node, callee: asked.callee.clone(), items, list: List::new(list) })
}

fn takes_anything(action: &Action) -> bool {
    action.work == ActionWork::Function && action.inputs.is_empty() && action.key.is_none()
}

fn scope(asked: &Asked, part: Part, store: &mut dyn Reads) -> Result<Scope, StoreError> {
    let mut steps = BTreeMap::new();
    for needed in steps_needed(&asked.flow, part) {
        let Some(state) = asked.ended.get(needed.step as usize).copied().flatten() else { continue };
        let result = step_result(asked, needed.step, state, needed.output, store)?;
        steps.insert(asked.flow.steps[needed.step as usize].name.to_string(), result);
    }
    Ok(Scope {
        inputs: json(store.payload(asked.inputs)?.as_ref()),
        steps,
        run: asked.run_name.clone(),
        now: wall_clock(),
        callee: match &asked.callee {
            Some(Called::Action(action)) => Callee::Action(action.clone()),
            Some(Called::Flow(flow)) => Callee::Flow(flow.clone()),
            None => Callee::Unknown,
        },
    })
}

fn step_result(
    asked: &Asked,
    step: u32,
    state: State,
    output: bool,
    store: &mut dyn Reads,
) -> Result<StepResult, StoreError> {
    let task = asked.step_task(step);
    let ended = store.ended(task)?;
    let error = ended.as_ref().and_then(|ended| ended.error.clone());
    let output = match (output, &asked.flow.steps[step as usize].each) {
        (false, _) => Json::Null,
        (true, None) => json(ended.and_then(|ended| ended.output).as_ref()),
        (true, Some(_)) => loop_output(task, store)?,
    };
    Ok(StepResult { state: state.to_string(), output, error })
}

/// `{items: [{state, output, error, attempts}], done, failed}`, in item order.
fn loop_output(task: TaskId, store: &mut dyn Reads) -> Result<Json, StoreError> {
    let items = store.ended_items(task.node, 0, u32::MAX)?;
    let count = |wanted: fn(State) -> bool| items.iter().filter(|(_, ended)| wanted(ended.state)).count();
    let done = count(|state| state == State::Succeeded);
    let failed = count(|state| matches!(state, State::Failed | State::TimedOut));
    let items: Vec<Json> = items.iter().map(|(_, ended)| item_output(ended)).collect();
    Ok(json!({ "items": items, "done": done, "failed": failed }))
}

fn item_output(ended: &Ended) -> Json {
    json!({
        "state": ended.state.as_str(),
        "output": json(ended.output.as_ref()),
        "error": ended.error,
        "attempts": ended.attempts,
    })
}

fn json(payload: Option<&Payload>) -> Json {
    payload.and_then(|payload| serde_json::from_slice(payload.bytes()).ok()).unwrap_or(Json::Null)
}

/// A `wait` step counts in wall time: it names a time of day, or a span from now.
fn wall_clock() -> Moment {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Moment(since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX)))
}
