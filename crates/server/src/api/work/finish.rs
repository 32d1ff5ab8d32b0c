//! How attempts ended.

use super::lease::{Handed, LeaseView};
use crate::app::App;
use crate::extract::{Body, Named};
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Instant;
use tidegate::{Error, Name, Refusal, Span};
use tidegate_core::admission::SlotCounts;
use tidegate_core::model::Cause;
use tidegate_core::protocol::{Answer, Command, Failure, Finish, Lease, Outcome, Payload};
use utoipa::ToSchema;

/// What a worker has ended since it last said so.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Finished {
    incarnation: u64,
    #[schema(min_items = 1, max_items = 1000)]
    finished: Vec<Ended>,
}

/// How an attempt ended.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    #[schema(example = "1042#3")]
    task: String,
    #[schema(example = "2.77")]
    epoch: String,
    state: EndState,
    /// What it gives.
    #[serde(default)]
    output: Value,
    /// What went wrong, in a sentence.
    #[serde(default)]
    error: Option<String>,
    /// For `retry: { on: … }` of its action.
    #[serde(default)]
    #[schema(example = "status:503")]
    cause: Option<String>,
    /// Not to be tried again before so many seconds have passed.
    #[serde(default)]
    #[schema(minimum = 0)]
    retry_after: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndState {
    Succeeded,
    /// It is tried again as its action says.
    Failed,
    /// It was told to stop, and has.
    Stopped,
    /// Given back unharmed, at no cost: the worker is about to leave.
    HandedBack,
}

impl Ended {
    fn outcome(self) -> Outcome {
        let given = Some(self.output).filter(|output| !output.is_null());
        let output = given.map(|output| Payload::new(output.to_string()));
        match self.state {
            EndState::Succeeded => Outcome::Succeeded(output.unwrap_or_else(Payload::null)),
            EndState::Stopped => Outcome::Stopped,
            EndState::HandedBack => Outcome::HandedBack,
            EndState::Failed => {
                let seconds = self.retry_after.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
                Outcome::Failed(Failure {
                    error: self.error.unwrap_or_else(|| "it gave no reason".to_owned()),
                    output,
                    cause: self.cause.map(|cause| Cause(Name::from(cause))),
                    retry_after: seconds.map(|seconds| Span::micros((seconds * 1_000_000.0) as u64)),
                })
            }
        }
    }
}

/// What became of it.
#[derive(Serialize, ToSchema)]
pub struct Told {
    /// These have ended so, durably.
    accepted: Vec<LeaseView>,
    /// These had passed to somebody else: nothing has changed.
    stale: Vec<LeaseView>,
    /// What else there is for the worker, without waiting for it.
    #[serde(flatten)]
    handed: Handed,
}

/// Say how attempts ended. It is durable when this is answered; what is stale changes nothing.
#[utoipa::path(
    post, path = "/api/v1/workers/{name}/finish", tag = "workers", request_body = Finished,
    params(("name" = String, Path, description = "As it joined.")),
    responses(
        (status = OK, description = "What became of each.", body = Told),
        (status = UNPROCESSABLE_ENTITY, description = "One of these is no task: nothing has changed.", body = Problem),
    )
)]
pub async fn finish(
    State(app): State<App>,
    Named(name): Named<String>,
    Body(finished): Body<Finished>,
) -> Result<Json<Told>, Problem> {
    let (arrived, worker) = (Instant::now(), Name::new(&name));
    let mut commands = Vec::with_capacity(finished.finished.len());
    let mut leases = Vec::with_capacity(finished.finished.len());
    for ended in finished.finished {
        let view = LeaseView { task: ended.task.clone(), epoch: ended.epoch.clone() };
        let lease = Lease::try_from(&view)?;
        leases.push(view);
        let outcome = ended.outcome();
        // A worker that hands back is about to leave: it must not get the same thing again.
        let offer = (outcome == Outcome::HandedBack).then(SlotCounts::default);
        commands.push(Command::Finish(Finish { worker: worker.clone(), lease, outcome, offer }));
    }
    let answers = app.tide.engine().insist_on_all(commands).await.map_err(Error::from)?;
    let (mut accepted, mut stale) = (Vec::new(), Vec::new());
    for (lease, answer) in leases.into_iter().zip(answers) {
        match answer {
            Answer::Refused(Refusal::Stale) => stale.push(lease),
            Answer::Refused(refusal) => return Err(Problem::from(refusal)),
            _ => accepted.push(lease),
        }
    }
    let ready = app.staff.known(&worker, finished.incarnation).and_then(|inbox| inbox.take());
    let handed = Handed::of(ready.unwrap_or_default(), arrived);
    Ok(Json(Told { accepted, stale, handed }))
}
