//! Retention: what ended long ago is deleted, a little at a time, by whoever leads or is asked to.

use super::EngineError;
use super::store_thread::{Asker, Job};
use super::work::Shell;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_store::{Before, KEEP_AT_LEAST, Pruned, Retention, StoreError};
use tokio::sync::oneshot;

/// How often what is old is looked for, and how soon again while there is more.
const EVERY: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_millis(20);
/// How long upkeep waits for a moment when nothing is being committed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Rows deleted at a time. A commit that comes meanwhile waits for as long as that takes, so upkeep takes few.
const UPKEEP_SLICE: u32 = 200;
const ASKED_SLICE: u32 = 2_000;

/// When the next slice goes by itself.
pub(super) struct Upkeep {
    retention: Retention,
    /// Nothing while a slice is under way.
    at: Option<Instant>,
}

impl Upkeep {
    pub(super) fn new(retention: Retention, now: Instant) -> Self {
        Upkeep { retention: retention.at_least(KEEP_AT_LEAST), at: Some(now + SOON) }
    }

    /// What is at hand when the lead has changed comes first.
    pub(super) fn lead_changed(&mut self, now: Instant) {
        self.at = Some(now + SOON);
    }

    /// When to look for what is old next; while something is being committed, when to do so nevertheless.
    pub(super) fn next(&self, is_committing: bool) -> Option<Instant> {
        let patience = if is_committing { PATIENCE } else { Duration::ZERO };
        self.at.filter(|_| self.retention != Retention::FOREVER).map(|at| at + patience)
    }

    /// Whether it is time; then the next slice waits until this one is done.
    fn begin(&mut self, now: Instant, is_committing: bool) -> bool {
        let is_due = self.next(is_committing).is_some_and(|at| at <= now);
        if is_due {
            self.at = None;
        }
        is_due
    }

    pub(super) fn done(&mut self, now: Instant, pruned: &Result<Pruned, StoreError>) {
        let pause = if matches!(pruned, Ok(pruned) if pruned.rows > 0) { SOON } else { EVERY };
        self.at = Some(now + pause);
    }
}

impl Shell {
    pub(super) fn prune_if_due(&mut self, now: Instant) {
        let may_prune = self.server.leads() && !self.is_kept();
        if may_prune && self.upkeep.begin(now, self.patience.is_committing()) {
            let before = self.upkeep.retention.before(self.engine_now());
            self.prune(before, UPKEEP_SLICE, None);
        }
    }

    /// Somebody's wish: a slice, whoever leads.
    pub(super) fn prune_for(&mut self, before: Before, reply: oneshot::Sender<Result<Pruned, EngineError>>) {
        if self.server.outage().is_some() || self.is_kept() {
            return drop(reply.send(Err(self.unavailable())));
        }
        self.prune(before, ASKED_SLICE, Some(reply));
    }

    fn prune(&mut self, before: Before, most: u32, asked: Asker) {
        self.prunes += 1;
        let _ = self.store_jobs.send(Job::Prune { before, most, asked });
    }

    pub(super) fn pruned(&mut self, pruned: Result<Pruned, StoreError>, asked: Asker) {
        self.prunes -= 1;
        match asked {
            // Whoever asked may have gone away meanwhile.
            Some(reply) => drop(reply.send(pruned.map_err(EngineError::Outage))),
            None => self.upkeep.done(Instant::now(), &pruned),
        }
    }

    /// Whether somebody is about to reuse what has ended, and may mean what would go.
    pub(super) fn is_kept(&self) -> bool {
        Arc::strong_count(&self.kept) > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pruned(rows: u64) -> Result<Pruned, StoreError> {
        Ok(Pruned { roots: 0, rows })
    }

    #[test]
    fn slices_follow_each_other_while_there_is_more() {
        let start = Instant::now();
        let mut upkeep = Upkeep::new(Retention::default(), start);
        assert!(!upkeep.begin(start, false), "what is at hand comes first");
        assert!(upkeep.begin(start + SOON, false));
        assert!(!upkeep.begin(start + EVERY, false), "one is under way");
        upkeep.done(start, &pruned(1));
        assert_eq!(upkeep.next(false), Some(start + SOON));
        for nothing in [pruned(0), Err(StoreError::Unknown("it is locked".to_owned()))] {
            upkeep.done(start, &nothing);
            assert_eq!(upkeep.next(false), Some(start + EVERY));
        }
    }

    #[test]
    fn commits_come_first_but_not_for_ever() {
        let start = Instant::now();
        let mut upkeep = Upkeep::new(Retention::default(), start);
        let last = start + SOON + PATIENCE;
        assert!(!upkeep.begin(last - Duration::from_millis(1), true));
        assert_eq!(upkeep.next(true), Some(last), "so that nobody looks at the clock all the time");
        assert!(upkeep.begin(start + SOON, false));
        upkeep.lead_changed(start);
        assert!(upkeep.begin(last, true));
    }

    #[test]
    fn whoever_keeps_everything_looks_for_nothing() {
        let start = Instant::now();
        let mut upkeep = Upkeep::new(Retention::FOREVER, start);
        assert_eq!(upkeep.next(false), None);
        assert!(!upkeep.begin(start + EVERY, false));
    }
}
