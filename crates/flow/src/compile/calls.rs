//! Calls of actions and flows that are declared in the same files: their inputs can be checked before any run.

use super::context::Context;
use crate::diagnostics::Diagnostics;
use crate::problem::{Problem, quoted};
use crate::source::Span;
use crate::yaml::{Entry, Value};
use tidegate_core::ids::Name;
use tidegate_core::model::{Action, Flow, Input};

/// One `action:` or `flow:` step, as it stands in its file.
pub(super) struct Call {
    file: usize,
    callee: Callee,
    span: Span,
    /// The names of what is given, and their places.
    given: Vec<(String, Span)>,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Callee {
    Action(Name),
    Flow(Name),
}

impl Call {
    pub fn new(cx: &Context<'_>, callee: Callee, head: &Entry, inputs: Option<&Entry>) -> Option<Call> {
        let given = match inputs.map(|entry| &entry.node.value) {
            None => Vec::new(),
            Some(Value::Map(entries)) => {
                entries.iter().map(|entry| (entry.key.clone(), entry.key_span)).collect()
            }
            // Something else was already reported.
            Some(_) => return None,
        };
        Some(Call { file: cx.file, callee, span: head.node.span, given })
    }
}

pub(super) fn check(calls: &[Call], flows: &[Flow], actions: &[Action], diagnostics: &mut Diagnostics) {
    for call in calls {
        let found: Option<(String, &[Input])> = match &call.callee {
            Callee::Action(name) => actions
                .iter()
                .find(|action| action.policy.action == *name)
                .map(|action| (format!("action `{name}`"), action.inputs.as_slice())),
            Callee::Flow(name) => flows
                .iter()
                .find(|flow| flow.name == *name)
                .map(|flow| (format!("flow `{name}`"), flow.inputs.as_slice())),
        };
        if let Some((callee, inputs)) = found {
            check_inputs(&mut Context { file: call.file, diagnostics }, call, callee, inputs);
        }
    }
}

fn check_inputs(cx: &mut Context<'_>, call: &Call, callee: String, inputs: &[Input]) {
    for (name, span) in &call.given {
        if !inputs.iter().any(|input| input.name.as_str() == name) {
            let meant = cx.nearest(name, inputs.iter().map(|input| input.name.as_str()));
            let problem = Problem::NotAnInput { callee: callee.clone(), input: quoted(name), meant };
            cx.report(*span, problem);
        }
    }
    for input in inputs.iter().filter(|input| input.required) {
        if !call.given.iter().any(|(name, _)| name == input.name.as_str()) {
            let problem = Problem::InputMissing { callee: callee.clone(), input: input.name.to_string() };
            cx.report(call.span, problem);
        }
    }
}
