//! What was declared, what operators set, and what follows from both for a task's demands.

use crate::admission::{Ask, Gauge, Level, LimitKey, Quota, Rate};
use crate::ids::{Name, NodeId};
use crate::model::{
    Action, ActionPolicy, Each, EachLines, Flow, LEASE, LimitsDocument, MatchRule, Origin, QuotaPolicy,
    RatePolicy, Requirement, Rule, Runner,
};
use crate::protocol::{LimitValue, Override};
use crate::time::Span;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A flow with what follows from it.
#[derive(Debug)]
pub(crate) struct Plan {
    pub flow: Arc<Flow>,
    /// For each step, the steps that name it in `after`.
    pub successors: Vec<Vec<u32>>,
}

impl Plan {
    fn new(flow: Arc<Flow>) -> Self {
        let mut successors = vec![Vec::new(); flow.steps.len()];
        for (index, step) in flow.steps.iter().enumerate() {
            for &before in &step.after {
                successors[before as usize].push(index as u32);
            }
        }
        Plan { flow, successors }
    }

    /// Whether a later step ran because this one did not succeed, so that the run need not fail for it.
    pub fn is_handled(&self, index: usize, ran: impl Fn(u32) -> bool) -> bool {
        self.successors[index]
            .iter()
            .any(|&later| matches!(self.flow.steps[later as usize].rule, Rule::States { .. }) && ran(later))
    }
}

/// What a task's demands are resolved from. Tasks with equal sources form a class.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Source {
    Run {
        flow: Name,
        key: Option<Name>,
        tags: Vec<(Name, Name)>,
    },
    Step {
        run: NodeId,
        parallel: u32,
    },
    Attempt(AttemptSource),
    /// An item of a loop over flows: it asks for a place in the window, and for nothing else.
    Window {
        step: NodeId,
        window: u32,
    },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct AttemptSource {
    pub action: Option<Name>,
    pub key: Option<Name>,
    pub pools: Vec<(Name, u32)>,
    pub needs: Requirement,
    pub window: Option<(NodeId, u32)>,
}

impl Source {
    pub fn level(&self) -> Level {
        match self {
            Source::Run { .. } => Level::Run,
            Source::Step { .. } => Level::Step,
            Source::Attempt(_) | Source::Window { .. } => Level::Attempt,
        }
    }

    /// Whether it is carried out by a function inside its worker.
    pub fn is_function(&self) -> bool {
        matches!(self, Source::Attempt(AttemptSource { needs, .. }) if matches!(needs.runner, Runner::Function(_)))
    }
}

/// What operators said about a limit.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Setting {
    pub set: Option<Override>,
    pub paused: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Catalog {
    flows: BTreeMap<Name, BTreeMap<u32, Arc<Plan>>>,
    actions: FxHashMap<Name, BTreeMap<u32, Arc<Action>>>,
    pub limits: LimitsDocument,
    pub settings: BTreeMap<LimitKey, Setting>,
    /// The newest version of any flow or action.
    pub version: u32,
}

impl Catalog {
    // ---- definitions

    /// Every version of every flow, in the order of their names.
    pub fn flow_versions(&self) -> impl Iterator<Item = (&Name, u32)> {
        self.flows.iter().flat_map(|(name, versions)| versions.keys().map(move |&version| (name, version)))
    }

    /// The newest version of a flow that is not newer than `version`.
    pub fn flow(&self, name: &str, version: u32) -> Option<(u32, Arc<Plan>)> {
        let (&version, plan) = self.flows.get(name)?.range(..=version).next_back()?;
        Some((version, plan.clone()))
    }

    pub fn newest(&self, name: &str) -> Option<(u32, Arc<Plan>)> {
        self.flow(name, u32::MAX)
    }

    /// Every flow, in its newest version.
    pub fn newest_flows(&self) -> impl Iterator<Item = &Plan> {
        self.flows.values().filter_map(|versions| versions.values().next_back().map(|plan| &**plan))
    }

    /// What the declared actions say about themselves.
    pub fn policies(&self) -> impl Iterator<Item = &ActionPolicy> {
        self.actions.values().filter_map(newest_of).map(|action| &action.policy)
    }

