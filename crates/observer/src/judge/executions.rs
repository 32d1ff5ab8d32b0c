//! Starts and ends, put together: who ran what, from when to when.

use super::{Verdict, Violation};
use crate::case::Case;
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
    /// When it was certainly over, although it had not ended: it was stopped, its lease ended, or its process died.
    pub cut: u64,
    pub claims: [Claim; 2],
}

/// Tells executions apart: process, number and job.
type Identity = (u32, u64, u64);

/// What was written down about executions and processes besides starts. What nobody wrote down never happened.
#[derive(Default)]
struct Ends {
    deaths: HashMap<u32, u64>,
    resumed: HashMap<u32, Vec<u64>>,
    ends: HashMap<Identity, u64>,
    stops: HashMap<Identity, u64>,
    renewed: HashMap<Identity, u64>,
}

impl Ends {
    fn of(records: &[Record]) -> Ends {
        let mut all = Ends::default();
        for record in records {
            let identity = identity(record);
            match record.fact {
                Fact::Died => {
                    let death = all.deaths.entry(record.process).or_insert(record.at);
                    *death = record.at.min(*death);
                }
                Fact::Resumed => all.resumed.entry(record.process).or_default().push(record.at),
                Fact::Ended => drop(all.ends.insert(identity, record.at)),
                Fact::Stopped => drop(all.stops.insert(identity, record.at)),
                Fact::Renewed => {
                    let until = all.renewed.entry(identity).or_default();
                    *until = record.until.max(*until);
                }
                _ => {}
            }
        }
        all
    }

    /// When the process went on after this moment, at which it may have been stopped.
    fn resumed_after(&self, process: u32, at: u64) -> Option<u64> {
        self.resumed.get(&process)?.iter().copied().filter(|resumed| *resumed >= at).min()
    }
}

/// In the order of their starts.
pub(super) struct Executions(pub Vec<Execution>);

impl Executions {
    pub(super) fn of(case: &Case, records: &[Record], verdict: &mut Verdict) -> Executions {
        let mut all = Ends::of(records);
        let starts = records.iter().filter(|record| record.fact == Fact::Started);
        let mut executions: Vec<Execution> =
            starts.map(|start| execution(case, start, &mut all, verdict)).collect();
        let without_start = all.ends.keys().chain(all.stops.keys());
        verdict.violations.extend(without_start.map(|&(_, _, job)| Violation::NoStart { job }));
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

fn execution(case: &Case, start: &Record, all: &mut Ends, verdict: &mut Verdict) -> Execution {
    let (job, identity, never) = (start.job, identity(start), u64::MAX);
    let (end, stop) = (all.ends.remove(&identity), all.stops.remove(&identity));
    let renewed = all.renewed.remove(&identity);
    let lease = if start.until == 0 { never } else { start.until.max(renewed.unwrap_or(0)) };
    let death = all.deaths.get(&start.process).copied().unwrap_or(never);
    let gone = end.unwrap_or(never).min(stop.unwrap_or(never)).min(death);
    verdict.renewed += u64::from(renewed.is_some());
    verdict.lapsed += u64::from(lease < gone);
    if case.overstay > 0 && lease < never {
        let may_end = all.resumed_after(start.process, lease).unwrap_or(lease) + case.overstay;
        if gone > may_end {
            verdict.violations.push(Violation::Overstayed { job, until: lease });
        }
    }
    let cut = lease.min(death).min(stop.unwrap_or(never));
    if start.at > cut {
        verdict.violations.push(Violation::TooLate { job, at: start.at });
    }
    Execution {
        job,
        line: start.line,
        grant: start.execution,
        start: start.at,
        over: end.unwrap_or(never).min(cut).max(start.at),
        has_ended: end.is_some(),
        cut,
        claims: start.claims,
    }
}

fn identity(record: &Record) -> Identity {
    (record.process, record.execution, record.job)
}
