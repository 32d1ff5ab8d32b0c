//! Whether the next commit should wait for a moment, so that one commit serves those that end together.
//!
//! Attempts that were handed over after one commit and do little end almost at once, but not all in the same instant. If
//! the first of them has a commit to itself, the others wait for all of it before theirs can begin: from then on they
//! go in two groups that wait for each other, and each limit is used half. So the next commit waits until all of them
//! have ended, for a part of the time that a commit takes. Where that did not help, it is not tried for a while.

use std::time::{Duration, Instant};

/// Of the time that a commit takes, this part may be waited.
const PART: u32 = 2;
const LONGEST: Duration = Duration::from_millis(1);
/// Commits, at most, until it is tried again.
const MOST_SKIPPED: u32 = 63;

#[derive(Debug, Default)]
pub(super) struct Gathering {
    begun: Option<Instant>,
    /// A commit has ended, and nobody has asked yet whether to wait.
    is_due: bool,
    /// How long commits take, of late.
    commit: Duration,
    /// Attempts that were handed over after the last commit.
    handed_over: usize,
    /// Attempts that have ended since.
    ended: usize,
    /// Commits after which nothing was waited for, to come and the last time.
    skip: u32,
    skipped: u32,
}

impl Gathering {
    pub(super) fn commit_begins(&mut self, now: Instant) {
        self.begun = Some(now);
    }

    /// Before anything is handed over because of it.
    pub(super) fn commit_ends(&mut self, now: Instant) {
        let took = self.begun.take().map_or(Duration::ZERO, |begun| now - begun);
        self.commit = if self.commit.is_zero() { took } else { (self.commit * 7 + took) / 8 };
        (self.handed_over, self.ended, self.is_due) = (0, 0, true);
    }

    pub(super) fn handed_over(&mut self) {
        self.handed_over += 1;
    }

    pub(super) fn ended(&mut self, attempts: usize) {
        self.ended += attempts;
    }

    /// How long to wait for those that were handed over because of the last commit, if at all. Asked once a commit.
    pub(super) fn patience(&mut self) -> Option<Duration> {
        if !std::mem::take(&mut self.is_due) || self.handed_over < 2 {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        Some((self.commit / PART).min(LONGEST))
    }

    pub(super) fn is_complete(&self) -> bool {
        self.ended >= self.handed_over
    }

    /// It was waited, for all of them or for as long as patience lasted.
    pub(super) fn waited(&mut self) {
        let helped = self.ended * 2 >= self.handed_over;
        self.skipped = if helped { 0 } else { (self.skipped * 2 + 1).min(MOST_SKIPPED) };
        self.skip = self.skipped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A commit of 400 µs after which so many are handed over.
    fn after_commit(gathering: &mut Gathering, handed_over: usize) -> Option<Duration> {
        let now = Instant::now();
        gathering.commit_begins(now);
        gathering.commit_ends(now + Duration::from_micros(400));
        (0..handed_over).for_each(|_| gathering.handed_over());
        gathering.patience()
    }

    #[test]
    fn several_are_waited_for_and_one_is_not() {
        let mut gathering = Gathering::default();
        assert_eq!(after_commit(&mut gathering, 0), None);
        assert_eq!(after_commit(&mut gathering, 1), None);
        assert_eq!(after_commit(&mut gathering, 2), Some(Duration::from_micros(200)));
        assert_eq!(gathering.patience(), None, "not twice for the same");
        gathering.ended(1);
        assert!(!gathering.is_complete());
        gathering.ended(1);
        assert!(gathering.is_complete());
    }

    #[test]
    fn where_it_does_not_help_it_is_tried_less_and_less_often() {
        let mut gathering = Gathering::default();
        let mut waits = 0;
        for _ in 0..1_000 {
            if after_commit(&mut gathering, 10).is_some() {
                waits += 1;
                gathering.ended(4);
                gathering.waited();
            }
        }
        assert_eq!(waits, 6 + (1_000 - 63) / 64);
        while after_commit(&mut gathering, 10).is_none() {}
        gathering.ended(5);
        gathering.waited();
        assert!(after_commit(&mut gathering, 10).is_some(), "it has helped");
    }

    #[test]
    fn nobody_waits_for_long_because_commits_do() {
        let mut gathering = Gathering::default();
        let now = Instant::now();
        gathering.commit_begins(now);
        gathering.commit_ends(now + Duration::from_secs(9));
        (0..2).for_each(|_| gathering.handed_over());
        assert_eq!(gathering.patience(), Some(LONGEST));
    }
}
