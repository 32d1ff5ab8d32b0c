//! Units: at no instant do more processes run than a limit allows.

use super::{SLACK, Violation};
use crate::world::Plan;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::Asked;
use tidegate_core::admission::LimitKey;
use tidegate_core::ids::{Epoch, Name, NodeId, TaskId};
use tidegate_core::model::{QuotaPolicy, RatePolicy, Work};
use tidegate_core::protocol::Lease;
use tidegate_core::time::{Moment, Span};

#[derive(Debug)]
struct RunningTask {
    label: String,
    demands: Vec<(LimitKey, u32)>,
    granted: Moment,
    root: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// Values in force, with the time from which they may have been.
    capacity: BTreeMap<LimitKey, Vec<(Moment, u32)>>,
    declared: BTreeMap<LimitKey, u32>,
    running: BTreeMap<Lease, RunningTask>,
    steps: BTreeMap<String, StepNeeds>,
    /// How many items of each loop over flows may be at work at once.
    windows: BTreeMap<NodeId, u32>,
    /// The items that runs are inside of.
    items: BTreeMap<String, TaskId>,
    roots: BTreeMap<String, RunTraits>,
    flows: BTreeMap<Name, u32>,
    paces: BTreeMap<Name, (Option<RatePolicy>, Option<QuotaPolicy>)>,
    starts: BTreeMap<Name, Vec<Moment>>,
    runs: u32,
    /// Messages arrive once and in time.
    exact: bool,
    seen: BTreeSet<Epoch>,
    /// Found where nothing could be said at once.
    pub pending: Vec<Violation>,
}

/// What a run is counted by.
#[derive(Debug)]
struct RunTraits {
    flow: Name,
    tags: Vec<(Name, Name)>,
}

#[derive(Clone, Debug)]
struct StepNeeds {
    demands: Vec<(LimitKey, u32)>,
    window: Option<u32>,
    run: String,
    parallel: Option<u32>,
}

impl Limits {
    pub fn new(plan: &Plan) -> Self {
        let mut declared: BTreeMap<LimitKey, u32> =
            plan.limits.pools.iter().map(|pool| (LimitKey::Pool(pool.name.clone()), pool.slots)).collect();
        for limit in &plan.limits.tags {
            if let Some(value) = &limit.value {
                declared.insert(LimitKey::Tag { tag: limit.tag.clone(), value: value.clone() }, limit.limit);
            } else {
                for value in crate::world::KEYS {
                    let key = LimitKey::Tag { tag: limit.tag.clone(), value: value.into() };
                    declared.insert(key, limit.limit);
                }
            }
        }
        for kind in &plan.kinds {
            if let Some(limit) = kind.concurrency {
                declared.insert(LimitKey::Action(kind.action.clone()), limit);
                for key in crate::world::KEYS {
                    declared
                        .insert(LimitKey::ActionKey { action: kind.action.clone(), key: key.into() }, limit);
                }
            }
        }
        Limits {
            declared,
            paces: plan.kinds.iter().map(|k| (k.action.clone(), (k.rate, k.quota.clone()))).collect(),
            runs: plan.limits.runs.unwrap_or(u32::MAX),
            flows: plan.flows.iter().filter_map(|f| Some((f.name.clone(), f.concurrency?))).collect(),
            // A client that asks again, because a server died, may be overtaken by what it asked for next.
            exact: is_orderly(plan),
            ..Limits::default()
        }
    }

    /// A new value may be in force from now on; the old one may be as long as there was no answer.
    pub fn is_changing(&mut self, key: &LimitKey, value: Option<u32>, now: Moment) {
        let value = value.unwrap_or_else(|| self.declared.get(key).copied().unwrap_or(u32::MAX));
        self.capacity.entry(key.clone()).or_default().push((now, value));
    }

    /// The most that may have been in force at any time since then. A lower value evicts nobody, and a change
    /// that was not answered may be in force at any time after it was asked for.
    fn most_since(&self, key: &LimitKey, since: Moment) -> u64 {
        let declared = self.declared.get(key).copied().unwrap_or(u32::MAX);
        let Some(values) = self.capacity.get(key) else { return u64::from(declared) };
        if !self.exact {
            // Where messages are repeated and overtake each other, any value asked for may be the last.
            return u64::from(values.iter().map(|(_, value)| *value).max().unwrap_or(declared).max(declared));
        }
        let mut most = 0;
        let mut in_force = declared;
        for &(at, value) in values {
            // Until it was answered it may not have been in force.
            if at + Span::seconds(12) > since {
                most = most.max(value).max(in_force);
            }
            in_force = value;
        }
        u64::from(most.max(in_force))
    }

