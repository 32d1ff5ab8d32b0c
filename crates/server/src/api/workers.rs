//! Who works.

use super::time;
use crate::app::App;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tidegate::{Error, Name};
use tidegate_core::admission::SlotCounts;
use tidegate_core::overview::{AttemptView, WorkerView};
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
pub struct Worker {
    name: String,
    /// It may be given something: it has not left, and was heard of.
    connected: bool,
    /// When it was last heard of.
    seen: String,
    queues: Vec<String>,
    labels: Vec<String>,
    /// Actions that it has functions for.
    actions: Vec<String>,
    slots: Slots,
    busy: Slots,
    /// What it has.
    attempts: Vec<Attempt>,
}

#[derive(Serialize, ToSchema)]
pub struct Slots {
    process: u32,
    io: u32,
}

impl From<SlotCounts> for Slots {
    fn from(counts: SlotCounts) -> Slots {
        Slots { process: counts.process, io: counts.io }
    }
}

#[derive(Serialize, ToSchema)]
pub struct Attempt {
    task: String,
    since: String,
    /// Until its lease ends, in seconds, unless it is renewed.
    lease_left: f64,
    /// It was told to stop.
    stopping: bool,
}

impl From<&AttemptView> for Attempt {
    fn from(view: &AttemptView) -> Attempt {
        Attempt {
            task: view.name.clone(),
            since: time(view.since),
            lease_left: view.lease_left.0 as f64 / 1_000_000.0,
            stopping: view.stopping,
        }
    }
}

impl From<WorkerView> for Worker {
    fn from(view: WorkerView) -> Worker {
        let names = |names: &[Name]| names.iter().map(Name::to_string).collect();
        let (queues, labels, actions) = match &view.skills {
            Some(skills) => (names(&skills.queues), names(&skills.labels), names(&skills.functions)),
            None => Default::default(),
        };
        Worker {
            name: view.name.to_string(),
            connected: view.connected,
            seen: time(view.seen),
            queues,
            labels,
            actions,
            slots: view.slots.into(),
            busy: view.busy.into(),
            attempts: view.attempts.iter().map(Attempt::from).collect(),
        }
    }
}

/// Workers that are known, and what each has.
#[utoipa::path(get, path = "/api/v1/workers", tag = "workers", responses((status = OK, description = "All of them, by name.", body = Vec<Worker>)))]
pub async fn list(State(app): State<App>) -> Result<Json<Vec<Worker>>, Problem> {
    let workers = app.tide.engine().workers().await.map_err(Error::from)?;
    Ok(Json(workers.into_iter().map(Worker::from).collect()))
}
