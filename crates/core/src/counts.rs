//! What happened since this core began, in numbers. They are looked at by people and decide nothing.

use crate::admission::{ClassId, LimitKey};
use crate::core::Core;
use crate::ids::{Name, NodeId, TaskId};
use crate::nodes::Node;
use crate::state::State;
use crate::time::{Moment, Span};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Bounds of the buckets in which waits are counted. What is longer than the last is counted in one more.
pub const WAIT_BOUNDS: [Span; 14] = [
    Span::millis(1),
    Span::millis(5),
    Span::millis(10),
    Span::millis(50),
    Span::millis(100),
    Span::millis(500),
    Span::seconds(1),
    Span::seconds(5),
    Span::seconds(10),
    Span::seconds(30),
    Span::minutes(1),
    Span::minutes(5),
    Span::minutes(15),
    Span::hours(1),
];

/// Of how many flows and actions numbers are kept, each.
const NAMES_KEPT: usize = 10_000;

/// How long something waited, and how often.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Waits {
    /// So many were no longer than the bound at the same place, and longer than the one before it.
    pub buckets: [u64; WAIT_BOUNDS.len() + 1],
    pub sum: Span,
}

impl Waits {
    pub fn note(&mut self, span: Span) {
        self.buckets[WAIT_BOUNDS.partition_point(|bound| *bound < span)] += 1;
        self.sum = Span(self.sum.0.saturating_add(span.0));
    }

    pub fn add(&mut self, other: &Waits) {
        for (mine, its) in self.buckets.iter_mut().zip(other.buckets) {
            *mine += its;
        }
        self.sum = Span(self.sum.0.saturating_add(other.sum.0));
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// A bound that `percent` of them did not exceed; nothing if there were none, or it is beyond all bounds.
    pub fn percentile(&self, percent: u64) -> Option<Span> {
        let rank = (self.count() * percent).div_ceil(100).max(1);
        let mut counted = 0;
        let at = self.buckets.iter().position(|bucket| {
            counted += bucket;
            counted >= rank
        });
        at.and_then(|at| WAIT_BOUNDS.get(at).copied())
    }
}

/// How many ended in each state.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ends([u64; State::ALL.len()]);

impl Ends {
    pub fn note(&mut self, state: State) {
        self.0[state as usize] += 1;
    }

    /// Those that happened.
    pub fn counted(&self) -> Vec<(State, u64)> {
        let counted = State::ALL.into_iter().map(|state| (state, self.0[state as usize]));
        counted.filter(|(_, count)| *count > 0).collect()
    }
}

/// Of one flow or action.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Numbers {
    /// What it waited for limits before it started.
    pub limit_waits: Waits,
    /// What it waited for a worker that fits and has a free slot.
    pub worker_waits: Waits,
    pub ends: Ends,
}

/// Of everything.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub actions: FxHashMap<Name, Numbers>,
    pub flows: FxHashMap<Name, Numbers>,
    /// Attempts whose lease ended because nobody renewed it.
    pub lost: u64,
    /// What was said under a lease that had passed to somebody else.
    pub fenced: u64,
    /// Submissions that were not accepted.
    pub refused: u64,
}

impl Counts {
    fn of<'a>(map: &'a mut FxHashMap<Name, Numbers>, name: &Name) -> Option<&'a mut Numbers> {
        if !map.contains_key(name) {
            if map.len() >= NAMES_KEPT {
                return None;
            }
            map.insert(name.clone(), Numbers::default());
        }
        map.get_mut(name)
    }
}

impl Core {
    /// An attempt starts that has waited since. Items of a loop wait for their turn in it, which says nothing about limits.
    pub(crate) fn count_start(&mut self, task: TaskId, class: ClassId, since: Moment, now: Moment) {
        if task.index().is_some() {
            return;
        }
        let Some(name) = self.timed_as(task.node) else { return };
        let waited = now.since(since);
        let for_worker = self.waited_for_worker(class, since, now).min(waited);
        if let Some(numbers) = Counts::of(&mut self.counts.actions, &name) {
            numbers.limit_waits.note(Span(waited.0 - for_worker.0));
            numbers.worker_waits.note(for_worker);
        }
    }

