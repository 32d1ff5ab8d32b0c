//! Flows that call themselves for ever: no run of such a flow could succeed.

use super::calls::{Call, Callee};
use super::context::Context;
use crate::diagnostics::Diagnostics;
use crate::problem::Problem;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tidegate_core::ids::Name;
use tidegate_core::model::{Flow, Rule, Step, Work};

/// Flows of a circle that its error names; of a longer one, the first and the last.
const MAX_NAMED: usize = 12;

/// Which flows a run of each calls, whatever it is given.
type Certain<'a> = BTreeMap<&'a Name, BTreeSet<&'a Name>>;

pub(super) fn check(flows: &[Flow], calls: &[Call], diagnostics: &mut Diagnostics) {
    let certain: Certain = flows.iter().map(|flow| (&flow.name, certain_calls(flow))).collect();
    let mut told = BTreeSet::new();
    for call in calls {
        let Callee::Flow(callee) = &call.callee else { continue };
        let is_certain = certain.get(&call.caller).is_some_and(|called| called.contains(callee));
        if !is_certain || told.contains(&call.caller) {
            continue;
        }
        if let Some(way) = way(&certain, callee, &call.caller) {
            let mut path: Vec<String> = [&call.caller].into_iter().chain(&way).map(Name::to_string).collect();
            if path.len() > MAX_NAMED {
                path.splice(MAX_NAMED / 2..path.len() - MAX_NAMED / 2, ["…".to_owned()]);
            }
            told.extend(way);
            Context { file: call.file, diagnostics }.report(call.span, Problem::EndlessCalls { path });
        }
    }
}

/// From one flow to another, both included.
fn way(certain: &Certain, from: &Name, to: &Name) -> Option<Vec<Name>> {
    let mut before = BTreeMap::<&Name, Option<&Name>>::from([(from, None)]);
    let mut open = VecDeque::from([from]);
    while let Some(flow) = open.pop_front() {
        if flow == to {
            let mut way = vec![flow.clone()];
            let mut at = flow;
            while let Some(Some(previous)) = before.get(at) {
                way.push((*previous).clone());
                at = previous;
            }
            way.reverse();
            return Some(way);
        }
        for &called in certain.get(flow).into_iter().flatten() {
            before.entry(called).or_insert_with(|| {
                open.push_back(called);
                Some(flow)
            });
        }
    }
    None
}

/// The flows that are called by steps without a condition, behind none that has one. A loop may have no items.
fn certain_calls(flow: &Flow) -> BTreeSet<&Name> {
    let called = |step: &'_ Step| matches!(step.work, Work::Flow { .. }) && step.each.is_none();
    if !flow.steps.iter().any(called) {
        return BTreeSet::new();
    }
    let is_conditional = |step: &Step| step.rule.when().is_some() || matches!(step.rule, Rule::States { .. });
    let mut certain: Vec<bool> = flow.steps.iter().map(|step| !is_conditional(step)).collect();
    let mut behind = vec![Vec::new(); flow.steps.len()];
    for (index, step) in flow.steps.iter().enumerate() {
        step.after.iter().for_each(|&before| behind[before as usize].push(index));
    }
    let mut doubtful: Vec<usize> = (0..certain.len()).filter(|&index| !certain[index]).collect();
    while let Some(index) = doubtful.pop() {
        for &later in &behind[index] {
            if std::mem::replace(&mut certain[later], false) {
                doubtful.push(later);
            }
        }
    }
    let steps = flow.steps.iter().zip(certain).filter(|(step, certain)| *certain && called(step));
    let names = steps.filter_map(|(step, _)| match &step.work {
        Work::Flow { flow, .. } => Some(flow),
        _ => None,
    });
    names.collect()
}
