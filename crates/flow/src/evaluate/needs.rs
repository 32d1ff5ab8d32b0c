//! Which results a template needs, so that a caller loads only those.

use crate::template::scan;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use tidegate_core::model::{Flow, Template};

/// What is going to be evaluated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// `when`, and then the work or the list of a loop: [`super::evaluate_step`].
    Step(usize),
    /// `when` alone: [`super::evaluate_when`].
    When(usize),
    /// The work of each item of a loop: [`super::evaluate_items`].
    Items(usize),
    /// [`super::evaluate_outputs`].
    Outputs,
}

/// A step that is referred to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needed {
    pub step: u32,
    pub extent: Extent,
}

/// How much of what a step left behind is looked at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Extent {
    /// Its state or its error.
    #[default]
    State,
    /// How many items of a loop ended how.
    Counts,
    Output,
}

/// The steps that `part` refers to, by index, each once.
pub fn steps_needed(flow: &Flow, part: Part) -> Vec<Needed> {
    let mut found: BTreeMap<u32, Extent> = BTreeMap::new();
    for template in templates(flow, part) {
        let value: Json = serde_json::from_str(&template.0).unwrap_or(Json::Null);
        walk(&value, &mut |text| references(flow, text, &mut found));
    }
    found.into_iter().map(|(step, extent)| Needed { step, extent }).collect()
}

fn templates(flow: &Flow, part: Part) -> Vec<&Template> {
    match part {
        Part::Outputs => flow.outputs.iter().collect(),
        Part::Items(step) => flow.steps.get(step).map(|step| step.work.template()).into_iter().collect(),
        Part::When(step) => flow.steps.get(step).and_then(|step| step.rule.when()).into_iter().collect(),
        Part::Step(step) => {
            let Some(step) = flow.steps.get(step) else { return Vec::new() };
            let next = step.each.as_ref().map_or(step.work.template(), |each| &each.items);
            step.rule.when().into_iter().chain([next]).collect()
        }
    }
}

fn walk(value: &Json, visit: &mut impl FnMut(&str)) {
    match value {
        Json::String(text) => visit(text),
        Json::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        Json::Object(fields) => fields.values().for_each(|field| walk(field, visit)),
        _ => {}
    }
}

fn references(flow: &Flow, text: &str, found: &mut BTreeMap<u32, Extent>) {
    for reference in scan(text).references.iter().filter(|reference| reference.root == "steps") {
        let Some(name) = reference.path.first() else { continue };
        let Some(index) = flow.steps.iter().position(|step| step.name.as_str() == name) else { continue };
        let extent = match reference.path[1..].iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["state" | "error", ..] => Extent::State,
            ["output", "done" | "failed" | "cancelled"] if flow.steps[index].each.is_some() => Extent::Counts,
            _ => Extent::Output,
        };
        let known = found.entry(index as u32).or_default();
        *known = extent.max(*known);
    }
}
