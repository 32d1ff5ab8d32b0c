//! What only other workers than the one of `tidegate run` can carry out is refused: it would wait for ever.

use super::prepare::Chosen;
use crate::failure::{Exit, Failure};
use std::collections::BTreeSet;
use tidegate_core::model::{Flow, Requirement, Work};
use tidegate_core::{Bound, Core};
use tidegate_flow::Document;

pub fn has_all(document: &Document, chosen: &Chosen) -> Result<(), Failure> {
    match chosen {
        Chosen::Action(action) => {
            let policy = &action.policy;
            refuse(&policy.needs, &format!("action `{}`", policy.action), &policy.origin.to_string())
        }
        Chosen::Flow(flow) => in_flow(flow, document, &crate::plan::declared(document), &mut BTreeSet::new()),
    }
}

fn in_flow<'d>(
    flow: &'d Flow,
    document: &'d Document,
    core: &Core,
    seen: &mut BTreeSet<&'d str>,
) -> Result<(), Failure> {
    seen.insert(flow.name.as_str());
    for (at, step) in flow.steps.iter().enumerate() {
        match &step.work {
            Work::Wait(_) => {}
            Work::Flow { flow: called, .. } => {
                let called = document.flows.iter().find(|flow| flow.name == *called);
                if let Some(called) = called.filter(|called| !seen.contains(called.name.as_str())) {
                    in_flow(called, document, core, seen)?;
                }
            }
            Work::Order(_) | Work::Action { .. } => {
                for demand in core.demands_of_step(&flow.name, at) {
                    if let Bound::Workers(needs) = &demand.bound {
                        refuse(
                            needs,
                            &format!("step `{}`", step.name),
                            &format!("{}:{}", flow.file, step.line),
                        )?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn refuse(needs: &Requirement, who: &str, place: &str) -> Result<(), Failure> {
    if needs.queue.as_str() == Requirement::DEFAULT_QUEUE && needs.labels.is_empty() {
        return Ok(());
    }
    let labels: String = needs.labels.iter().map(|label| format!(" --label {label}")).collect();
    let named: Vec<String> = needs.labels.iter().map(|label| format!("`{label}`")).collect();
    let with = if named.is_empty() { String::new() } else { format!(" with {}", named.join(", ")) };
    let sentence = format!(
        "{who} needs a worker of queue `{}`{with}, and `tidegate run` has none but its own, of queue `{}` without labels",
        needs.queue,
        Requirement::DEFAULT_QUEUE,
    );
    let help = format!(
        "submit it to a server that has such a worker: `tidegate worker --queue {}{labels}`",
        needs.queue
    );
    Err(Failure::new("no-worker", sentence).at(place).exit(Exit::Invalid).help(help))
}
