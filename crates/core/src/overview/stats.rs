//! Everything in numbers: what waits and runs now, and what happened since this core began.

use super::MOST_LISTED;
use crate::admission::{Gauge, LimitKey, SlotCounts};
use crate::core::Core;
use crate::counts::{Numbers, Waits};
use crate::ids::{Name, TaskId};
use crate::nodes::Node;
use crate::state::State;
use crate::time::{Moment, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Numbers about everything. How many there are depends on what was declared, and never on how much of it there is.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Stats {
    /// How many wait, by the kind of limit that keeps them.
    pub waiting: Vec<(String, u64)>,
    /// How long the one at the head of a line has waited that has waited longest.
    pub oldest: Span,
    pub limits: Vec<LimitStats>,
    /// Those that are connected.
    pub workers: u64,
    pub slots: SlotCounts,
    pub busy: SlotCounts,
    /// Actions, and steps that have none; those with most ends first, as far as they are listed.
    pub actions: Vec<NameStats>,
    pub flows: Vec<NameStats>,
    /// Attempts whose lease ended because nobody renewed it.
    pub lost: u64,
    /// What was said under a lease that had passed to somebody else.
    pub fenced: u64,
    /// Submissions that were not accepted.
    pub refused: u64,
}

/// All limits of one rule together: those per key or tag are as many as there are values.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LimitStats {
    pub rule: String,
    pub used: u64,
    /// Of rates and quotas there is none.
    pub capacity: Option<u64>,
    pub waiting: u64,
}

/// Of one action or flow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NameStats {
    pub name: Name,
    pub waiting: u64,
    pub running: u64,
    /// How long the best-ranked has waited.
    pub first_waits: Option<Span>,
    pub limit_waits: Waits,
    pub worker_waits: Waits,
    pub ends: Vec<(State, u64)>,
    /// How long attempts took that succeeded: what half of them, and nine of ten, did not exceed.
    pub took: Option<(Span, Span)>,
}

/// What is there now of each name.
#[derive(Default)]
struct Present {
    waiting: u64,
    running: u64,
    first_waits: Option<Span>,
}

impl Core {
    pub fn stats(&self, now: Moment) -> Stats {
        let mut waiting = BTreeMap::<&'static str, u64>::new();
        let mut oldest = Span::ZERO;
        for (_, class) in self.admission.classes().filter(|(_, class)| class.waiting() > 0) {
            let kind = self.kept_waiting_by(class).map_or("turn", |id| kind(&self.admission.limit(id).key));
            *waiting.entry(kind).or_default() += class.waiting();
            let waits = class.best().map(|rank| self.has_waited(rank.task(), now));
            oldest = oldest.max(waits.unwrap_or_default());
        }
        let (workers, slots, busy) = self.slots_in_all();
        let present = self.present(now);
        let listed = |numbers| self.listed(numbers, &present);
        Stats {
            waiting: waiting.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect(),
            oldest,
            limits: self.limits_by_rule(),
            workers,
            slots,
            busy,
            actions: listed(&self.counts.actions),
            flows: listed(&self.counts.flows),
            lost: self.counts.lost,
            fenced: self.counts.fenced,
            refused: self.counts.refused,
        }
    }

    /// Numbers about one action or flow; nothing if it was neither declared nor seen.
    pub fn name_stats(&self, name: &Name, now: Moment) -> Option<NameStats> {
        let numbers = self.counts.actions.get(name).or_else(|| self.counts.flows.get(name));
        let present = self.present(now).remove(name);
        let is_known =
            self.catalog.definition(name).is_some() || self.catalog.newest(name.as_str()).is_some();
        if numbers.is_none() && present.is_none() && !is_known {
            return None;
        }
        Some(self.told(name, numbers.unwrap_or(&Numbers::default()), present.as_ref()))
    }

