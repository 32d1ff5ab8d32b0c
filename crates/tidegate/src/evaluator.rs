//! Answers the core's questions: loads what a template refers to, and lets the language render it.

mod loops;

use loops::{List, Loops, Progress};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::ops::Range;
use tidegate_core::ids::{Name, NodeId, TaskId};
use tidegate_core::model::{Action, ActionWork, MAX_ITEMS};
use tidegate_core::protocol::{
    Evaluation, LARGEST_OUTPUT, LARGEST_PAYLOAD, Payload, Question, Rendered, Submission,
};
use tidegate_core::state::State;
use tidegate_core::time::Moment;
use tidegate_core::{Asked, Called};
use tidegate_engine::{Definition, Evaluate, Prepared, is_there};
use tidegate_flow::evaluate::{
    Callee, Extent, Items, Needed, Part, Scope, StepResult, Within, evaluate_job, evaluate_outputs,
    evaluate_step, evaluate_when, list_place, steps_needed,
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
        let evaluated = match asked.question {
            Question::Step { .. } => answer_step(asked, step, store),
            Question::Items { step: node, from, to } => self.items(asked, node, step, from..to, store),
            Question::Outputs { .. } => {
                scope(asked, Part::Outputs, store).map(|scope| evaluate_outputs(&asked.flow, &scope))
            }
        };
        match evaluated {
            Ok(evaluation) => Ok(evaluation),
            Err(Trouble::Said(error)) => Ok(Evaluation::Failed { error }),
            Err(Trouble::Store(error)) => Err(error),
        }
    }

    fn prepare(&self, name: &Name, definition: &Definition, input: &Payload) -> Result<Prepared, String> {
        prepare(name, definition, input)
    }
}

/// Why a question has no answer by its templates.
enum Trouble {
    Store(StoreError),
    /// A sentence about what they refer to: it is too large, or gone.
    Said(String),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Trouble {
        Trouble::Store(error)
    }
}

impl Evaluator {
    fn items(
        &self,
        asked: &Asked,
        node: NodeId,
        step: usize,
        wanted: Range<u32>,
        store: &mut dyn Reads,
    ) -> Result<Evaluation, Trouble> {
        let Range { start: from, end: to } = wanted;
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
        Ok(evaluation)
    }
}

