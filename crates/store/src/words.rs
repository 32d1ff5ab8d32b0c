//! Words that stand for values in columns, the same in every database. States have their own in the core.

use tidegate_core::protocol::{Body, DeclaredRow, Stop};

const STOPS: [Stop; 5] =
    [Stop::Cancelled, Stop::TimedOut, Stop::FailedFast, Stop::LoopFailed, Stop::Superseded];

pub fn of_stop(stop: Stop) -> &'static str {
    match stop {
        Stop::Cancelled => "cancelled",
        Stop::TimedOut => "timed_out",
        Stop::FailedFast => "failed_fast",
        Stop::LoopFailed => "loop_failed",
        Stop::Superseded => "superseded",
    }
}

pub fn stop(word: &str) -> Option<Stop> {
    STOPS.into_iter().find(|&stop| of_stop(stop) == word)
}

/// The kind of a task, the action of a job or flow of a run, and the place of a step in its flow or of an item in its loop.
pub fn of_body(body: &Body) -> (&'static str, Option<&str>, Option<u32>) {
    match body {
        Body::Job(job) => ("job", Some(job.action.as_str()), None),
        Body::Run(run) => ("run", Some(run.flow.as_str()), None),
        Body::Step(step) => ("step", None, Some(step.index)),
        Body::ItemRun(body) => ("run", Some(body.run.flow.as_str()), Some(body.index)),
    }
}

/// What a definition is told apart by: kind, name and version.
pub fn of_declared(row: &DeclaredRow) -> (&'static str, &str, u32) {
    match row {
        DeclaredRow::Flow { version, flow } => ("flow", flow.name.as_str(), *version),
        DeclaredRow::Action(row) => ("action", row.action.policy.action.as_str(), row.version),
        DeclaredRow::Limits(_) => ("limits", "", 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back() {
        for known in STOPS {
            assert_eq!(stop(of_stop(known)), Some(known));
        }
        assert_eq!(stop("waiting"), None);
    }
}
