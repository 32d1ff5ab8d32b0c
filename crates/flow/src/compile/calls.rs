//! Calls of actions and flows: whether there is such a thing, what it is given, and what it takes together with its
//! step, checked before any run.

use super::Elsewhere;
use super::context::Context;
use super::packs;
use super::pools::Pools;
use crate::diagnostics::Diagnostics;
use crate::problem::{Problem, quoted};
use crate::source::Span;
use crate::submit::fits;
use crate::template::is_template;
use crate::yaml::{Entry, Node, Value, json_kind};
use serde_json::Value as Json;
use tidegate_core::ids::Name;
use tidegate_core::model::{Action, ActionWork, Flow, Input};

/// One `action:` or `flow:` step, as it stands in its file.
pub(super) struct Call {
    pub file: usize,
    /// The flow in which it stands.
    pub caller: Name,
    pub callee: Callee,
    pub span: Span,
    given: Vec<Given>,
    /// What the step takes of pools, besides what its action takes.
    demands: Vec<(Name, u32)>,
}

/// Something that is handed over.
struct Given {
    name: String,
    span: Span,
    /// Its value and place, if that is not known only when it is rendered.
    literal: Option<(Json, Span)>,
}

impl Given {
    fn new(entry: &Entry) -> Given {
        let (name, span) = (entry.key.clone(), entry.key_span);
        let literal = (!has_template(&entry.node)).then(|| (entry.node.json(), entry.node.span));
        Given { name, span, literal }
    }
}

fn has_template(node: &Node) -> bool {
    match &node.value {
        Value::Scalar { text, .. } => is_template(text),
        Value::List(items) => items.iter().any(has_template),
        Value::Map(entries) => entries.iter().any(|entry| has_template(&entry.node)),
    }
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Callee {
    Action(Name),
    Flow(Name),
}

impl Call {
    pub fn new(
        cx: &Context<'_>,
        callee: Callee,
        head: &Entry,
        inputs: Option<&Entry>,
        demands: &[(Name, u32)],
    ) -> Option<Call> {
        let given = match inputs.map(|entry| &entry.node.value) {
            None => Vec::new(),
            Some(Value::Map(entries)) => entries.iter().map(Given::new).collect(),
            // Something else was already reported.
            Some(_) => return None,
        };
        // Its flow says its name once all of it is read.
        let caller = Name::new("");
        Some(Call { file: cx.file, caller, callee, span: head.node.span, given, demands: demands.to_vec() })
    }
}

/// Everything that can be called.
pub(super) struct Known<'a> {
    pub flows: &'a [Flow],
    pub actions: &'a [Action],
    pub pools: &'a Pools,
    pub elsewhere: Elsewhere<'a>,
}

impl Known<'_> {
    pub fn check(&self, calls: &[Call], diagnostics: &mut Diagnostics) {
        for call in calls {
            let cx = &mut Context { file: call.file, diagnostics };
            match &call.callee {
                Callee::Action(name) => self.check_action(cx, call, name),
                Callee::Flow(name) => self.check_flow(cx, call, name),
            }
        }
    }

    fn check_action(&self, cx: &mut Context<'_>, call: &Call, name: &Name) {
        let is_all = self.elsewhere.is_nothing_else();
        let Some(action) = self.actions.iter().find(|action| action.policy.action == *name) else {
            if is_all {
                let known = self.actions.iter().map(|action| action.policy.action.as_str());
                let meant = packs::nearest(cx, name.as_str(), known);
                let problem = Problem::UnknownAction { action: name.to_string(), meant };
                cx.report(call.span, problem);
            }
            return;
        };
        if matches!(self.elsewhere, Elsewhere::Nothing) && action.work == ActionWork::Function {
            cx.report(call.span, Problem::NobodysFunction { action: name.to_string() });
        }
        if let Some(problem) = self.pools.too_small(&call.demands, &action.policy.pools) {
            cx.report(call.span, problem);
        }
        check_inputs(cx, call, format!("action `{name}`"), &action.inputs);
    }

    fn check_flow(&self, cx: &mut Context<'_>, call: &Call, name: &Name) {
        match self.flows.iter().find(|flow| flow.name == *name) {
            Some(flow) => check_inputs(cx, call, format!("flow `{name}`"), &flow.inputs),
            None if self.elsewhere.is_nothing_else() => {
                let known = self.flows.iter().map(|flow| flow.name.as_str());
                let meant = packs::nearest(cx, name.as_str(), known);
                let problem = Problem::UnknownFlow { flow: name.to_string(), meant };
                cx.report(call.span, problem);
            }
            None => {}
        }
    }
}

fn check_inputs(cx: &mut Context<'_>, call: &Call, callee: String, inputs: &[Input]) {
    for Given { name, span, literal } in &call.given {
        let Some(input) = inputs.iter().find(|input| input.name.as_str() == name) else {
            let meant = cx.nearest(name, inputs.iter().map(|input| input.name.as_str()));
            let problem = Problem::NotAnInput { callee: callee.clone(), input: quoted(name), meant };
            cx.report(*span, problem);
            continue;
        };
        // Null stands for "not given".
        let Some((value, span)) = literal.as_ref().filter(|(value, _)| !value.is_null()) else { continue };
        if let Err(expected) = fits(input.kind, value) {
            let (callee, input, found) = (callee.clone(), quoted(name), json_kind(value));
            cx.report(*span, Problem::WrongInput { callee, input, expected, found });
        }
    }
    for input in inputs.iter().filter(|input| input.required) {
        if !call.given.iter().any(|given| given.name == input.name.as_str()) {
            let problem = Problem::InputMissing { callee: callee.clone(), input: input.name.to_string() };
            cx.report(call.span, problem);
        }
    }
}
