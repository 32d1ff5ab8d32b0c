//! One action or flow in numbers.

use crate::app::App;
use crate::extract::Named;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use std::collections::BTreeMap;
use tidegate::{Error, Name};
use tidegate_core::Waits;
use tidegate_core::overview::NameStats;
use tidegate_core::time::Span;
use utoipa::ToSchema;

/// What waits and runs now, and what happened since the server that leads began to. Times are in seconds.
#[derive(Serialize, ToSchema)]
pub struct QueueStats {
    name: String,
    waiting: u64,
    running: u64,
    /// How long the first in line has waited.
    first_waits: Option<f64>,
    /// What starts waited for limits, and for workers.
    waited: Waited,
    /// How many ended in each state.
    ended: BTreeMap<&'static str, u64>,
    /// How long attempts took that succeeded lately.
    took: Option<Took>,
}

#[derive(Serialize, ToSchema)]
pub struct Waited {
    limit: WaitView,
    worker: WaitView,
}

/// Percentiles are rounded up to the next bound: 1, 5, 10, 50, 100, 500 ms, 1, 5, 10, 30 s, 1, 5, 15 min, 1 h. What is longer
/// has none.
#[derive(Serialize, ToSchema)]
pub struct WaitView {
    count: u64,
    mean: Option<f64>,
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
}

#[derive(Serialize, ToSchema)]
pub struct Took {
    p50: f64,
    p90: f64,
}

fn seconds(span: Span) -> f64 {
    span.0 as f64 / 1_000_000.0
}

impl WaitView {
    fn of(waits: &Waits) -> WaitView {
        let (count, percentile) = (waits.count(), |percent| waits.percentile(percent).map(seconds));
        WaitView {
            count,
            mean: (count > 0).then(|| seconds(waits.sum) / count as f64),
            p50: percentile(50),
            p90: percentile(90),
            p99: percentile(99),
        }
    }
}

impl QueueStats {
    fn of(stats: &NameStats) -> QueueStats {
        QueueStats {
            name: stats.name.to_string(),
            waiting: stats.waiting,
            running: stats.running,
            first_waits: stats.first_waits.map(seconds),
            waited: Waited {
                limit: WaitView::of(&stats.limit_waits),
                worker: WaitView::of(&stats.worker_waits),
            },
            ended: stats.ends.iter().map(|(state, count)| (state.as_str(), *count)).collect(),
            took: stats.took.map(|(p50, p90)| Took { p50: seconds(p50), p90: seconds(p90) }),
        }
    }
}

/// What waits, runs and has ended of an action or flow, and how long it waited.
#[utoipa::path(
    get, path = "/api/v1/actions/{name}/queue-stats", tag = "definitions",
    params(("name" = String, Path, description = "Of an action or a flow; of a step without an action, `FLOW/STEP`.")),
    responses(
        (status = OK, description = "In numbers.", body = QueueStats),
        (status = NOT_FOUND, description = "There is no such action or flow.", body = Problem),
    )
)]
pub async fn get(State(app): State<App>, Named(name): Named<String>) -> Result<Json<QueueStats>, Problem> {
    let stats = app.tide.engine().name_stats(Name::new(&name)).await.map_err(Error::from)?;
    let missing = || Problem::not_found(format!("there is no action or flow `{}`", super::short(&name)));
    stats.map(|stats| Json(QueueStats::of(&stats))).ok_or_else(missing)
}