    /// Every action, in its newest version.
    pub fn newest_actions(&self) -> impl Iterator<Item = (u32, &Action)> {
        self.actions
            .values()
            .filter_map(|versions| versions.last_key_value().map(|(&version, action)| (version, &**action)))
    }

    pub fn add_flow(&mut self, version: u32, flow: Arc<Flow>) {
        self.version = self.version.max(version);
        self.flows.entry(flow.name.clone()).or_default().insert(version, Arc::new(Plan::new(flow)));
    }

    /// What holds for an action, whether or not anybody declared it.
    pub fn action(&self, name: &Name) -> Cow<'_, ActionPolicy> {
        match self.definition(name) {
            Some(action) => Cow::Borrowed(&action.policy),
            None => Cow::Owned(ActionPolicy::silent(name.clone())),
        }
    }

    /// An action as it now is.
    pub fn definition(&self, name: &Name) -> Option<&Arc<Action>> {
        newest_of(self.actions.get(name)?)
    }

    /// What an action was when `version` was the newest of everything; one that came later, as it first was.
    pub fn definition_at(&self, name: &Name, version: u32) -> Option<&Arc<Action>> {
        let versions = self.actions.get(name)?;
        let then = versions.range(..=version).next_back().or_else(|| versions.first_key_value());
        then.map(|(_, action)| action)
    }

    /// The version under which an action is to be kept, unless all of it is known. It is a new one where the action
    /// takes or does something else; its limits hold at once, for whoever calls it.
    pub fn version_of(&self, action: &Action) -> Option<u32> {
        let versions = self.actions.get(&action.policy.action);
        match versions.and_then(|versions| versions.last_key_value()) {
            Some((_, known)) if **known == *action => None,
            Some((&version, known)) if known.does_the_same(action) => Some(version),
            _ => Some(self.version + 1),
        }
    }

    pub fn set_action(&mut self, version: u32, action: Arc<Action>) {
        self.version = self.version.max(version);
        self.actions.entry(action.policy.action.clone()).or_default().insert(version, action);
    }

    // ---- values in force

    fn units(&self, key: &LimitKey, declared: Option<u32>) -> Option<u64> {
        match self.settings.get(key).and_then(|setting| setting.set.as_ref()) {
            Some(Override { value: LimitValue::Units(units), .. }) => Some(u64::from(*units)),
            _ => declared.map(u64::from),
        }
    }

    /// An operator paused something that has no limit of its own: a limit without bound that can be closed.
    fn is_paused(&self, key: &LimitKey) -> bool {
        self.settings.get(key).is_some_and(|setting| setting.paused)
    }

    fn ask_units(&self, asks: &mut Vec<Ask>, key: LimitKey, units: u32, declared: Option<u32>) {
        let capacity = match self.units(&key, declared) {
            Some(capacity) => capacity,
            None if self.is_paused(&key) => u64::MAX,
            None => return,
        };
        asks.push(Ask { key, units, gauge: Gauge::Units { capacity, used: 0 } });
    }

    fn ask_rate(&self, asks: &mut Vec<Ask>, of: Name, key: Option<Name>, declared: Option<RatePolicy>) {
        let key = LimitKey::Rate { of, key };
        let policy = match self.settings.get(&key).and_then(|setting| setting.set.as_ref()) {
            Some(Override { value: LimitValue::Rate(policy), .. }) => Some(*policy),
            _ => declared,
        };
        if let Some(policy) = policy {
            asks.push(Ask { key, units: 1, gauge: Gauge::Rate(Rate::new(policy)) });
        }
    }

    fn ask_quota(&self, asks: &mut Vec<Ask>, of: Name, key: Option<Name>, declared: Option<QuotaPolicy>) {
        let key = LimitKey::Quota { of, key };
        let policy = match self.settings.get(&key).and_then(|setting| setting.set.as_ref()) {
            Some(Override { value: LimitValue::Quota(policy), .. }) => Some(policy.clone()),
            _ => declared,
        };
        if let Some(policy) = policy {
            asks.push(Ask { key, units: 1, gauge: Gauge::Quota(Quota::new(policy)) });
        }
    }

    // ---- resolution

    /// The demands of a source, each with the value now in force.
    pub fn resolve(&self, source: &Source) -> Vec<Ask> {
        let mut asks = Vec::new();
        match source {
            Source::Run { flow, key, tags } => self.resolve_run(&mut asks, flow, key, tags),
            Source::Step { run, parallel } => {
                self.ask_units(&mut asks, LimitKey::Steps(*run), 1, Some(*parallel))
            }
            Source::Attempt(source) => self.resolve_attempt(&mut asks, source),
            Source::Window { step, window } => {
                self.ask_units(&mut asks, LimitKey::Window(*step), 1, Some(*window))
            }
        }
        asks
    }

    fn resolve_run(&self, asks: &mut Vec<Ask>, flow: &Name, key: &Option<Name>, tags: &[(Name, Name)]) {
        self.ask_units(asks, LimitKey::Runs, 1, self.limits.runs);
        for (tag, value) in tags {
            let declared = self.declared_tag(tag, value).map(|(limit, _)| limit);
            self.ask_units(asks, LimitKey::Tag { tag: tag.clone(), value: value.clone() }, 1, declared);
        }
        let declared = self.newest(flow.as_str()).and_then(|(_, plan)| plan.flow.concurrency);
        self.ask_units(asks, LimitKey::Flow { flow: flow.clone(), key: key.clone() }, 1, declared);
    }

    /// The bound on runs with this value of a tag: one for exactly this value wins over one for every value.
    pub fn declared_tag(&self, tag: &Name, value: &Name) -> Option<(u32, &Origin)> {
        let of_tag = || self.limits.tags.iter().filter(|limit| limit.tag == *tag);
        of_tag()
            .find(|limit| limit.value.as_ref() == Some(value))
            .or_else(|| of_tag().find(|limit| limit.value.is_none()))
            .map(|limit| (limit.limit, &limit.origin))
    }

    fn resolve_attempt(&self, asks: &mut Vec<Ask>, source: &AttemptSource) {
        if let Some((step, window)) = source.window {
            self.ask_units(asks, LimitKey::Window(step), 1, Some(window));
        }
        if let Some(action) = &source.action {
            let each = self.each(action);
            match &source.key {
                Some(key) => {
                    let keyed = LimitKey::ActionKey { action: action.clone(), key: key.clone() };
                    self.ask_units(asks, keyed, 1, each.concurrency);
                    self.ask_units(asks, LimitKey::Action(action.clone()), 1, None);
                }
                None => self.ask_units(asks, LimitKey::Action(action.clone()), 1, each.concurrency),
            }
            self.ask_quota(asks, action.clone(), source.key.clone(), each.quota);
            self.ask_rate(asks, action.clone(), source.key.clone(), each.rate);
        }
        // Work that belongs to no action counts in totals over everything.
        let name = source.action.as_ref().map_or("", Name::as_str);
        for rule in self.limits.actions.iter().filter(|rule| rule.matches(name)) {
            self.ask_units(asks, LimitKey::Total(rule.pattern.clone()), 1, rule.total.concurrency);
            self.ask_quota(asks, rule.pattern.clone(), None, rule.total.quota.clone());
            self.ask_rate(asks, rule.pattern.clone(), None, rule.total.rate);
        }
        for (pool, units) in &source.pools {
            // A pool that nobody declared has no slots; that it is named at all is refused before.
            let declared = self.pool(pool).map_or(0, |declared| declared.slots);
            self.ask_units(asks, LimitKey::Pool(pool.clone()), *units, Some(declared));
        }
        let slots = Gauge::Slots(source.needs.slot());
        asks.push(Ask { key: LimitKey::Slot(source.needs.clone()), units: 1, gauge: slots });
    }

    pub fn pool(&self, name: &Name) -> Option<&crate::model::Pool> {
        self.limits.pools.iter().find(|pool| pool.name == *name)
    }

    /// The action's own bounds, then those of the most specific pattern that has one; each part by itself.
    pub fn each(&self, action: &Name) -> Each {
        let own = self.definition(action).map(|action| action.policy.each.clone()).unwrap_or_default();
        let mut rules: Vec<&MatchRule> =
            self.limits.actions.iter().filter(|rule| rule.matches(action.as_str())).collect();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.specificity()));
        Each {
            concurrency: own.concurrency.or_else(|| rules.iter().find_map(|rule| rule.each.concurrency)),
            rate: own.rate.or_else(|| rules.iter().find_map(|rule| rule.each.rate)),
            quota: own.quota.or_else(|| rules.iter().find_map(|rule| rule.each.quota.clone())),
            lines: EachLines::default(),
        }
    }

    /// The key matters only where something counts by it: otherwise every value would be a class of its own.
    pub fn key_that_counts(&self, action: &Name, key: &Option<Name>) -> Option<Name> {
        let key = key.as_ref()?;
        let each = self.each(action);
        let set = LimitKey::ActionKey { action: action.clone(), key: key.clone() };
        let declared = !each.is_silent() && self.action(action).keyed;
        let counts = declared || self.settings.contains_key(&set);
        counts.then(|| key.clone())
    }

    pub fn tags_that_count(&self, tags: &[(Name, Name)]) -> Vec<(Name, Name)> {
        let counts = |(tag, value): &&(Name, Name)| {
            self.declared_tag(tag, value).is_some()
                || self.settings.contains_key(&LimitKey::Tag { tag: tag.clone(), value: value.clone() })
        };
        tags.iter().filter(counts).cloned().collect()
    }

    /// The lease of an attempt: the shortest that its pools ask for, if any asks.
    pub fn lease(&self, source: &Source) -> Span {
        let Source::Attempt(source) = source else { return LEASE };
        let asked = source.pools.iter().filter_map(|(name, _)| self.pool(name)?.lease);
        asked.min().unwrap_or(LEASE)
    }

    /// Where the declared value of a limit stands in the files, if it does. Of one that belongs to a single run or step,
    /// [`Core::origin`](crate::core::Core::origin) knows it.
    pub fn origin(&self, key: &LimitKey) -> Origin {
        let of_rules = |of: &Name, part: Part| {
            let rule = self.limits.actions.iter().find(|rule| rule.pattern == *of)?;
            part(&rule.total).or_else(|| part(&rule.each)).map(|line| rule.origin.on(line))
        };
        let of_action = |action: &Name, part: Part| {
            let own = self.definition(action).map(|action| &action.policy);
            let own = own.and_then(|policy| Some(policy.origin.on(part(&policy.each)?)));
            let rules = self.limits.actions.iter().filter(|rule| rule.matches(action.as_str()));
            let rules =
                rules.filter_map(|rule| Some((rule.specificity(), rule.origin.on(part(&rule.each)?))));
            own.or_else(|| rules.max_by_key(|(specificity, _)| *specificity).map(|(_, origin)| origin))
        };
        let of_pace = |of: &Name, part| of_rules(of, part).or_else(|| of_action(of, part));
        match key {
            LimitKey::Runs => Some(self.limits.runs_origin.clone()),
            LimitKey::Tag { tag, value } => self.declared_tag(tag, value).map(|(_, origin)| origin.clone()),
            LimitKey::Flow { flow, .. } => self.newest(flow.as_str()).map(|(_, plan)| plan.flow.origin()),
            LimitKey::ActionKey { action, .. } | LimitKey::Action(action) => of_action(action, concurrency),
            LimitKey::Total(pattern) => of_rules(pattern, concurrency),
            LimitKey::Pool(name) => self.pool(name).map(|pool| pool.origin.clone()),
            LimitKey::Quota { of, .. } => of_pace(of, |each| each.quota.as_ref().map(|_| each.lines.quota)),
            LimitKey::Rate { of, .. } => of_pace(of, |each| each.rate.map(|_| each.lines.rate)),
            LimitKey::Steps(_) | LimitKey::Window(_) | LimitKey::Slot(_) => None,
        }
        .unwrap_or_default()
    }
}

fn newest_of(versions: &BTreeMap<u32, Arc<Action>>) -> Option<&Arc<Action>> {
    versions.last_key_value().map(|(_, action)| action)
}

/// Whether bounds say something of a kind, and on which line if that is known. Whoever is silent about a part did not
/// declare it.
type Part = fn(&Each) -> Option<Option<u32>>;

fn concurrency(each: &Each) -> Option<Option<u32>> {
    each.concurrency.map(|_| each.lines.concurrency)
}
