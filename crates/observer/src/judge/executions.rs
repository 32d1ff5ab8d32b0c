//! Starts and ends, put together: who ran what, from when to when.

use super::{Verdict, Violation};
use crate::record::{Claim, Fact, Record};
use std::collections::HashMap;

#[derive(Clone, Copy, Debug)]
pub(super) struct Execution {
    pub job: u64,
    pub line: u16,
    /// The number of its grant.
    pub grant: u64,
    pub start: u64,
    /// It held what it claims until here: its end, the end of its lease or the death of its process, whatever came
    /// first.
    pub over: u64,
    /// It ran to its end.
    pub has_ended: bool,
    /// When it was certainly over, although it had not ended: the end of its lease, or its process's death.
    pub cut: u64,
    pub claims: [Claim; 2],
}

/// In the order of their starts.
pub(super) struct Executions(pub Vec<Execution>);

impl Executions {
    pub(super) fn of(records: &[Record], verdict: &mut Verdict) -> Executions {
        let mut deaths: HashMap<u32, u64> = HashMap::new();
        let mut ends: HashMap<(u32, u64, u64), u64> = HashMap::new();
        for record in records {
            match record.fact {
                Fact::Died => {
                    let death = deaths.entry(record.process).or_insert(record.at);
                    *death = record.at.min(*death);
                }
                Fact::Ended => drop(ends.insert(identity(record), record.at)),
                _ => {}
            }
        }
        let mut executions = Vec::new();
        for record in records.iter().filter(|record| record.fact == Fact::Started) {
            let end = ends.remove(&identity(record));
            let lease = if record.until == 0 { u64::MAX } else { record.until };
            let cut = lease.min(deaths.get(&record.process).copied().unwrap_or(u64::MAX));
            if record.at > cut {
                verdict.violations.push(Violation::TooLate { job: record.job, at: record.at });
            }
            executions.push(Execution {
                job: record.job,
                line: record.line,
                grant: record.execution,
                start: record.at,
                over: end.unwrap_or(u64::MAX).min(cut).max(record.at),
                has_ended: end.is_some(),
                cut,
                claims: record.claims,
            });
        }
        verdict.violations.extend(ends.keys().map(|&(_, _, job)| Violation::NoStart { job }));
        verdict.executions = executions.len() as u64;
        verdict.cut_short = executions.iter().filter(|execution| !execution.has_ended).count() as u64;
        executions.sort_by_key(|execution| (execution.start, execution.job));
        Executions(executions)
    }

    /// By job, in the order of their starts.
    pub(super) fn by_job(&self) -> HashMap<u64, Vec<&Execution>> {
        let mut jobs: HashMap<u64, Vec<&Execution>> = HashMap::new();
        for execution in &self.0 {
            jobs.entry(execution.job).or_default().push(execution);
        }
        jobs
    }
}

fn identity(record: &Record) -> (u32, u64, u64) {
    (record.process, record.execution, record.job)
}
