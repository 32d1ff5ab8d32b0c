//! What the core remembers about each action: who has not started, and how long attempts take.

use crate::core::Core;
use crate::ids::{Name, NodeId};
use crate::model::{Origin, WhenFull};
use crate::protocol::Refusal;
use crate::state::State;
use crate::time::{Moment, Span};
use std::collections::{BTreeSet, VecDeque};

/// Durations remembered of an action, for estimates.
const DURATIONS_KEPT: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct ActionLine {
    /// Accepted root tasks that have not started, by the sequence of their acceptance.
    pub unstarted: BTreeSet<NodeId>,
    pub durations: Durations,
}

/// A line that takes nobody, or only in another's place.
pub(crate) struct FullLine {
    action: Name,
    max_length: u32,
    declared: Origin,
    /// Who has waited longest may be dropped from it.
    pub drops_oldest: bool,
}

impl FullLine {
    pub fn refusal(&self) -> Refusal {
        let FullLine { action, max_length, declared, .. } = self;
        Refusal::LineFull { action: action.clone(), max_length: *max_length, declared: declared.clone() }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Durations(VecDeque<Span>);

impl Durations {
    pub fn note(&mut self, span: Span) {
        if self.0.len() == DURATIONS_KEPT {
            self.0.pop_front();
        }
        self.0.push_back(span);
    }

    /// The duration that `percent` of the remembered ones do not exceed; nothing is guessed from fewer than four.
    pub fn percentile(&self, percent: usize) -> Option<Span> {
        if self.0.len() < 4 {
            return None;
        }
        let mut sorted: Vec<Span> = self.0.iter().copied().collect();
        sorted.sort_unstable();
        sorted.get((sorted.len() - 1) * percent / 100).copied()
    }
}

impl Core {
    /// The line of an action, if it is full.
    pub(crate) fn full_line(&self, action: &Name) -> Option<FullLine> {
        let policy = self.catalog.action(action);
        let line = policy.line;
        let length = self.lines.get(action).map_or(0, |line| line.unstarted.len());
        (length >= line.max_length as usize).then(|| FullLine {
            action: action.clone(),
            max_length: line.max_length,
            declared: policy.origin.clone(),
            drops_oldest: line.when_full == WhenFull::DropOldest && length > 0,
        })
    }

    /// Drops who has waited longest from a line that is still full.
    pub(crate) fn make_room_in_line(&mut self, action: &Name, now: Moment) {
        let oldest = self.lines.get(action).and_then(|line| line.unstarted.first().copied());
        if let (Some(oldest), Some(_)) = (oldest, self.full_line(action)) {
            self.end_unstarted(oldest, State::Refused, Some("dropped from a full line".to_owned()), now);
        }
    }

    pub(crate) fn joined_line(&mut self, action: &Name, node: NodeId) {
        match self.lines.get_mut(action) {
            Some(line) => line.unstarted.insert(node),
            None => self.lines.entry(action.clone()).or_default().unstarted.insert(node),
        };
    }

    pub(crate) fn left_line(&mut self, action: &Name, node: NodeId) {
        if let Some(line) = self.lines.get_mut(action) {
            line.unstarted.remove(&node);
        }
    }

    /// What a task's attempts are timed under: its action, or its step where it has none.
    pub(crate) fn timed_as(&self, node: NodeId) -> Option<Name> {
        if let Some(action) = self.action_of(node) {
            return Some(action.clone());
        }
        let run = self.run(self.step(node)?.run)?;
        Some(Name::new(format!("{}/{}", run.plan.flow.name, self.step_model(node)?.name)))
    }

    pub(crate) fn note_duration(&mut self, node: NodeId, span: Span) {
        if let Some(name) = self.timed_as(node) {
            self.lines.entry(name).or_default().durations.note(span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::Kit;

    #[test]
    fn ten_thousand_may_wait_for_an_action_that_says_nothing_about_its_line() {
        let Kit { mut core, .. } = Kit::new(1);
        let work = Name::new("silent");
        (1..10_000).for_each(|node| core.joined_line(&work, NodeId(node)));
        assert!(core.full_line(&work).is_none());
        core.joined_line(&work, NodeId(10_000));
        let refusal = core.full_line(&work).map(|line| line.refusal());
        assert_eq!(
            refusal,
            Some(Refusal::LineFull { action: work, max_length: 10_000, declared: Origin::default() })
        );
    }

    #[test]
    fn percentiles_need_a_few_durations_and_forget_old_ones() {
        let mut durations = Durations::default();
        (1..=3).for_each(|n| durations.note(Span(n)));
        assert_eq!(durations.percentile(50), None);
        (4..=100).for_each(|n| durations.note(Span(n)));
        assert_eq!(durations.percentile(0), Some(Span(37)));
        assert_eq!(durations.percentile(50), Some(Span(68)));
        assert_eq!(durations.percentile(100), Some(Span(100)));
    }
}