    fn waited_for_worker(&self, class: ClassId, since: Moment, now: Moment) -> Span {
        let record = self.admission.class(class);
        let is_slot = |limit| matches!(self.admission.limit(limit).key, LimitKey::Slot(_));
        let at = record.demands.iter().rposition(|demand| is_slot(demand.limit));
        at.map_or(Span::ZERO, |at| record.waited_at(at, since, now))
    }

    /// A job, step or item has ended that had work of its own.
    pub(crate) fn count_end(&mut self, node: NodeId, state: State) {
        let Some(name) = self.timed_as(node) else { return };
        if let Some(numbers) = Counts::of(&mut self.counts.actions, &name) {
            numbers.ends.note(state);
        }
    }

    /// A run that was submitted starts.
    pub(crate) fn count_run_start(&mut self, node: NodeId, now: Moment) {
        let Some(Node::Run(run)) = self.nodes.get(&node) else { return };
        if run.parent.is_none()
            && let Some(numbers) = Counts::of(&mut self.counts.flows, &run.plan.flow.name)
        {
            numbers.limit_waits.note(now.since(run.since));
        }
    }

    /// A run that was submitted has ended.
    pub(crate) fn count_run_end(&mut self, flow: &Name, state: State) {
        if let Some(numbers) = Counts::of(&mut self.counts.flows, flow) {
            numbers.ends.note(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LimitValue;
    use crate::testkit::{Kit, flow, step};

    #[test]
    fn waits_are_counted_in_buckets() {
        let mut waits = Waits::default();
        assert_eq!((waits.count(), waits.percentile(50)), (0, None));
        for millis in [0, 1, 2, 60, 7_200_000] {
            waits.note(Span::millis(millis));
        }
        assert_eq!(waits.buckets[..5], [2, 1, 0, 0, 1]);
        assert_eq!((waits.count(), waits.buckets[WAIT_BOUNDS.len()]), (5, 1));
        assert_eq!(waits.sum, Span::millis(7_200_063));
        let of = |percent| waits.percentile(percent);
        assert_eq!([of(0), of(50), of(80)].map(Option::unwrap), [1, 5, 100].map(Span::millis));
        assert_eq!(of(100), None, "it is beyond all bounds");
        let mut twice = waits.clone();
        twice.add(&waits);
        assert_eq!((twice.count(), twice.sum), (10, waits.sum.times(2)));
    }

    #[test]
    fn a_wait_is_split_into_what_limits_and_what_workers_took() {
        let mut kit = Kit::new(1);
        kit.set(LimitKey::Action("work".into()), Some(LimitValue::Units(1)));
        let (first, second) = (kit.job("work"), kit.job("work"));
        let other = kit.job("other");
        kit.now = kit.now + Span::seconds(2);
        kit.succeed(TaskId::node(first));
        kit.now = kit.now + Span::seconds(3);
        kit.succeed(TaskId::node(second));
        kit.succeed(TaskId::node(other));
        let of = |name: &str| kit.core.counts.actions[&Name::new(name)].clone();
        let work = of("work");
        assert_eq!((work.limit_waits.sum, work.worker_waits.sum), (Span::seconds(2), Span::ZERO));
        assert_eq!(work.ends.counted(), [(State::Succeeded, 2)]);
        let other = of("other");
        assert_eq!((other.limit_waits.sum, other.worker_waits.sum), (Span::ZERO, Span::seconds(5)));
    }

    #[test]
    fn runs_are_counted_by_their_flow_and_steps_by_theirs() {
        let mut kit = Kit::new(1);
        kit.declare(vec![flow("one", vec![step("a")])], Vec::new(), None);
        let run = kit.run("one");
        kit.answer_step(run, 0, crate::protocol::Evaluation::Order(crate::testkit::rendered(None)));
        kit.succeed(TaskId::node(run.step(0)));
        assert_eq!(kit.core.counts.flows[&Name::new("one")].ends.counted(), [(State::Succeeded, 1)]);
        assert_eq!(kit.core.counts.flows[&Name::new("one")].limit_waits.count(), 1);
        assert_eq!(kit.core.counts.actions.len(), 1);
    }
}