    fn listed(
        &self,
        numbers: &rustc_hash::FxHashMap<Name, Numbers>,
        present: &BTreeMap<Name, Present>,
    ) -> Vec<NameStats> {
        let ended = |numbers: &Numbers| numbers.ends.counted().iter().map(|(_, count)| count).sum::<u64>();
        let mut names: Vec<(&Name, &Numbers)> = numbers.iter().collect();
        names.sort_by(|(a, of_a), (b, of_b)| ended(of_b).cmp(&ended(of_a)).then_with(|| a.cmp(b)));
        names.truncate(MOST_LISTED);
        names.into_iter().map(|(name, numbers)| self.told(name, numbers, present.get(name))).collect()
    }

    fn told(&self, name: &Name, numbers: &Numbers, present: Option<&Present>) -> NameStats {
        let durations = self.lines.get(name).map(|line| &line.durations);
        let took = durations.and_then(|took| Some((took.percentile(50)?, took.percentile(90)?)));
        let nothing = Present::default();
        let present = present.unwrap_or(&nothing);
        NameStats {
            name: name.clone(),
            waiting: present.waiting,
            running: present.running,
            first_waits: present.first_waits,
            limit_waits: numbers.limit_waits.clone(),
            worker_waits: numbers.worker_waits.clone(),
            ends: numbers.ends.counted(),
            took,
        }
    }

    /// What waits and runs, by its name.
    fn present(&self, now: Moment) -> BTreeMap<Name, Present> {
        let mut present = BTreeMap::<Name, Present>::new();
        for (id, class) in self.admission.classes().filter(|(_, class)| class.waiting() > 0) {
            let Some(name) = self.what_of(id) else { continue };
            let here = present.entry(name).or_default();
            here.waiting += class.waiting();
            let waits = class.best().map(|rank| self.has_waited(rank.task(), now));
            here.first_waits = here.first_waits.max(waits);
        }
        for task in self.workers.iter().flat_map(|(_, worker)| worker.attempts.keys()) {
            if let Some(name) = self.timed_as(task.node) {
                present.entry(name).or_default().running += 1;
            }
        }
        for run in self.begun.iter().filter_map(|&node| self.run(node)).filter(|run| run.parent.is_none()) {
            present.entry(run.plan.flow.name.clone()).or_default().running += 1;
        }
        present
    }

    fn has_waited(&self, task: TaskId, now: Moment) -> Span {
        let since = match self.nodes.get(&task.node) {
            Some(Node::Job(job)) => job.work.since,
            Some(Node::Run(run)) => run.since,
            Some(Node::Step(step)) => self.work(task).map_or(step.since, |work| work.since),
            None => now,
        };
        now.since(since)
    }

    fn slots_in_all(&self) -> (u64, SlotCounts, SlotCounts) {
        let (mut count, mut slots, mut busy) = (0, SlotCounts::default(), SlotCounts::default());
        for (name, _) in self.workers.iter().filter(|(_, worker)| worker.connected) {
            count += 1;
            if let Some(known) = self.admission.slots().get(name.as_str()) {
                slots.process += known.slots.process;
                slots.io += known.slots.io;
                busy.process += known.busy.process;
                busy.io += known.busy.io;
            }
        }
        (count, slots, busy)
    }

    fn limits_by_rule(&self) -> Vec<LimitStats> {
        let waiting = self.waiting_under();
        let mut rules = BTreeMap::<String, LimitStats>::new();
        for (id, limit) in self.admission.limits() {
            let (used, capacity) = match &limit.gauge {
                Gauge::Units { capacity, used } => (*used, Some(*capacity)),
                Gauge::Rate(_) | Gauge::Quota(_) => (0, None),
                Gauge::Slots(_) => continue,
            };
            let rule = rule(&limit.key);
            let here =
                rules.entry(rule.clone()).or_insert(LimitStats { rule, used: 0, capacity: None, waiting: 0 });
            here.used += used;
            here.capacity = capacity.map(|units| here.capacity.unwrap_or(0).saturating_add(units));
            here.waiting += waiting.get(&id).copied().unwrap_or(0);
        }
        rules.into_values().take(MOST_LISTED).collect()
    }
}

