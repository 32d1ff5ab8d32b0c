//! What a step, or one item of its loop, is to do.

mod chain;
mod http;
mod process;
mod sql;
mod text;

use super::render::Renderer;
use super::scope::{Callee, Scope};
use crate::duration::parse_duration;
use crate::problem::quoted;
use crate::submit::check_inputs;
use crate::template::{Compiled, MAX_TEXT};
use crate::yaml::json_kind;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use tidegate_core::ids::Name;
use tidegate_core::model::{Action, ActionWork, Order, Step, Template, Work};
use tidegate_core::protocol::{Evaluation, Payload, Rendered};
use tidegate_core::time::{Moment, Span};

pub(super) fn evaluate(step: &Step, scope: &Scope, renderer: &Renderer) -> Result<Evaluation, String> {
    match &step.work {
        Work::Order(_) | Work::Action { .. } => order(step, &scope.callee, renderer).map(Evaluation::Order),
        Work::Flow { flow, inputs } => {
            flow_inputs(flow, inputs, &scope.callee, renderer).map(|inputs| Evaluation::SubFlow { inputs })
        }
        Work::Wait(template) => {
            let value = renderer.template(template, "wait")?;
            until(&value, scope.now).map(Evaluation::Until)
        }
    }
}

/// What a worker, or a run of a flow, is given.
pub(super) fn order(step: &Step, callee: &Callee, renderer: &Renderer) -> Result<Rendered, String> {
    match &step.work {
        Work::Order(template) => Ok(Rendered { order: built_in(template, renderer)?, key: None }),
        Work::Action { action, inputs } => {
            let inputs = renderer.template(inputs, "inputs")?;
            match callee {
                Callee::Action(callee) => call(callee, inputs, renderer.templates())
                    .map_err(|error| format!("action `{action}`: {error}")),
                _ => Ok(Rendered { order: payload(&function(action, inputs))?, key: None }),
            }
        }
        Work::Flow { flow, inputs } => {
            flow_inputs(flow, inputs, callee, renderer).map(|order| Rendered { order, key: None })
        }
        Work::Wait(_) => Err("`wait` cannot be done for each item of a loop".to_owned()),
    }
}

fn flow_inputs(
    flow: &Name,
    inputs: &Template,
    callee: &Callee,
    renderer: &Renderer,
) -> Result<Payload, String> {
    let inputs = renderer.template(inputs, "inputs")?;
    let inputs = match callee {
        Callee::Flow(callee) => {
            check_inputs(&callee.inputs, inputs).map_err(|refused| format!("flow `{flow}`: {refused}"))?
        }
        _ => inputs,
    };
    payload(&inputs)
}

/// An action sees nothing but its own inputs. A function that declares none takes whatever it is given.
pub(super) fn call(action: &Action, inputs: Json, compiled: Arc<Compiled>) -> Result<Rendered, String> {
    let inputs = match (&action.work, action.inputs.is_empty()) {
        (ActionWork::Function, true) => inputs,
        _ => check_inputs(&action.inputs, inputs).map_err(|refused| refused.to_string())?,
    };
    let renderer = || Renderer::over_inputs(&inputs).compiled(compiled.clone());
    let key = match &action.key {
        Some(template) => renderer().name(template).map_err(|error| format!("`key`: {error}"))?,
        None => None,
    };
    let order = match &action.work {
        ActionWork::Order(template) => built_in(template, &renderer())?,
        ActionWork::Function => payload(&function(&action.policy.action, inputs))?,
    };
    Ok(Rendered { order, key })
}

/// The order for a built-in runner.
fn built_in(template: &Template, renderer: &Renderer) -> Result<Payload, String> {
    let template: Json =
        serde_json::from_str(&template.0).map_err(|error| format!("the order is not a template: {error}"))?;
    let (runner, parts) = match template.as_object().and_then(|order| order.iter().next()) {
        // As stores hold it that were written before there was more than one runner.
        Some((field, _)) if field == "argv" => ("run", &template),
        Some((runner, parts)) => (runner.as_str(), parts),
        None => return Err("the order is empty".to_owned()),
    };
    let order = match runner {
        "do" => chain::order(parts, renderer)?,
        _ => serde_json::to_value(order_of(runner, parts, renderer)?).map_err(|error| error.to_string())?,
    };
    payload(&order)
}

/// What one runner is to do, rendered.
pub(crate) fn order_of(runner: &str, parts: &Json, renderer: &Renderer) -> Result<Order, String> {
    match runner {
        "run" => process::run(parts, renderer),
        "shell" => process::shell(parts, renderer),
        "http" => http::http(parts, renderer),
        "sql" => sql::sql(parts, renderer),
        other => Err(format!("there is no runner `{}`", quoted(other))),
    }
}

/// The order for a function that a worker registered.
fn function(action: &Name, inputs: Json) -> Json {
    json!({ "call": { "function": action.as_str(), "input": inputs } })
}

fn payload(value: &Json) -> Result<Payload, String> {
    let text = value.to_string();
    if text.len() > MAX_TEXT {
        return Err(format!("what the step is to do is larger than {MAX_TEXT} bytes"));
    }
    Ok(Payload::new(text))
}

/// Seconds, a duration, or a time.
fn until(value: &Json, now: Moment) -> Result<Moment, String> {
    let unfit = |text: &str| format!("`wait`: `{}` is neither a duration nor a time", quoted(text));
    match value {
        Json::Number(number) => {
            let seconds = number.as_f64().filter(|seconds| (0.0..1e10).contains(seconds));
            let seconds = seconds.ok_or_else(|| unfit(&number.to_string()))?;
            Ok(now + Span::micros((seconds * 1e6) as u64))
        }
        Json::String(text) => match parse_duration(text.trim()) {
            Some(span) => Ok(now + span),
            None => {
                let time: jiff::Timestamp = text.trim().parse().map_err(|_| unfit(text))?;
                Ok(Moment(time.as_microsecond()))
            }
        },
        other => Err(format!("`wait` must be a duration or a time, not {}", json_kind(other))),
    }
}
