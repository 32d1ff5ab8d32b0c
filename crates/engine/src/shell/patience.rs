//! How long callers wait for a store that does not answer. Then they are told so; what they asked for may still happen.

use super::EngineError;
use super::errands::is_urgent;
use super::request::Errand;
use super::store_thread::Lookups;
use super::work::Shell;
use std::time::{Duration, Instant};
use tidegate_store::StoreError;

/// Longer than any commit takes that ends well, and than it takes to find out who leads.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Since when the store has been asked in vain.
#[derive(Default)]
pub(super) struct Patience {
    commit: Option<Instant>,
    outage: Option<Instant>,
}

impl Patience {
    pub(super) fn commit_begins(&mut self, now: Instant) {
        self.commit.get_or_insert(now);
    }

    pub(super) fn commit_ends(&mut self) {
        self.commit = None;
    }

    pub(super) fn is_committing(&self) -> bool {
        self.commit.is_some()
    }

    pub(super) fn outage(&mut self, is_out: bool, now: Instant) {
        self.outage = is_out.then(|| self.outage.unwrap_or(now));
    }

    fn ends(&self) -> Option<Instant> {
        self.commit.into_iter().chain(self.outage).min().map(|since| since + ANSWER_WITHIN)
    }

    pub(super) fn is_over(&self) -> bool {
        self.ends().is_some_and(|end| end <= Instant::now())
    }
}

impl Shell {
    /// When to turn away who waits, if anybody does.
    pub(super) fn patience_ends(&self) -> Option<Instant> {
        let waits_for_look_up = || self.lookups.iter().any(|(who, _)| matches!(who, Lookups::Errand(_)));
        self.patience.ends().filter(|_| !self.errands.is_empty() || waits_for_look_up())
    }

    /// Answers everybody who waits, if the store has been asked in vain for too long.
    pub(super) fn turn_callers_away(&mut self) {
        if !self.patience.is_over() {
            return;
        }
        let error = self.stalled();
        for (_, collected) in self.errands.drain() {
            let _ = collected.reply.send(Err(error.clone()));
        }
        let callers = self.lookups.iter_mut().filter(|(who, _)| matches!(who, Lookups::Errand(_)));
        for (who, _) in callers {
            if let Lookups::Errand(errand) = std::mem::replace(who, Lookups::Gone) {
                let _ = errand.reply.send(Err(error.clone()));
            }
        }
    }

    /// Gives back what may still be asked for now.
    pub(super) fn unless_stalled(&self, errand: Errand) -> Option<Errand> {
        if !self.patience.is_over() || is_urgent(&errand.commands) {
            return Some(errand);
        }
        let _ = errand.reply.send(Err(self.stalled()));
        None
    }

    fn stalled(&self) -> EngineError {
        let why = self.server.outage().cloned();
        EngineError::Outage(why.unwrap_or_else(|| StoreError::Unknown("a commit takes too long".to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_from_whatever_began_first_and_only_while_that_lasts() {
        let (mut patience, now) = (Patience::default(), Instant::now());
        assert_eq!(patience.ends(), None);
        patience.outage(true, now + Duration::from_secs(2));
        patience.commit_begins(now + Duration::from_secs(1));
        patience.commit_begins(now + Duration::from_secs(3));
        patience.outage(true, now + Duration::from_secs(4));
        assert_eq!(patience.ends(), Some(now + Duration::from_secs(6)));
        patience.commit_ends();
        assert_eq!(patience.ends(), Some(now + Duration::from_secs(7)));
        patience.outage(false, now);
        assert_eq!(patience.ends(), None);
    }
}
