//! Attempts, as they are handed out and named.

use super::super::short;
use crate::problem::Problem;
use crate::staff::{Fetched, Waiting};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::{Duration, Instant};
use tidegate::Span;
use tidegate_core::protocol::{Attempt, Lease};
use utoipa::ToSchema;

/// An attempt, as every message about it names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseView {
    #[schema(example = "1042#3")]
    pub task: String,
    #[schema(example = "2.77")]
    pub epoch: String,
}

impl From<Lease> for LeaseView {
    fn from(lease: Lease) -> LeaseView {
        LeaseView { task: lease.task.to_string(), epoch: lease.epoch.to_string() }
    }
}

impl TryFrom<&LeaseView> for Lease {
    type Error = Problem;

    fn try_from(view: &LeaseView) -> Result<Lease, Problem> {
        let wrong = |_| {
            Problem::invalid(format!("`{}` of `{}` is no attempt", short(&view.epoch), short(&view.task)))
        };
        Ok(Lease { task: view.task.parse().map_err(wrong)?, epoch: view.epoch.parse().map_err(wrong)? })
    }
}

/// Something to do.
#[derive(Serialize, ToSchema)]
pub struct AttemptView {
    #[serde(flatten)]
    lease_of: LeaseView,
    /// The run that it belongs to.
    run: String,
    /// Which try this is, from 1.
    attempt: u32,
    /// How long the lease lasts from each renewal on, in seconds.
    lease: f64,
    /// Unless it is renewed, the lease ends so many seconds after this request was sent: whoever has the attempt must have
    /// stopped by then.
    lease_left: f64,
    /// The function that is called.
    action: Option<String>,
    /// What it is called with.
    input: Value,
    /// What a built-in runner is to do, if it is not a function.
    order: Value,
}

impl AttemptView {
    /// `held` is for how long the request was here by now: the worker, which knows when it sent it, must not believe that
    /// it has longer than it has.
    fn of(waiting: Waiting, held: Duration) -> AttemptView {
        let (Attempt { lease, order, length, left, number }, run) = waiting.now();
        let mut order: Value = serde_json::from_slice(order.bytes()).unwrap_or_default();
        let mut call = order.get_mut("call").map(Value::take);
        let input = call.as_mut().and_then(|call| call.get_mut("input")).map(Value::take);
        let action = call.as_ref().and_then(|call| call.get("function")).and_then(Value::as_str);
        AttemptView {
            lease_of: lease.into(),
            run: run.to_string(),
            attempt: number,
            lease: seconds(length),
            lease_left: seconds(left) + held.as_secs_f64(),
            action: action.map(str::to_owned),
            input: input.unwrap_or_default(),
            order: if call.is_none() { order } else { Value::Null },
        }
    }
}

fn seconds(span: Span) -> f64 {
    span.0 as f64 / 1_000_000.0
}

/// What a worker gets when it asks.
#[derive(Serialize, ToSchema)]
pub struct Handed {
    attempts: Vec<AttemptView>,
    /// These are to end; say so with `stopped`.
    stop: Vec<LeaseView>,
}

impl Handed {
    pub fn of(fetched: Fetched, arrived: Instant) -> Handed {
        let held = arrived.elapsed();
        let attempts = fetched.attempts.into_iter().map(|waiting| AttemptView::of(waiting, held));
        Handed { attempts: attempts.collect(), stop: fetched.stop.into_iter().map(LeaseView::from).collect() }
    }
}
