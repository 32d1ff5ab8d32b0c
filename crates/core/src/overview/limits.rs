//! Limits: what there is of each, how much is taken, and by whom.

use super::MOST_LISTED;
use super::queue::{QueueRow, QueueWanted};
use crate::admission::{Ask, Gauge, LimitId, LimitKey};
use crate::catalog::{AttemptSource, Source};
use crate::core::Core;
use crate::demands::Bound;
use crate::explain::Holder;
use crate::ids::Name;
use crate::model::{Origin, Requirement};
use crate::protocol::Override;
use crate::time::Moment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// One limit as it is now.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LimitView {
    pub key: LimitKey,
    /// What is in force.
    pub bound: Bound,
    /// Units that are held; of a rate or quota, what was taken of it lately.
    pub used: u64,
    /// Tasks that it keeps waiting.
    pub waiting: u64,
    pub paused: bool,
    /// Where it was declared.
    pub origin: Origin,
    /// What was declared, if that is a number.
    pub declared: Option<u64>,
    /// What an operator said instead.
    pub set: Option<Override>,
}

/// A limit with those who hold it and those whom it keeps waiting, as far as they are listed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LimitDetail {
    pub limit: LimitView,
    /// Longest first.
    pub holders: Vec<Holder>,
    /// Best-ranked first.
    pub waiters: Vec<QueueRow>,
}

/// Which limits, in the order of their keys.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LimitsWanted {
    pub only_pools: bool,
    pub after: Option<LimitKey>,
    pub most: u32,
}

impl Core {
    /// Limits that were declared, set or are in use, but for those of single runs and loops. Workers' slots are told with the
    /// workers.
    pub fn limits_view(&self, wanted: &LimitsWanted, now: Moment) -> Vec<LimitView> {
        let mut gauges = self.declared_gauges();
        for (_, limit) in self.admission.limits() {
            gauges.insert(limit.key.clone(), limit.gauge.clone());
        }
        let is_wanted = |key: &LimitKey| match key {
            LimitKey::Steps(_) | LimitKey::Window(_) | LimitKey::Slot(_) => false,
            LimitKey::Pool(_) => true,
            _ => !wanted.only_pools,
        };
        let waiting = self.waiting_under();
        let after = wanted.after.as_ref().map_or(Unbounded, Excluded);
        let some = gauges.range((after, Unbounded)).filter(|(key, _)| is_wanted(key));
        let most = (wanted.most as usize).min(MOST_LISTED);
        some.take(most).map(|(key, gauge)| self.limit_view(key, gauge, &waiting, now)).collect()
    }

    pub fn limit_detail(&self, key: &LimitKey, now: Moment) -> Option<LimitDetail> {
        let known = self.admission.find(key);
        let gauge = match known {
            Some(id) => self.admission.limit(id).gauge.clone(),
            None => self.declared_gauges().remove(key)?,
        };
        let limit = self.limit_view(key, &gauge, &self.waiting_under(), now);
        let mut holders = known.map(|id| self.holders(id, now)).unwrap_or_default();
        holders.truncate(MOST_LISTED);
        let wanted = QueueWanted { limit: Some(key.clone()), most: 100, ..QueueWanted::default() };
        let waiters = self.queue(&wanted, now).rows;
        Some(LimitDetail { limit, holders, waiters })
    }

    fn limit_view(
        &self,
        key: &LimitKey,
        gauge: &Gauge,
        waiting: &BTreeMap<LimitId, u64>,
        now: Moment,
    ) -> LimitView {
        let (bound, used) = match (gauge, key) {
            (Gauge::Units { capacity, used }, _) => (Bound::Units(*capacity), *used),
            (Gauge::Rate(rate), _) => {
                let policy = *rate.policy();
                (Bound::Rate(policy), u64::from(policy.burst.saturating_sub(rate.available(now))))
            }
            (Gauge::Quota(quota), _) => (Bound::Quota(quota.policy().clone()), u64::from(quota.taken(now))),
            (Gauge::Slots(_), LimitKey::Slot(need)) => (Bound::Workers(need.clone()), 0),
            (Gauge::Slots(_), _) => (Bound::Units(0), 0),
        };
        let id = self.admission.find(key);
        let setting = self.catalog.settings.get(key);
        LimitView {
            key: key.clone(),
            bound,
            used,
            waiting: id.and_then(|id| waiting.get(&id).copied()).unwrap_or(0),
            paused: setting.is_some_and(|setting| setting.paused),
            origin: self.origin(key),
            declared: self.declared_capacity(key),
            set: setting.and_then(|setting| setting.set.clone()),
        }
    }

