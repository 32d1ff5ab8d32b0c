//! The most units of each limit that were held at once.

use super::executions::Executions;
use super::{Verdict, Violation};
use crate::case::Case;

pub(super) fn judge(case: &Case, executions: &Executions, verdict: &mut Verdict) {
    for (&limit, &capacity) in &case.limits {
        let (units, at) = most_held(limit, executions);
        verdict.held.insert(limit, units);
        if units > capacity {
            verdict.violations.push(Violation::Exceeded { limit, capacity, units, at });
        }
        if units < capacity && case.must_reach {
            verdict.violations.push(Violation::NotReached { limit, capacity, units });
        }
    }
}

/// How many units, and when that was first so.
fn most_held(limit: u32, executions: &Executions) -> (u32, u64) {
    let mut changes: Vec<(u64, i64)> = Vec::new();
    for execution in &executions.0 {
        let claims = execution.claims.iter().filter(|claim| claim.limit == limit);
        let units: i64 = claims.map(|claim| i64::from(claim.units)).sum();
        if units > 0 {
            changes.extend([(execution.start, units), (execution.over, -units)]);
        }
    }
    // At the same moment, what is given back goes first.
    changes.sort_unstable();
    let (mut held, mut most) = (0, (0, 0));
    for (at, change) in changes {
        held += change;
        if held > most.0 {
            most = (held, at);
        }
    }
    (u32::try_from(most.0).unwrap_or(u32::MAX), most.1)
}