    /// Whether everything asked for takes effect in the order in which it was.
    pub fn is_orderly(&self) -> bool {
        self.exact
    }

    pub fn is_steady(&self, key: &LimitKey) -> bool {
        !self.capacity.contains_key(key)
    }

    pub fn run_accepted(&mut self, id: String, flow: Name, tags: Vec<(Name, Name)>) {
        self.roots.insert(id, RunTraits { flow, tags });
    }

    pub fn step_begins(&mut self, run: &str, label: &str, asked: &Asked, step: u32) {
        let model = &asked.flow.steps[step as usize];
        let mut demands: Vec<(LimitKey, u32)> =
            model.pools.iter().map(|(pool, units)| (LimitKey::Pool(pool.clone()), *units)).collect();
        demands.sort();
        let needs = StepNeeds {
            demands,
            window: model.each.as_ref().and_then(|each| each.window),
            run: run.to_owned(),
            parallel: asked.flow.parallel_steps,
        };
        self.steps.insert(label.to_owned(), needs);
        if let (Work::Flow { .. }, Some(window)) = (&model.work, model.window()) {
            self.windows.insert(asked.step_task(step).node, window);
        }
        if asked.inputs.index().is_some() {
            self.items.insert(run.to_owned(), asked.inputs);
        }
    }

    pub fn step_demands(&self, label: &str) -> Vec<(LimitKey, u32)> {
        self.steps.get(step_of(label)).map_or_else(Vec::new, |needs| needs.demands.clone())
    }