fn answer_step(asked: &Asked, step: usize, store: &mut dyn Reads) -> Result<Evaluation, Trouble> {
    if let Some(place) = list_place(&asked.flow, step) {
        let ended = evaluate_when(&asked.flow, step, &scope(asked, Part::When(step), store)?);
        if let Some(evaluation) = ended {
            return Ok(evaluation);
        }
        let text = match place.within {
            Within::Inputs => store.payload(asked.inputs)?,
            Within::Output(step) => store.ended(asked.step_task(step))?.and_then(|ended| ended.output),
        };
        if let Some(list) = text.and_then(|text| place.read(&text)) {
            return Ok(list);
        }
    }
    Ok(evaluate_step(&asked.flow, step, &scope(asked, Part::Step(step), store)?))
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

fn begin(asked: &Asked, node: NodeId, step: usize, store: &mut dyn Reads) -> Result<Progress, Trouble> {
    let items = Items::new(&scope(asked, Part::Items(step), store)?);
    let list = store.payload(TaskId::node(node))?.unwrap_or_else(Payload::null);
    Ok(Progress { step: node, callee: asked.callee.clone(), items, list: List::new(list) })
}

fn takes_anything(action: &Action) -> bool {
    action.work == ActionWork::Function && action.inputs.is_empty() && action.key.is_none()
}

fn scope(asked: &Asked, part: Part, store: &mut dyn Reads) -> Result<Scope, Trouble> {
    let mut steps = BTreeMap::new();
    let mut room = LARGEST_OUTPUT;
    for needed in steps_needed(&asked.flow, part) {
        let Some(state) = asked.ended.get(needed.step as usize).copied().flatten() else { continue };
        let result = step_result(asked, needed, state, &mut room, store)?;
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

/// `room` is for the outputs of all steps that are referred to: a few bytes of a value need many in memory.
fn step_result(
    asked: &Asked,
    needed: Needed,
    state: State,
    room: &mut usize,
    store: &mut dyn Reads,
) -> Result<StepResult, Trouble> {
    let (task, step) = (asked.step_task(needed.step), &asked.flow.steps[needed.step as usize]);
    let is_reused = asked.reused.contains_key(&needed.step) && !matches!(needed.extent, Extent::State);
    if is_reused && !is_there(store, task.node, needed.step)? {
        let name = &step.name;
        return Err(Trouble::Said(format!(
            "what step `{name}` put out is gone with the run that it is reused from; retry from the start"
        )));
    }
    let ended = store.ended(task)?;
    let error = ended.as_ref().and_then(|ended| ended.error.clone());
    let output = match (needed.extent, &step.each) {
        (Extent::State, _) => Json::Null,
        (_, None) => {
            let output = ended.and_then(|ended| ended.output);
            let left = output.as_ref().map_or(Some(*room), |output| room.checked_sub(output.bytes().len()));
            *room = left.ok_or_else(|| {
                let most = LARGEST_OUTPUT >> 20;
                Trouble::Said(format!("the outputs that are referred to are larger than {most} MiB together"))
            })?;
            json(output.as_ref())
        }
        (Extent::Counts, Some(_)) => counts(task, store)?,
        (Extent::Output, Some(_)) => {
            let mut output = counts(task, store)?;
            output["items"] = Json::Array(items(task, step.name.as_str(), store)?);
            output
        }
    };
    Ok(StepResult { state: state.to_string(), output, error })
}

/// How the items of a loop ended: `{done, failed, cancelled}`.
fn counts(task: TaskId, store: &mut dyn Reads) -> Result<Json, StoreError> {
    let states = store.item_states(task.node)?;
    let count = |wanted: fn(State) -> bool| -> u32 {
        states.iter().filter(|some| wanted(some.state)).map(|some| some.items).sum()
    };
    Ok(json!({
        "done": count(|state| state == State::Succeeded),
        "failed": count(State::is_failure),
        "cancelled": count(|state| state == State::Cancelled),
    }))
}

/// Items of a loop that are read at once.
const PAGE: u32 = 1_000;

/// `[{state, output, error, attempts}]`, in item order.
fn items(task: TaskId, step: &str, store: &mut dyn Reads) -> Result<Vec<Json>, Trouble> {
    let (mut items, mut bytes) = (Vec::new(), 0);
    for from in (0..MAX_ITEMS).step_by(PAGE as usize) {
        let page = store.ended_items(task.node, from, from + PAGE)?;
        bytes += page.iter().map(|(_, ended)| size(ended)).sum::<usize>();
        if bytes > LARGEST_PAYLOAD {
            let most = LARGEST_PAYLOAD >> 20;
            return Err(Trouble::Said(format!(
                "the output of the loop `{step}` is larger than {most} MiB; \
                 `steps.{step}.output.done`, `.failed` and `.cancelled` can be used nevertheless"
            )));
        }
        items.extend(page.iter().map(|(_, ended)| item_output(ended)));
    }
    Ok(items)
}

fn size(ended: &Ended) -> usize {
    ended.output.as_ref().map_or(0, |output| output.bytes().len())
        + ended.error.as_ref().map_or(0, String::len)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tidegate_store::MemoryStore;

    #[test]
    fn what_is_reused_and_gone_is_said() {
        let answer = |output: &str| {
            let text = format!("flow: a\nsteps: {{ b: {{ run: [ls] }} }}\noutputs: {{ c: '{output}' }}\n");
            let flow = tidegate_flow::parse("a.yaml", &text).expect("it is valid").flows.remove(0);
            let run = NodeId(10);
            let asked = Asked {
                question: Question::Outputs { run },
                flow: Arc::new(flow),
                run,
                run_name: "run".to_owned(),
                inputs: TaskId::node(run),
                step: None,
                ended: vec![Some(State::Succeeded)],
                reused: BTreeMap::from([(0, NodeId(5))]),
                callee: None,
            };
            Evaluator::default().evaluate(&asked, &mut MemoryStore::new()).expect("memory answers")
        };
        let gone = "what step `b` put out is gone with the run that it is reused from; retry from the start";
        assert_eq!(answer("{{ steps.b.output.stdout }}"), Evaluation::Failed { error: gone.to_owned() });
        let how = Evaluation::Outputs(Payload::new(r#"{"c":"succeeded"}"#));
        assert_eq!(answer("{{ steps.b.state }}"), how, "how it ended is known");
    }
}
