//! Order: nobody is overtaken by whoever ranks after it at the same limit, and nobody waits for ever.

use super::{Job, JobSpec, Oracle, SLACK, Violation};
use tidegate_core::admission::LimitKey;
use tidegate_core::ids::{Epoch, Name};
use tidegate_core::protocol::Lease;
use tidegate_core::time::{Moment, Span};

/// How often those that rank behind a task with several demands may pass it at one of its limits and then at
/// another, once it is the best there. While it is parked under a limit the others go on, for as long as that one is
/// held; after two moves it reserves, and nobody passes it any more.
const MOST_TURNS: usize = 4;

impl Oracle {
    /// Compares a start with those that came before it although they rank after it.
    pub(super) fn judge_order(
        &mut self,
        label: &str,
        lease: Lease,
        granted: Moment,
        now: Moment,
    ) -> Result<(), Violation> {
        let Some(job) = self.jobs.get_mut(label) else { return Ok(()) };
        let is_first = job.first.is_some_and(|(epoch, _)| epoch == lease.epoch);
        let again = job.again.take();
        let job = &self.jobs[label];
        let since = if is_first { Some(job.accepted) } else { again };
        let Some(since) = since.filter(|_| !job.odd) else { return Ok(()) };
        if !self.calm_since(since) || !job.spec.demands.iter().all(|(key, _)| self.limits.is_steady(key)) {
            return Ok(());
        }
        let best_since = since.max(self.outranked_until(job, lease.epoch));
        let mut waited_with_others = false;
        let mut passed = Vec::new();
        for other in self.jobs.values() {
            let Some((epoch, at)) = other.first else { continue };
            if !overtook(job, other, lease.epoch, epoch, at, since) {
                waited_with_others |= other.accepted < granted && ranks_after(other, job);
                continue;
            }
            let same_class = other.spec.action == job.spec.action && other.spec.demands == job.spec.demands;
            let shared = share_a_limit(&other.spec, &job.spec);
            // A task that needs one limit only, and never lacks a worker, stands in that limit's line.
            let stands_there = job.spec.ample && job.spec.demands.len() == 1 && shared;
            if (same_class || stands_there) && !other.odd {
                let what = format!("{} started after {}, which ranks behind it", label, other.spec.label);
                return Err(Violation::new("I4", what, now));
            }
            if shared && at > best_since + SLACK {
                passed.push((epoch, other));
            }
        }
        if job.spec.ample && job.spec.demands.len() > 1 {
            let turns = turns(job, passed);
            if turns > MOST_TURNS {
                let what = format!("{label} was passed at one limit, then at another, {turns} times");
                return Err(Violation::new("I10", what, now));
            }
            self.test("I10");
        }
        if waited_with_others {
            self.test("I4");
        }
        Ok(())
    }

    /// When the last of those that rank before it at one of its limits was granted: only from then on is its wait
    /// bounded. Those whose submitters were not answered yet may rank before it.
    fn outranked_until(&self, job: &Job, mine: Epoch) -> Moment {
        let before = |other: &&Job| ranks_after(job, other) && share_a_limit(&other.spec, &job.spec);
        let known = self.jobs.values().filter(before).filter_map(|other| other.first);
        let shares = |label: &str| self.specs.get(label).is_some_and(|spec| share_a_limit(spec, &job.spec));
        let unknown = self.first.iter().filter(|(label, _)| shares(label)).map(|(_, &first)| first);
        let granted = known.chain(unknown).filter(|(epoch, _)| *epoch < mine);
        granted.map(|(_, at)| at).max().unwrap_or(job.accepted)
    }

    /// A task that fails, or is lost with its worker, does not start again for ever. In a cluster any disturbance may
    /// have cost a start that nobody heard of; within a process only what ran ahead of its commit, or was given up.
    pub(super) fn bounded_starts(&mut self, label: &str, now: Moment) -> Result<(), Violation> {
        let Some(spec) = self.specs.get(label) else { return Ok(()) };
        let deeds = &self.deeds[label];
        let uncounted = if self.embedded { deeds.undone + deeds.given_up } else { self.server_troubles };
        let most = spec.attempts + spec.max_losses + deeds.handed_back + uncounted;
        if deeds.starts > most {
            let what = format!("{label} started {} times, {most} are allowed", deeds.starts);
            return Err(Violation::new("I11", what, now));
        }
        if deeds.starts > 1 {
            self.test("I11");
        }
        Ok(())
    }

    pub(super) fn no_start_after_shutdown(&mut self, worker: &Name, now: Moment) -> Result<(), Violation> {
        let Some(&since) = self.shut_down.get(worker) else { return Ok(()) };
        if now > since + Span::millis(100) {
            return Err(Violation::new(
                "I17",
                format!("{worker} started something after it was told to end"),
                now,
            ));
        }
        Ok(())
    }

    /// What was cancelled, and whose canceller was told so, is not granted any more.
    pub(super) fn no_start_after_cancel(
        &mut self,
        label: &str,
        lease: Lease,
        now: Moment,
    ) -> Result<(), Violation> {
        let done = match self.jobs.get(label) {
            Some(job) => job.cancel_done,
            None => {
                let root = self.root_of(label).and_then(|id| self.root_ids.get(&id).copied());
                root.and_then(|node| self.roots.get(&node)).and_then(|root| root.cancel_done)
            }
        };
        let granted = self.handed.get(&lease).map_or(now, |handed| handed.at);
        match done {
            Some(done) if granted > done + SLACK => {
                let what =
                    format!("{label} was granted {} after its cancel was confirmed", granted.since(done));
                Err(Violation::new("I14", what, now))
            }
            _ => Ok(()),
        }
    }
}

fn share_a_limit(one: &JobSpec, other: &JobSpec) -> bool {
    one.demands.iter().any(|(key, _)| other.demands.iter().any(|(own, _)| own == key))
}

/// Stretches of starts that have a limit of the task in common.
fn turns(job: &Job, mut passed: Vec<(Epoch, &Job)>) -> usize {
    passed.sort_by_key(|(epoch, _)| *epoch);
    let mut turns = 0;
    let mut common: Vec<&LimitKey> = Vec::new();
    for (_, other) in passed {
        let shares = |key: &&LimitKey| other.spec.demands.iter().any(|(its, _)| its == *key);
        common.retain(shares);
        if common.is_empty() {
            turns += 1;
            common = job.spec.demands.iter().map(|(key, _)| key).filter(shares).collect();
        }
    }
    turns
}

fn ranks_after(later: &Job, earlier: &Job) -> bool {
    (-later.spec.priority, later.node) > (-earlier.spec.priority, earlier.node)
}

/// Whether `other` was granted before `job` although it ranks after it and `job` was already waiting.
fn overtook(job: &Job, other: &Job, mine: Epoch, its: Epoch, at: Moment, since: Moment) -> bool {
    ranks_after(other, job) && its < mine && at > since + SLACK
}
