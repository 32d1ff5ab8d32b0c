//! What a root is known by outside: the id and the idempotency key it was submitted under.

use crate::contract::Found;
use tidegate_core::ids::{NodeId, RunId};
use tidegate_core::protocol::{Body, Idempotency};

/// Steps and the runs of sub-flows have no id of their own.
pub fn id(body: &Body) -> Option<RunId> {
    match body {
        Body::Job(job) => Some(job.id),
        Body::Run(run) => run.id,
        Body::Step(_) => None,
    }
}

pub fn idempotency(body: &Body) -> Option<&Idempotency> {
    match body {
        Body::Job(job) => job.idempotency.as_ref(),
        Body::Run(run) => run.idempotency.as_ref(),
        Body::Step(_) => None,
    }
}

pub fn found(node: NodeId, body: &Body) -> Option<Found> {
    let content = idempotency(body).map(|idempotency| idempotency.content);
    id(body).map(|id| Found { node, id, content })
}
