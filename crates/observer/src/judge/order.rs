//! Jobs of one line begin in the order in which they were accepted.
//!
//! Where one runs at a time that is the order of their starts. Where several do, those that were granted together begin
//! as the operating system likes, and one that is left waiting for a core is passed by any number: so it is the order
//! of their grants, and the question is how many later ones were granted before a job that was first executed under a
//! later grant, because its process died in between. What was executed again counts with its first execution: it keeps
//! its place.

use super::executions::{Execution, Executions};
use super::{Verdict, Violation};
use crate::case::Case;
use crate::record::Record;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

pub(super) fn judge(case: &Case, records: &[Record], executions: &Executions, verdict: &mut Verdict) {
    let places = places(records, &mut verdict.violations);
    let mut lines: BTreeMap<u16, LatestPlaces> = BTreeMap::new();
    let mut begun = HashSet::new();
    let mut by_grant: Vec<&Execution> = executions.0.iter().collect();
    by_grant.sort_by_key(|execution| execution.grant);
    let is_alone = |execution: &&Execution| case.lines.get(&execution.line) == Some(&0);
    let (alone, together) =
        (executions.0.iter().filter(is_alone), by_grant.into_iter().filter(|execution| !is_alone(execution)));
    for execution in alone.chain(together) {
        let Some(&allowed) = case.lines.get(&execution.line) else { continue };
        let Some(&place) = places.get(&execution.job) else { continue };
        if !begun.insert(execution.job) {
            continue;
        }
        verdict.ordered += 1;
        let line = lines.entry(execution.line).or_insert_with(|| LatestPlaces::new(allowed));
        if line.begin(place) {
            let (job, line) = (execution.job, execution.line);
            verdict.violations.push(Violation::OutOfOrder { job, line, overtaken_by: allowed + 1 });
        }
    }
}

/// The place of each job, as far as anybody was told.
fn places(records: &[Record], violations: &mut Vec<Violation>) -> HashMap<u64, u64> {
    let mut places = HashMap::new();
    for record in records.iter().filter(|record| record.order > 0) {
        let first = *places.entry(record.job).or_insert(record.order);
        if first != record.order {
            violations.push(Violation::Moved { job: record.job, first, second: record.order });
        }
    }
    places
}

/// The latest places of a line that have begun: one more than may begin before an earlier one.
struct LatestPlaces {
    allowed: usize,
    latest: BTreeSet<u64>,
}

impl LatestPlaces {
    fn new(allowed: u32) -> LatestPlaces {
        LatestPlaces { allowed: allowed as usize, latest: BTreeSet::new() }
    }

    /// Whether more than are allowed began before this one although they come after it.
    fn begin(&mut self, place: u64) -> bool {
        let is_full = self.latest.len() > self.allowed;
        let is_overtaken = is_full && self.latest.first().is_some_and(|&least| least > place);
        self.latest.insert(place);
        if self.latest.len() > self.allowed + 1 {
            self.latest.pop_first();
        }
        is_overtaken
    }
}