    pub fn started(
        &mut self,
        label: &str,
        lease: Lease,
        granted: Moment,
        demands: Vec<(LimitKey, u32)>,
        root: Option<String>,
        now: Moment,
    ) -> Result<Vec<&'static str>, Violation> {
        let mut tested = Vec::new();
        if let Some(other) = self.running.iter().find(|(_, task)| task.label == label) {
            let what = format!("{label} runs twice: {:?} and {:?}", other.0.epoch, lease.epoch);
            return Err(Violation::new("I8", what, now));
        }
        if demands.len() > 1 {
            tested.push("I3");
        }
        self.running
            .insert(lease, RunningTask { label: label.to_owned(), demands: demands.clone(), granted, root });
        for (key, _) in &demands {
            let holders =
                self.running.values().filter(|task| task.demands.iter().any(|(other, _)| other == key));
            let units =
                |task: &RunningTask| task.demands.iter().find(|(other, _)| other == key).map_or(0, |d| d.1);
            let (used, since) = holders.fold((0, now), |(used, since), task| {
                (used + u64::from(units(task)), since.min(task.granted))
            });
            let most = self.most_since(key, since);
            if used > most {
                return Err(Violation::new(
                    "I1",
                    format!("{used} units of {key} in use, {most} allowed"),
                    now,
                ));
            }
            if used == most {
                tested.push("I1");
            }
        }
        self.step_limits(label, &mut tested, now)?;
        self.run_limits(&mut tested, now)?;
        Ok(tested)
    }

    /// Windows of loops, and steps of a run at once.
    fn step_limits(&self, label: &str, tested: &mut Vec<&'static str>, now: Moment) -> Result<(), Violation> {
        let step = step_of(label);
        let Some(needs) = self.steps.get(step) else { return Ok(()) };
        if let Some(window) = needs.window {
            let in_flight = self.running.values().filter(|task| step_of(&task.label) == step).count();
            if in_flight > window as usize {
                return Err(Violation::new(
                    "I12",
                    format!("{in_flight} items of {step}, window {window}"),
                    now,
                ));
            }
            if in_flight == window as usize {
                tested.push("I12");
            }
        }
        self.flows_at_once(&needs.run, tested, now)?;
        if let Some(parallel) = needs.parallel {
            let of_run = |task: &&RunningTask| {
                self.steps.get(step_of(&task.label)).is_some_and(|n| n.run == needs.run)
            };
            let steps: BTreeSet<&str> =
                self.running.values().filter(of_run).map(|task| step_of(&task.label)).collect();
            if steps.len() > parallel as usize {
                let what = format!("{} steps of {} at once, {parallel} allowed", steps.len(), needs.run);
                return Err(Violation::new("I1", what, now));
            }
        }
        Ok(())
    }

    /// Items of a loop over flows, of which something runs inside.
    fn flows_at_once(
        &self,
        run: &String,
        tested: &mut Vec<&'static str>,
        now: Moment,
    ) -> Result<(), Violation> {
        let Some(TaskId { node, .. }) = self.items.get(run) else { return Ok(()) };
        let window = self.windows.get(node).map_or(usize::MAX, |window| *window as usize);
        let runs = self.running.values().filter_map(|task| self.steps.get(step_of(&task.label)));
        let items = runs.filter_map(|needs| self.items.get(&needs.run));
        let at_work: BTreeSet<&TaskId> = items.filter(|item| item.node == *node).collect();
        if at_work.len() > window {
            let what = format!("flows run inside {} items of {node:?}, window {window}", at_work.len());
            return Err(Violation::new("I12", what, now));
        }
        if at_work.len() == window {
            tested.push("I12");
        }
        Ok(())
    }

    /// Runs at once, and runs with a tag.
    fn run_limits(&self, tested: &mut Vec<&'static str>, now: Moment) -> Result<(), Violation> {
        let active: BTreeSet<&String> = self.running.values().filter_map(|task| task.root.as_ref()).collect();
        if active.len() > self.runs as usize {
            return Err(Violation::new(
                "I1",
                format!("{} runs at once, {} allowed", active.len(), self.runs),
                now,
            ));
        }
        if active.len() == self.runs as usize {
            tested.push("I1");
        }
        let mut by_tag: BTreeMap<&(Name, Name), u32> = BTreeMap::new();
        let mut by_flow: BTreeMap<&Name, u32> = BTreeMap::new();
        for run in active.into_iter().filter_map(|root| self.roots.get(root)) {
            run.tags.iter().for_each(|tag| *by_tag.entry(tag).or_default() += 1);
            *by_flow.entry(&run.flow).or_default() += 1;
        }
        for ((tag, value), count) in by_tag {
            let key = LimitKey::Tag { tag: tag.clone(), value: value.clone() };
            let most = self.declared.get(&key).copied().unwrap_or(u32::MAX);
            if count > most {
                return Err(Violation::new("I1", format!("{count} runs with {key}, {most} allowed"), now));
            }
        }
        for (flow, count) in by_flow {
            let most = self.flows.get(flow).copied().unwrap_or(u32::MAX);
            if count > most {
                return Err(Violation::new("I1", format!("{count} runs of {flow}, {most} allowed"), now));
            }
        }
        Ok(())
    }

    pub fn ended(&mut self, _label: &str, lease: Lease) {
        self.running.remove(&lease);
    }

    pub fn is_running(&self, label: &str) -> bool {
        self.running.values().any(|task| task.label == label)
    }

    /// A start that counts for a rate or quota. The time is that of the grant.
    pub fn note_pace(&mut self, label: &str, epoch: Epoch, at: Moment) {
        let Some(action) = label.strip_prefix("job/").and_then(|rest| rest.split('/').next()) else { return };
        let Some((rate, quota)) = self.paces.get(action).cloned() else { return };
        if (rate.is_none() && quota.is_none()) || !self.seen.insert(epoch) {
            return;
        }
        let starts = self.starts.entry(action.into()).or_default();
        starts.push(at);
        starts.sort();
        let starts = starts.clone();
        if let Some(quota) = quota {
            let minute = at.0.div_euclid(60_000_000);
            let in_window = starts.iter().filter(|start| start.0.div_euclid(60_000_000) == minute).count();
            if in_window > quota.limit as usize {
                let what = format!("{in_window} starts of {action} in a minute, {} allowed", quota.limit);
                self.pending.push(Violation::new("I1", what, at));
            }
        }
        if let Some(rate) = rate {
            for (n, &first) in starts.iter().enumerate().filter(|(_, first)| **first <= at) {
                let count = starts[n..].iter().filter(|start| **start <= at).count() as u64;
                // A new leader's clock may step a little.
                let span = at.since(first) + SLACK;
                let most = u64::from(rate.burst) + span.0 * u64::from(rate.limit) / rate.per.0;
                if count > most {
                    let what = format!("{count} starts of {action} in {span}, {most} allowed");
                    self.pending.push(Violation::new("I1", what, at));
                }
            }
        }
    }
}

/// Whether everything asked for takes effect in the order in which it was.
fn is_orderly(plan: &Plan) -> bool {
    let trouble = plan.trouble;
    let messages = trouble.lost + trouble.late + trouble.doubled;
    let servers = trouble.server_pauses + trouble.server_crashes + trouble.ends;
    // Who is not answered soon asks again, perhaps after asking for something else.
    let commits = trouble.unknown_commits + trouble.slow_commits;
    let is_poisoned = plan.embedded && plan.kinds.iter().any(|kind| kind.kills_worker);
    messages + servers + commits == 0 && !is_poisoned
}

pub(crate) fn step_of(label: &str) -> &str {
    label.split_once('#').map_or(label, |(step, _)| step)
}
