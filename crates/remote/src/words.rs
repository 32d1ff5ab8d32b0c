//! What a worker and a server say to each other, as JSON: the fields of the API, as its description has them.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidegate_core::ids::{Name, RunId};
use tidegate_core::protocol::{Attempt, Failure, Lease, Outcome, Payload};
use tidegate_core::time::Span;
use tidegate_worker::{Join, order};

#[derive(Serialize)]
pub struct NewWorker<'a> {
    pub name: &'a str,
    pub actions: &'a [Name],
    pub queues: &'a [Name],
    pub labels: &'a [Name],
    pub slots: u32,
    pub process_slots: u32,
    pub has_runners: bool,
    pub incarnation: u64,
}

impl<'a> NewWorker<'a> {
    pub fn of(join: &'a Join) -> NewWorker<'a> {
        NewWorker {
            name: join.name.as_str(),
            actions: &join.functions,
            queues: &join.queues,
            labels: &join.labels,
            slots: join.slots.io,
            process_slots: join.slots.process,
            has_runners: join.slots.io > 0,
            incarnation: join.incarnation,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeaseWord {
    pub task: String,
    pub epoch: String,
}

impl From<&Lease> for LeaseWord {
    fn from(lease: &Lease) -> LeaseWord {
        LeaseWord { task: lease.task.to_string(), epoch: lease.epoch.to_string() }
    }
}

impl LeaseWord {
    pub fn read(&self) -> Option<Lease> {
        Some(Lease { task: self.task.parse().ok()?, epoch: self.epoch.parse().ok()? })
    }
}

/// Those that can be read.
pub fn leases(words: &[LeaseWord]) -> Vec<Lease> {
    words.iter().filter_map(LeaseWord::read).collect()
}

#[derive(Deserialize)]
pub struct Handed {
    pub attempts: Vec<AttemptWord>,
    pub stop: Vec<LeaseWord>,
}

#[derive(Deserialize)]
pub struct AttemptWord {
    #[serde(flatten)]
    lease_of: LeaseWord,
    run: String,
    attempt: u32,
    lease: f64,
    /// From when the request was sent.
    pub lease_left: f64,
    action: Option<Name>,
    input: Option<Box<RawValue>>,
    order: Option<Box<RawValue>>,
}

impl AttemptWord {
    pub fn read(&self) -> Option<(Attempt, RunId)> {
        let payload = |value: &Option<Box<RawValue>>| {
            value.as_ref().map_or_else(Payload::null, |value| Payload::new(value.get()))
        };
        let order = match &self.action {
            Some(action) => order::call(action, &payload(&self.input)),
            None => payload(&self.order),
        };
        let (length, left) = (span(self.lease)?, span(self.lease_left)?);
        let attempt = Attempt {
            lease: self.lease_of.read()?,
            order,
            length,
            left: left.min(length),
            number: self.attempt,
        };
        Some((attempt, RunId::parse(&self.run)?))
    }
}

/// Of seconds.
pub fn span(seconds: f64) -> Option<Span> {
    (seconds.is_finite() && seconds >= 0.0).then(|| Span::micros((seconds * 1_000_000.0) as u64))
}

#[derive(Serialize)]
pub struct Having {
    pub incarnation: u64,
    pub has: Vec<LeaseWord>,
}

#[derive(Deserialize)]
pub struct Kept {
    pub renewed: Vec<LeaseWord>,
    pub stop: Vec<LeaseWord>,
}

#[derive(Serialize)]
pub struct Finished {
    pub incarnation: u64,
    pub finished: Vec<Ended>,
}

#[derive(Serialize)]
pub struct Ended {
    #[serde(flatten)]
    pub lease: LeaseWord,
    state: &'static str,
    output: Option<Box<RawValue>>,
    error: Option<String>,
    cause: Option<Name>,
    retry_after: Option<f64>,
}

impl Ended {
    pub fn of(lease: &Lease, outcome: Outcome) -> Ended {
        let state = match outcome {
            Outcome::Succeeded(_) => "succeeded",
            Outcome::Failed(_) => "failed",
            Outcome::Stopped => "stopped",
            Outcome::HandedBack => "handed_back",
        };
        let Failure { error, output, cause, retry_after } = match outcome {
            Outcome::Succeeded(output) => Failure { output: Some(output), ..Failure::default() },
            Outcome::Failed(failure) => failure,
            Outcome::Stopped | Outcome::HandedBack => Failure::default(),
        };
        Ended {
            lease: lease.into(),
            state,
            output: output.as_ref().and_then(raw),
            error: Some(error).filter(|error| !error.is_empty()),
            cause: cause.map(|cause| cause.0),
            retry_after: retry_after.map(|span| span.0 as f64 / 1_000_000.0),
        }
    }
}

fn raw(payload: &Payload) -> Option<Box<RawValue>> {
    RawValue::from_string(std::str::from_utf8(payload.bytes()).ok()?.to_owned()).ok()
}

#[derive(Deserialize)]
pub struct Told {
    pub accepted: Vec<LeaseWord>,
    pub stale: Vec<LeaseWord>,
    #[serde(flatten)]
    pub handed: Handed,
}

#[derive(Serialize)]
pub struct Start {
    pub incarnation: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::ids::{Epoch, NodeId, TaskId};

    #[test]
    fn what_a_server_hands_out_becomes_an_attempt() {
        let text = r#"{"task":"12#3","epoch":"2.7","run":"run_00000000000000000000000001","attempt":2,
            "lease":30.0,"lease_left":12.5,"action":"resize","input":{"n":1.50},"order":null}"#;
        let word: AttemptWord = serde_json::from_str(text).unwrap();
        let (attempt, run) = word.read().unwrap();
        let lease = Lease { task: TaskId::item(NodeId(12), 3), epoch: Epoch { incarnation: 2, grant: 7 } };
        assert_eq!((attempt.lease, attempt.number, run), (lease, 2, RunId(1)));
        assert_eq!((attempt.length, attempt.left), (Span::seconds(30), Span::millis(12_500)));
        let expected = r#"{"call":{"function":"resize","input":{"n":1.50}}}"#;
        assert_eq!(attempt.order.bytes(), expected.as_bytes(), "numbers are as they were");
        assert_eq!(LeaseWord::from(&lease).read(), Some(lease));
    }

    #[test]
    fn how_an_attempt_ended_is_said_whole() {
        let lease = Lease { task: TaskId::node(NodeId(1)), epoch: Epoch { incarnation: 1, grant: 1 } };
        let json = |outcome| serde_json::to_value(Ended::of(&lease, outcome)).unwrap();
        let succeeded = json(Outcome::Succeeded(Payload::new("[1]")));
        assert_eq!((&succeeded["state"], &succeeded["output"][0]), (&"succeeded".into(), &1.into()));
        let failure = Failure { retry_after: Some(Span::seconds(3)), ..Failure::new("no") };
        let failed = json(Outcome::Failed(failure.caused_by("status:503")));
        assert_eq!((&failed["error"], &failed["cause"]), (&"no".into(), &"status:503".into()));
        assert_eq!((&failed["retry_after"], &failed["task"]), (&3.0.into(), &"1".into()));
    }
}
