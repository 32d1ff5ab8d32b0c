//! What must not start: something paused, something that has waited too long.

use super::{Oracle, SLACK, Violation};
use std::collections::BTreeMap;
use tidegate_core::admission::LimitKey;
use tidegate_core::protocol::{Lease, Pausable};
use tidegate_core::time::{Moment, Span};

/// Pauses that are known to be in force, and when resumes were last asked for.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    /// Pauses and resumes that were asked for and not answered: they may take effect at any moment.
    pub(super) under_way: usize,
    since: BTreeMap<Pausable, Moment>,
    resumed: BTreeMap<Pausable, Moment>,
}

/// Commands that were sent closer together may arrive in the other order.
const APART: Span = Span::seconds(2);

impl Oracle {
    pub fn pausing(&mut self, now: Moment) {
        self.last_disturbance = now;
        self.pauses.under_way += 1;
    }

    /// A pause was confirmed that was asked for at that time.
    pub fn paused(&mut self, what: Pausable, asked: Moment, now: Moment) {
        self.last_disturbance = now;
        self.pauses.under_way -= 1;
        if self.pauses.resumed.get(&what).is_none_or(|resumed| *resumed + APART < asked) {
            self.pauses.since.insert(what, now);
        }
    }

    pub fn resuming(&mut self, what: &Pausable, now: Moment) {
        self.last_disturbance = now;
        self.pauses.under_way += 1;
        self.pauses.since.remove(what);
        self.pauses.resumed.insert(what.clone(), now);
    }

    pub fn resumed(&mut self, now: Moment) {
        self.last_disturbance = now;
        self.pauses.under_way -= 1;
    }

    /// A paused limit, action or job lets nothing start.
    pub(super) fn no_start_while_paused(
        &mut self,
        label: &str,
        lease: Lease,
        now: Moment,
    ) -> Result<(), Violation> {
        if !self.limits.is_orderly() {
            return Ok(());
        }
        let granted = self.handed.get(&lease).map_or(now, |handed| handed.at);
        let mut closed = self.demands_of(label).into_iter().map(|(key, _)| match key {
            LimitKey::ActionKey { action, .. } | LimitKey::Action(action) => Pausable::Action(action),
            key => Pausable::Limit(key),
        });
        let node = self.jobs.get(label).map(|job| Pausable::Node(job.node));
        let action = self.kind_of(label).map(|kind| Pausable::Action(kind.action.clone()));
        let paused =
            |what: &Pausable| self.pauses.since.get(what).is_some_and(|&since| granted > since + SLACK);
        match closed.find(paused).or(node.filter(paused)).or(action.filter(paused)) {
            Some(what) => Err(Violation::new("I1", format!("{label} started under paused {what:?}"), now)),
            None => Ok(()),
        }
    }

    /// Who has not started within the time it gave does not start any more.
    pub(super) fn no_start_too_late(
        &mut self,
        label: &str,
        lease: Lease,
        now: Moment,
    ) -> Result<(), Violation> {
        let Some(handed) = self.handed.get(&lease).filter(|handed| handed.number == 1) else {
            return Ok(());
        };
        let (Some(job), granted) = (self.jobs.get(label), handed.at) else { return Ok(()) };
        let Some(span) = job.spec.line.start_within else { return Ok(()) };
        if granted > job.accepted + span + SLACK {
            let what = format!("{label} started {} after its acceptance", granted.since(job.accepted));
            return Err(Violation::new("I14", what, now));
        }
        Ok(())
    }
}