/// The rule that a limit comes from: one a declaration, whatever keys and tags there are.
fn rule(key: &LimitKey) -> String {
    let keyed = |kind: &str, of: &Name, key: &Option<Name>| match key {
        Some(_) => format!("{kind}:{of}/*"),
        None => format!("{kind}:{of}"),
    };
    match key {
        LimitKey::Tag { tag, .. } => format!("tag:{tag}"),
        LimitKey::Flow { flow, key } => keyed("flow", flow, key),
        LimitKey::Steps(_) => "steps".to_owned(),
        LimitKey::Window(_) => "window".to_owned(),
        LimitKey::ActionKey { action, .. } => format!("action:{action}/*"),
        LimitKey::Quota { of, key } => keyed("quota", of, key),
        LimitKey::Rate { of, key } => keyed("rate", of, key),
        LimitKey::Slot(_) => "workers".to_owned(),
        LimitKey::Runs | LimitKey::Action(_) | LimitKey::Total(_) | LimitKey::Pool(_) => key.to_string(),
    }
}

/// What kind of limit it is, in a word.
fn kind(key: &LimitKey) -> &'static str {
    match key {
        LimitKey::Runs => "runs",
        LimitKey::Tag { .. } => "tag",
        LimitKey::Flow { .. } => "flow",
        LimitKey::Steps(_) => "steps",
        LimitKey::Window(_) => "window",
        LimitKey::ActionKey { .. } | LimitKey::Action(_) => "action",
        LimitKey::Total(_) => "total",
        LimitKey::Pool(_) => "pool",
        LimitKey::Quota { .. } => "quota",
        LimitKey::Rate { .. } => "rate",
        LimitKey::Slot(_) => "workers",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Command, LimitValue};
    use crate::testkit::{Kit, action, job};

    #[test]
    fn limits_per_key_are_one_rule() {
        let mut kit = Kit::new(9);
        kit.declare(Vec::new(), vec![action("work", Some(1), &[])], None);
        for key in ["a", "b", "c"] {
            kit.set(
                LimitKey::ActionKey { action: "work".into(), key: key.into() },
                Some(LimitValue::Units(1)),
            );
        }
        kit.job("work");
        kit.job("work");
        let stats = kit.core.stats(kit.now);
        let rules: Vec<(&str, u64, u64)> =
            stats.limits.iter().map(|limit| (limit.rule.as_str(), limit.used, limit.waiting)).collect();
        assert_eq!(rules, [("action:work", 1, 1)], "nobody asked for a key");
        assert_eq!(stats.waiting, [("action".to_owned(), 1)]);
        assert_eq!((stats.workers, stats.busy.process + stats.busy.io), (1, 1));
        let keyed = LimitKey::ActionKey { action: "work".into(), key: "a".into() };
        assert_eq!(rule(&keyed), "action:work/*");
    }

    #[test]
    fn an_action_is_told_with_what_waits_runs_and_has_ended() {
        let mut kit = Kit::new(1);
        let first = kit.job("work");
        kit.job("work");
        kit.now = kit.now + Span::seconds(4);
        let stats = kit.core.name_stats(&"work".into(), kit.now).unwrap();
        assert_eq!((stats.waiting, stats.running, stats.first_waits), (1, 1, Some(Span::seconds(4))));
        kit.succeed(TaskId::node(first));
        let stats = kit.core.name_stats(&"work".into(), kit.now).unwrap();
        assert_eq!((stats.waiting, stats.running), (0, 1));
        assert_eq!((stats.ends, stats.worker_waits.count()), (vec![(State::Succeeded, 1)], 2));
        assert_eq!(kit.core.name_stats(&"nothing".into(), kit.now), None);
    }

    #[test]
    fn what_was_refused_or_said_too_late_is_counted() {
        let mut kit = Kit::new(1);
        kit.set(LimitKey::Runs, None);
        let mut line = action("work", None, &[]);
        line.policy.line.max_length = 0;
        kit.declare(Vec::new(), vec![line], None);
        let submit = kit.submit(job("work"));
        kit.apply(Command::Submit(submit));
        assert_eq!(kit.core.stats(kit.now).refused, 1);
    }
}
