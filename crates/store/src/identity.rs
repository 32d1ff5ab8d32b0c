//! What a root is known by outside: the id and the idempotency key it was submitted under.

use crate::contract::Found;
use tidegate_core::ids::NodeId;
use tidegate_core::protocol::{Body, Idempotency};

pub fn idempotency(body: &Body) -> Option<&Idempotency> {
    match body {
        Body::Job(job) => job.idempotency.as_ref(),
        Body::Run(run) => run.idempotency.as_ref(),
        Body::Step(_) | Body::ItemRun(_) => None,
    }
}

pub fn found(node: NodeId, body: &Body) -> Option<Found> {
    let content = idempotency(body).map(|idempotency| idempotency.content);
    body.id().map(|id| Found { node, id, content })
}
