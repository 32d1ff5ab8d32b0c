//! A part of a run, by the name that people use: `step`, `step#3`, `outer/inner`, `outer#3/inner`.

use super::not_found;
use crate::failure::Failure;
use crate::run::Open;
use std::path::Path;
use tidegate_core::Lost;
use tidegate_core::model::{Flow, Step, Work};
use tidegate_core::suggest::nearest;

/// Whether there is such a part; it need not have begun.
pub fn check(open: &Open, part: &str, path: &Path) -> Result<(), Failure> {
    let Some(mut flow) = open.view.flow(&open.name) else {
        let lost = Lost::NoStep { around: open.id.to_string(), step: part.to_owned() };
        return Err(not_found(lost.to_string(), path).help("it is an action by itself and has no steps"));
    };
    let mut names = part.split('/').peekable();
    let mut before = String::new();
    while let Some(name) = names.next() {
        let (step, item) = name.split_once('#').map_or((name, None), |(step, item)| (step, Some(item)));
        let definition = find(flow, step).ok_or_else(|| no_step(open, &before, flow, step, path))?;
        if let Some(item) = item {
            check_item(open, definition, &format!("{before}{step}"), item, path)?;
        }
        before = format!("{before}{name}");
        if names.peek().is_none() {
            break;
        }
        flow = inside(open, definition, item, &before, path)?;
        before.push('/');
    }
    Ok(())
}

fn find<'a>(flow: &'a Flow, step: &str) -> Option<&'a Step> {
    flow.steps.iter().find(|known| known.name.as_str() == step)
}

fn no_step(open: &Open, before: &str, flow: &Flow, step: &str, path: &Path) -> Failure {
    let around = format!("{}/{before}", open.id).trim_end_matches('/').to_owned();
    let names = || flow.steps.iter().map(|step| step.name.as_str());
    let help = match nearest(step, names()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("it has {}", names().collect::<Vec<_>>().join(", ")),
    };
    not_found(Lost::NoStep { around, step: step.to_owned() }.to_string(), path).help(help)
}

fn check_item(open: &Open, definition: &Step, name: &str, item: &str, path: &Path) -> Result<(), Failure> {
    if definition.each.is_none() {
        return Err(not_found(format!("{}/{name} is no loop and has no items", open.id), path)
            .help("a loop is a step with `with_items`"));
    }
    let Ok(index) = item.parse::<u32>() else {
        return Err(not_found(Lost::NotAnItem(item.to_owned()).to_string(), path).help("items count from 0"));
    };
    match open.view.step_named(name).and_then(|step| step.items.as_ref()) {
        Some(items) if index >= items.count => {
            let sentence = format!("{}/{name} has no item {index}: it has {}", open.id, items.count);
            Err(not_found(sentence, path).help("items count from 0"))
        }
        _ => Ok(()),
    }
}

/// The flow that a step or an item calls.
fn inside<'a>(
    open: &'a Open,
    definition: &Step,
    item: Option<&str>,
    name: &str,
    path: &Path,
) -> Result<&'a Flow, Failure> {
    let around = format!("{}/{name}", open.id);
    let called = match &definition.work {
        Work::Flow { flow, .. } => open.view.flow(flow),
        _ => None,
    };
    match (called, item, &definition.each) {
        (None, ..) => {
            let help = format!("`tidegate runs show {}` shows its steps", open.id);
            Err(not_found(Lost::NothingInside(around).to_string(), path).help(help))
        }
        (Some(_), None, Some(_)) => {
            let step = definition.name.to_string();
            Err(not_found(Lost::WhichItem { around, step }.to_string(), path).help("items count from 0"))
        }
        (Some(flow), ..) => Ok(flow),
    }
}
