//! The steps of a run, as rows tell them.

use super::time;
use serde::Serialize;
use std::collections::BTreeMap;
use tidegate_core::ids::{Name, NodeId, TaskId};
use tidegate_core::model::Flow;
use tidegate_core::protocol::{Body, DeclaredRow, NodeRow, RunBody, StepKind};
use tidegate_core::state::State;
use tidegate_store::{InState, Reads, StoreError};
use utoipa::ToSchema;

/// A step that has begun.
#[derive(Serialize, ToSchema)]
pub struct StepView {
    /// `load`, or `outer/load` if it is one of a flow inside.
    name: String,
    state: &'static str,
    started: Option<String>,
    ended: Option<String>,
    attempts: u32,
    error: Option<String>,
    /// Of a loop.
    items: Option<ItemsView>,
    /// The run in which it ran, if it was not run again.
    reused_from: Option<String>,
}

#[derive(Clone, Default, Serialize, ToSchema)]
pub struct ItemsView {
    count: u32,
    running: u32,
    succeeded: u32,
    failed: u32,
    cancelled: u32,
    first_failed: Option<FailedItem>,
}

#[derive(Clone, Serialize, ToSchema)]
pub struct FailedItem {
    index: u32,
    error: Option<String>,
}

/// How the items of each loop fare.
pub fn items(store: &mut dyn Reads, rows: &[NodeRow]) -> Result<BTreeMap<NodeId, ItemsView>, StoreError> {
    let mut loops = BTreeMap::new();
    for row in rows {
        let Body::Step(body) = &row.body else { continue };
        let StepKind::Loop { count } = body.kind else { continue };
        let states = store.item_states(row.node)?;
        let count_of = |wanted: fn(State) -> bool| -> u32 {
            states.iter().filter(|some| wanted(some.state)).map(|some| some.items).sum()
        };
        let failed =
            states.iter().filter(|some| some.state.is_failure()).map(|some: &InState| some.first).min();
        let first_failed = match failed {
            Some(index) => {
                let ended = store.ended(TaskId::item(row.node, index))?;
                Some(FailedItem { index, error: ended.and_then(|ended| ended.error) })
            }
            None => None,
        };
        let view = ItemsView {
            count,
            running: count_of(|state| state == State::Running),
            succeeded: count_of(|state| state == State::Succeeded),
            failed: count_of(State::is_failure),
            cancelled: count_of(|state| matches!(state, State::Cancelled | State::Replaced)),
            first_failed,
        };
        loops.insert(row.node, view);
    }
    Ok(loops)
}

/// Those of the rows that are steps, under the names that people use.
pub fn steps(
    declared: &[DeclaredRow],
    rows: &[NodeRow],
    items: &BTreeMap<NodeId, ItemsView>,
) -> Vec<StepView> {
    let mut names = BTreeMap::<NodeId, String>::new();
    let mut runs = BTreeMap::<NodeId, (String, &Flow)>::new();
    let mut views = Vec::new();
    for row in rows {
        match &row.body {
            Body::Run(body) => {
                let around = row.parent.and_then(|step| names.get(&step));
                let path = around.map(|name| format!("{name}/")).unwrap_or_default();
                if let Some(flow) = flow_of(declared, body) {
                    runs.insert(row.node, (path, flow));
                }
            }
            Body::Step(body) => {
                let Some((path, flow)) = row.parent.and_then(|run| runs.get(&run)) else { continue };
                let step = flow.steps.get(body.index as usize);
                let name = format!("{path}{}", step.map_or("?", |step| step.name.as_str()));
                names.insert(row.node, name.clone());
                views.push(view(name, row, &body.kind, items.get(&row.node)));
            }
            Body::Job(_) | Body::ItemRun(_) => {}
        }
    }
    views
}

fn view(name: String, row: &NodeRow, kind: &StepKind, items: Option<&ItemsView>) -> StepView {
    let reused_from = match kind {
        StepKind::Reused { run, .. } => Some(run.to_string()),
        _ => None,
    };
    StepView {
        name,
        state: row.life.state.as_str(),
        started: row.life.started.map(time),
        ended: row.life.ended.map(time),
        attempts: row.life.tally.started,
        error: row.life.error.clone(),
        items: items.cloned(),
        reused_from,
    }
}

/// A run goes on with the flows that were the newest when it began, also with those inside it.
fn flow_of<'a>(declared: &'a [DeclaredRow], body: &RunBody) -> Option<&'a Flow> {
    let of_name = |name: &Name| *name == body.flow;
    let versions = declared.iter().filter_map(|row| match row {
        DeclaredRow::Flow { version, flow } if of_name(&flow.name) && *version <= body.version => {
            Some((*version, &**flow))
        }
        _ => None,
    });
    versions.max_by_key(|(version, _)| *version).map(|(_, flow)| flow)
}
