//! What became of each job: nothing acknowledged is lost, nothing is finished twice, and nothing is executed again
//! without a reason.

use super::executions::{Execution, Executions};
use super::{Verdict, Violation};
use crate::case::Case;
use crate::record::{Fact, Record};
use std::collections::BTreeMap;

#[derive(Default)]
struct Fate {
    is_acknowledged: bool,
    finished: u32,
    given_up: u32,
}

pub(super) fn judge(case: &Case, records: &[Record], executions: &Executions, verdict: &mut Verdict) {
    let by_job = executions.by_job();
    let mut fates: BTreeMap<u64, Fate> = by_job.keys().map(|&job| (job, Fate::default())).collect();
    let told = [Fact::Acknowledged, Fact::Found, Fact::Finished, Fact::GivenUp];
    for record in records.iter().filter(|record| told.contains(&record.fact)) {
        let fate = fates.entry(record.job).or_default();
        fate.is_acknowledged |= matches!(record.fact, Fact::Acknowledged | Fact::Found);
        fate.finished += u32::from(record.fact == Fact::Finished);
        fate.given_up += u32::from(record.fact == Fact::GivenUp);
    }
    for (job, fate) in fates {
        let runs = by_job.get(&job).map_or(&[][..], Vec::as_slice);
        count(&fate, runs, verdict);
        judge_fate(case, job, &fate, runs, &mut verdict.violations);
        judge_runs(case, job, runs, &mut verdict.violations);
    }
}

fn count(fate: &Fate, runs: &[&Execution], verdict: &mut Verdict) {
    verdict.acknowledged += u64::from(fate.is_acknowledged);
    verdict.unacknowledged += u64::from(!fate.is_acknowledged && !runs.is_empty());
    verdict.most_starts = verdict.most_starts.max(runs.len() as u32);
    verdict.run_again += u64::from(runs.len() > 1);
    verdict.ended_again += u64::from(runs.iter().filter(|run| run.has_ended).count() > 1);
    verdict.finished += u64::from(fate.finished > 0);
}

fn judge_fate(case: &Case, job: u64, fate: &Fate, runs: &[&Execution], violations: &mut Vec<Violation>) {
    let has_run = runs.iter().any(|run| run.has_ended);
    let rows = fate.finished + fate.given_up;
    let is_there = if case.has_history { rows > 0 } else { has_run };
    if fate.is_acknowledged && !is_there {
        violations.push(Violation::Lost { job });
    }
    if rows > 1 {
        violations.push(Violation::FinishedTwice { job, rows });
    }
    if fate.finished > 0 && !has_run {
        violations.push(Violation::NeverRun { job });
    }
    // The jobs of these records never fail by themselves.
    if fate.given_up > 0 {
        violations.push(Violation::GivenUp { job });
    }
}

fn judge_runs(case: &Case, job: u64, runs: &[&Execution], violations: &mut Vec<Violation>) {
    let starts = runs.len() as u32;
    if starts > case.starts {
        violations.push(Violation::StartedTooOften { job, starts, allowed: case.starts });
    }
    // Only who runs no more may have lost the job: until then nobody else may have it.
    let twice = runs.windows(2).find(|pair| pair[0].cut > pair[1].start);
    violations.extend(twice.map(|pair| Violation::RunTwice { job, at: pair[1].start }));
}
