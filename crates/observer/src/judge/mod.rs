//! The judge: what was promised and what was written down go in, what was broken comes out. It reads no files and asks
//! no store.

mod executions;
mod fates;
mod order;
mod overlap;

use crate::case::Case;
use crate::record::Record;
use executions::Executions;
use serde::Serialize;
use std::collections::BTreeMap;
use thiserror::Error;

/// A promise that was not kept, with the first witness of it.
#[derive(Clone, PartialEq, Eq, Debug, Error, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Violation {
    #[error("limit {limit} allows {capacity} units, and {units} were held at {at}")]
    Exceeded { limit: u32, capacity: u32, units: u32, at: u64 },
    #[error(
        "limit {limit} allows {capacity} units, and no more than {units} were ever held: it was not tested"
    )]
    NotReached { limit: u32, capacity: u32, units: u32 },
    #[error("job {job} was acknowledged and is lost")]
    Lost { job: u64 },
    #[error("job {job} is {rows} times in the history")]
    FinishedTwice { job: u64, rows: u32 },
    #[error("the history says that job {job} succeeded, and nobody ran it to its end")]
    NeverRun { job: u64 },
    #[error("the history says that job {job} did not succeed")]
    GivenUp { job: u64 },
    #[error("job {job} was started again at {at} while the process that ran it lived on")]
    RunTwice { job: u64, at: u64 },
    #[error("job {job} was started {starts} times, {allowed} are allowed")]
    StartedTooOften { job: u64, starts: u32, allowed: u32 },
    #[error("job {job} began after {overtaken_by} or more that were accepted later in line {line}")]
    OutOfOrder { job: u64, line: u16, overtaken_by: u32 },
    #[error("job {job} changed its place in line from {first} to {second}")]
    Moved { job: u64, first: u64, second: u64 },
    #[error("job {job} began at {at}, when its process was dead or its lease was over")]
    TooLate { job: u64, at: u64 },
    #[error("job {job} was still executed long after its lease was over at {until}")]
    Overstayed { job: u64, until: u64 },
    #[error("the record has an end of job {job} without a start")]
    NoStart { job: u64 },
}

/// What was found. It is good only if there are no violations and it saw something.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Verdict {
    pub violations: Vec<Violation>,
    /// The most units of each limit that were held at once.
    pub held: BTreeMap<u32, u32>,
    pub acknowledged: u64,
    /// Jobs whose submission nobody was told about, and that ran all the same.
    pub unacknowledged: u64,
    pub executions: u64,
    /// Executions that did not come to their end.
    pub cut_short: u64,
    /// Executions that were still there when their lease was over.
    pub lapsed: u64,
    /// Executions whose lease was renewed.
    pub renewed: u64,
    /// Starts of the job that was started most often.
    pub most_starts: u32,
    /// Jobs that were executed more than once, for a reason.
    pub run_again: u64,
    /// Jobs that ran to their end more than once, for a reason.
    pub ended_again: u64,
    /// Jobs whose place in line was compared with the moment of their start.
    pub ordered: u64,
    /// Jobs of which the history says that they succeeded.
    pub finished: u64,
}

impl Verdict {
    pub fn is_good(&self) -> bool {
        self.violations.is_empty() && self.executions > 0
    }
}

/// Judges a record, which may be in any order.
pub fn judge(case: &Case, records: &[Record]) -> Verdict {
    let mut verdict = Verdict::default();
    let executions = Executions::of(case, records, &mut verdict);
    overlap::judge(case, &executions, &mut verdict);
    fates::judge(case, records, &executions, &mut verdict);
    order::judge(case, records, &executions, &mut verdict);
    verdict
}
