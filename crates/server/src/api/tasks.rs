//! What a run, a step or an item waits for.

use super::{short, time};
use crate::app::App;
use crate::extract::Named;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tidegate::Explanation;
use tidegate_core::explain::{brief, describe, render};
use utoipa::ToSchema;

/// Why something waits, or what it does.
#[derive(Serialize, ToSchema)]
pub struct WhyView {
    #[schema(example = "run_01k7z0vb8nf0qvt1n1gkz6h0h5/load#3")]
    name: String,
    state: &'static str,
    since: String,
    priority: i8,
    /// In a few words; nothing if it runs.
    waits: Option<String>,
    /// All of it, as `tidegate why` prints it.
    text: String,
    /// Limits that refuse it now, in the order in which they are tried.
    limits: Vec<BlockerView>,
    /// When it is expected to start, in seconds from now: nothing is promised.
    expected_in: Option<f64>,
}

#[derive(Serialize, ToSchema)]
pub struct BlockerView {
    /// As `limits` takes it.
    #[schema(example = "pool:database")]
    limit: String,
    /// As people call it.
    #[schema(example = "pool database")]
    called: String,
    /// How much of it is needed.
    units: u32,
    /// So many come before it.
    ahead: u64,
    /// Where it was declared.
    declared_at: Option<String>,
    held_by: Vec<HolderView>,
}

#[derive(Serialize, ToSchema)]
pub struct HolderView {
    pub name: String,
    pub units: u32,
    pub since: String,
    pub worker: Option<String>,
    /// It has its place, and waits for something else itself.
    pub waits: bool,
}

impl HolderView {
    pub fn of(holder: &tidegate_core::explain::Holder) -> HolderView {
        HolderView {
            name: holder.name.clone(),
            units: holder.units,
            since: time(holder.since),
            worker: holder.worker.as_ref().map(ToString::to_string),
            waits: holder.waits,
        }
    }
}

impl WhyView {
    fn of(explanation: &Explanation) -> WhyView {
        let limits = explanation.blockers.iter().map(|blocker| BlockerView {
            limit: blocker.limit.to_string(),
            called: describe(&blocker.limit),
            units: blocker.units,
            ahead: blocker.ahead,
            declared_at: blocker.origin.file.is_some().then(|| blocker.origin.to_string()),
            held_by: blocker.holders.iter().map(HolderView::of).collect(),
        });
        WhyView {
            name: explanation.name.clone(),
            state: explanation.state.as_str(),
            since: time(explanation.since),
            priority: explanation.priority,
            waits: brief(explanation),
            text: render(explanation),
            limits: limits.collect(),
            expected_in: explanation.estimate.map(|estimate| estimate.likely.0 as f64 / 1_000_000.0),
        }
    }
}

/// What something does or waits for.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}/why", tag = "tasks",
    params(("id" = String, Path, description = "`run_…`, `run_…/step` or `run_…/step#3`, percent-encoded; so much of the run's id is enough as no other open run shares.")),
    responses(
        (status = OK, description = "What it does or waits for.", body = WhyView),
        (status = NOT_FOUND, description = "There is no such thing, or it has ended.", body = Problem),
    )
)]
pub async fn why(State(app): State<App>, Named(id): Named<String>) -> Result<Json<WhyView>, Problem> {
    let explanation = app.tide.explain(&id).await?;
    let ended = || Problem::not_found(format!("`{}` waits for nothing: it has ended", short(&id)));
    explanation.as_ref().map(WhyView::of).map(Json).ok_or_else(ended)
}