    /// How many tasks stand under each limit.
    pub(super) fn waiting_under(&self) -> BTreeMap<LimitId, u64> {
        let mut waiting = BTreeMap::new();
        for (_, class) in self.admission.classes() {
            if let Some(limit) = self.kept_waiting_by(class) {
                *waiting.entry(limit).or_default() += class.waiting();
            }
        }
        waiting
    }

    /// What every limit that has a name in a file, or was set, would be if somebody asked for it.
    fn declared_gauges(&self) -> BTreeMap<LimitKey, Gauge> {
        let attempt = |action: Option<&Name>, pool: Option<&Name>| {
            let pools = pool.map(|pool| (pool.clone(), 1)).into_iter().collect();
            let needs = Requirement::process();
            Source::Attempt(AttemptSource { action: action.cloned(), key: None, pools, needs, window: None })
        };
        let runs = self.catalog.newest_flows().map(|plan| Source::Run {
            flow: plan.flow.name.clone(),
            key: None,
            tags: Vec::new(),
        });
        let actions = self.catalog.policies().map(|policy| attempt(Some(&policy.action), None));
        let pools = self.catalog.limits.pools.iter().map(|pool| attempt(None, Some(&pool.name)));
        let any_run = Source::Run { flow: Name::new(""), key: None, tags: Vec::new() };
        let sources = runs.chain(actions).chain(pools).chain([any_run]);
        let asks = sources.flat_map(|source| self.catalog.resolve(&source));
        asks.map(|Ask { key, gauge, .. }| (key, gauge)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LimitValue;
    use crate::testkit::{Kit, limits, pool};

    fn wanted(most: u32) -> LimitsWanted {
        LimitsWanted { most, ..LimitsWanted::default() }
    }

    fn told(views: &[LimitView]) -> Vec<String> {
        views.iter().map(|view| format!("{} {:?} {}", view.key, view.bound, view.used)).collect()
    }

    #[test]
    fn limits_are_there_before_anybody_asks_for_them() {
        let mut kit = Kit::new(1);
        kit.declare(Vec::new(), Vec::new(), Some(limits(&[("db", 2), ("gpu", 1)])));
        let views = kit.core.limits_view(&wanted(10), kit.now);
        assert_eq!(told(&views), ["runs Units(10) 0", "pool:db Units(2) 0", "pool:gpu Units(1) 0"]);
        let pools = LimitsWanted { only_pools: true, ..wanted(10) };
        assert_eq!(kit.core.limits_view(&pools, kit.now).len(), 2);
        let next = LimitsWanted { after: Some(views[1].key.clone()), ..wanted(10) };
        assert_eq!(told(&kit.core.limits_view(&next, kit.now)), ["pool:gpu Units(1) 0"]);
        assert_eq!(kit.core.limits_view(&wanted(1), kit.now).len(), 1);
    }

    #[test]
    fn what_an_operator_set_is_in_force() {
        let mut kit = Kit::new(1);
        kit.declare(Vec::new(), Vec::new(), Some(limits(&[("db", 2)])));
        kit.set(pool("db"), Some(LimitValue::Units(7)));
        let detail = kit.core.limit_detail(&pool("db"), kit.now).unwrap();
        assert_eq!((detail.limit.bound, detail.limit.declared), (Bound::Units(7), Some(2)));
        assert_eq!(detail.limit.set.unwrap().value, LimitValue::Units(7));
        assert!(kit.core.limit_detail(&pool("none"), kit.now).is_none());
    }

    #[test]
    fn holders_and_waiters_are_told_with_their_limit() {
        let mut kit = Kit::new(5);
        kit.set(LimitKey::Action("work".into()), Some(LimitValue::Units(1)));
        let first = kit.job("work");
        kit.job("work");
        let detail = kit.core.limit_detail(&LimitKey::Action("work".into()), kit.now).unwrap();
        assert_eq!((detail.limit.used, detail.limit.waiting), (1, 1));
        let name = kit.core.name(crate::ids::TaskId::node(first));
        assert_eq!(detail.holders.iter().map(|holder| &holder.name).collect::<Vec<_>>(), [&name]);
        assert_eq!(detail.waiters.len(), 1);
        assert_ne!(detail.waiters[0].name, name);
    }
}
