//! Admission: who may start now, in what order, and who waits for what.
//!
//! A task *asks* with demands; tasks with the same demands form a *class*; the best-ranked of a class is its
//! *head*. A head that is refused is *parked* under the first limit that refuses it and stands in that limit's
//! line. Whatever can make a limit accept more *lists* it; at the end of a command the listed lines and the fresh
//! heads are walked together, by rank. See `docs/concurrency.md` for the contract this keeps.
//!
//! This module knows nothing of runs, leases or time-outs: it is told who asks, who is done and what changed.

mod checks;
mod class;
mod limit;
mod limit_name;
mod lines;
mod quota;
mod rank;
mod rate;
mod slot_lines;
mod slots;
#[cfg(test)]
mod testkit;
mod walk;

pub use class::{Class, ClassId, Demand, Place};
pub use limit::{Gauge, Level, Limit, LimitId, LimitKey};
pub use limit_name::BadLimitName;
pub use quota::Quota;
pub use rank::Rank;
pub use rate::Rate;
pub use slots::{Skills, SlotCounts, Slots, WorkerSlots};
pub use walk::Grant;

use crate::ids::Name;
use crate::model::{QuotaPolicy, RatePolicy, SlotKind};
use crate::planted::{Bug, Planted};
use crate::time::Moment;
use slab::Slab;
use slot_lines::SlotLines;
use std::collections::{BTreeMap, BTreeSet};

/// The constants of the order contract. Tests shrink them, so that rare things happen often.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Moves after which a refused head asks to reserve.
    pub reserve_after: u32,
    /// Most reservers of one limit …
    pub reservers: u64,
    /// … and one for each so many units of its capacity, but always one.
    pub share: u64,
    /// Heads looked at in one command.
    pub walk_max: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Rules { reserve_after: 2, reservers: 16, share: 4, walk_max: 256 }
    }
}

/// What a walk has still to do on one level.
#[derive(Default, Debug)]
struct Pending {
    listed: Vec<LimitId>,
    /// Kinds of slots of which one may be free: all who are in line for one are listed together.
    slots: BTreeSet<SlotKind>,
    fresh: BTreeSet<(Rank, ClassId)>,
    /// The rank looked at last in this command: ranks only ever increase.
    last: Option<Rank>,
}

#[derive(Debug, Default)]
pub struct Admission {
    rules: Rules,
    limits: Slab<Limit>,
    by_key: BTreeMap<LimitKey, LimitId>,
    classes: Slab<Class>,
    slots: Slots,
    slot_lines: SlotLines,
    pending: [Pending; 3],
    /// Rate and quota limits that accept more at a known time, or can be forgotten then.
    wakes: BTreeSet<(Moment, LimitId)>,
    /// Rate and quota limits whose entry in `wakes` may be out of date.
    stale_wakes: Vec<LimitId>,
    pub(crate) planted: Planted,
}

/// One demand by name, as a resolver gives it; the limit is made if it does not exist.
#[derive(Clone, Debug)]
pub struct Ask {
    pub key: LimitKey,
    pub units: u32,
    pub gauge: Gauge,
}

impl Admission {
    pub fn new(rules: Rules) -> Self {
        Admission { rules, ..Admission::default() }
    }

    pub fn limit(&self, id: LimitId) -> &Limit {
        &self.limits[id.0 as usize]
    }

    fn limit_mut(&mut self, id: LimitId) -> &mut Limit {
        &mut self.limits[id.0 as usize]
    }

    pub fn class(&self, id: ClassId) -> &Class {
        &self.classes[id.0 as usize]
    }

    fn class_mut(&mut self, id: ClassId) -> &mut Class {
        &mut self.classes[id.0 as usize]
    }

    pub fn find(&self, key: &LimitKey) -> Option<LimitId> {
        self.by_key.get(key).copied()
    }

    pub fn limits(&self) -> impl Iterator<Item = (LimitId, &Limit)> {
        self.by_key.values().map(|&id| (id, self.limit(id)))
    }

    pub fn classes(&self) -> impl Iterator<Item = (ClassId, &Class)> {
        self.classes.iter().map(|(id, class)| (ClassId(id as u32), class))
    }

    /// Classes that name a limit.
    pub fn users(&self, id: LimitId) -> impl Iterator<Item = ClassId> + '_ {
        self.limit(id).users.iter().copied()
    }

    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    // ---- limits and classes come and go

    /// The limit of that name, made if need be.
    pub fn ensure(&mut self, key: &LimitKey, gauge: impl FnOnce() -> Gauge) -> LimitId {
        if let Some(id) = self.find(key) {
            return id;
        }
        let id = LimitId(self.limits.insert(Limit::new(key.clone(), gauge())) as u32);
        self.by_key.insert(key.clone(), id);
        if let Gauge::Slots(kind) = self.limit(id).gauge {
            let workers = match key {
                LimitKey::Slot(need) => self.slots.fitting(need),
                _ => Vec::new(),
            };
            self.slot_lines.add(id, kind, workers);
        }
        id
    }

    /// Demands in the fixed order in which they are tried, limits made where need be. A limit named twice is one
    /// demand with the sum.
    pub fn demands(&mut self, asks: impl IntoIterator<Item = Ask>) -> Vec<Demand> {
        let mut units = BTreeMap::new();
        for ask in asks {
            let id = self.ensure(&ask.key, || ask.gauge);
            *units.entry((ask.key, id)).or_insert(0u32) += ask.units;
        }
        units.into_iter().map(|((_, limit), units)| Demand { limit, units }).collect()
    }

    /// A new class. The caller sees to it that tasks with the same demands share one.
    pub fn add_class(&mut self, level: Level, demands: &[Demand]) -> ClassId {
        let id = ClassId(self.classes.insert(Class::new(demands.into(), level)) as u32);
        for demand in demands {
            self.limit_mut(demand.limit).users.insert(id);
            self.note_pace(demand.limit);
        }
        self.class_mut(id).aside = self.must_stand_aside(id);
        id
    }

    /// Forgets a class that nobody waits in or holds by, and the limits that nobody names any more. False if
    /// somebody does.
    pub fn remove_class(&mut self, id: ClassId) -> bool {
        if self.class(id).is_used() {
            return false;
        }
        let class = self.classes.remove(id.0 as usize);
        for demand in &class.demands {
            self.limit_mut(demand.limit).users.remove(&id);
            self.forget_limit_if_unused(demand.limit);
        }
        true
    }

    /// Everybody of the class asks for (and, if running, holds) something else from now on: a limit was set,
    /// removed or re-scoped. Running tasks count at once, even above a capacity.
    pub fn change_demands(&mut self, id: ClassId, demands: &[Demand], now: Moment) {
        if *self.class(id).demands == *demands {
            return;
        }
        self.leave(id, false);
        let holders = self.class(id).holders;
        let old = std::mem::replace(&mut self.class_mut(id).demands, demands.into());
        for demand in demands {
            let limit = self.limit_mut(demand.limit);
            limit.users.insert(id);
            if let Gauge::Units { used, .. } = &mut limit.gauge {
                *used += holders * u64::from(demand.units);
            }
            self.note_pace(demand.limit);
        }
        for demand in &old {
            let limit = self.limit_mut(demand.limit);
            if let Gauge::Units { used, .. } = &mut limit.gauge {
                *used -= holders * u64::from(demand.units);
            }
            if !demands.iter().any(|new| new.limit == demand.limit) {
                self.limit_mut(demand.limit).users.remove(&id);
            }
            self.list(demand.limit);
            self.forget_limit_if_unused(demand.limit);
        }
        self.class_mut(id).aside = self.must_stand_aside(id);
        self.refresh(id, Some(now));
    }

    /// A limit that nobody names lives on only while it must remember something: a pause, a pace.
    fn forget_limit_if_unused(&mut self, id: LimitId) {
        let limit = self.limit(id);
        if !limit.users.is_empty() || limit.paused {
            return;
        }
        if limit.is_pace() {
            self.stale_wakes.push(id);
            return;
        }
        self.remove_limit(id);
    }

    fn remove_limit(&mut self, id: LimitId) {
        self.unlist(id);
        let limit = self.limits.remove(id.0 as usize);
        self.by_key.remove(&limit.key);
        self.slot_lines.remove(id);
        if let Some(wake) = limit.wake {
            self.wakes.remove(&(wake, id));
        }
    }

    // ---- asking, leaving, giving back

    /// `count` tasks in a row ask, the first of them ranked `first`.
    pub fn enqueue(&mut self, id: ClassId, first: Rank, count: u32) {
        self.class_mut(id).add(first, count);
        self.refresh(id, None);
    }

    /// A waiting task asks no more. False if it was not waiting here.
    pub fn withdraw(&mut self, id: ClassId, rank: Rank, now: Moment) -> bool {
        let taken = match self.class(id).place {
            Some(place) if place.head == rank => {
                self.pass_on(id, rank, false);
                true
            }
            _ => self.class_mut(id).take(rank),
        };
        self.refresh(id, Some(now));
        taken
    }

    /// Nobody ranked from `first` to `last` asks any more. Says who did, as ranges.
    pub fn withdraw_range(&mut self, id: ClassId, first: Rank, last: Rank, now: Moment) -> Vec<(Rank, u32)> {
        let place = self.class(id).place.filter(|place| (first..=last).contains(&place.head));
        if place.is_some() {
            self.leave(id, false);
        }
        let taken = self.class_mut(id).take_range(first, last);
        if let Some(place) = place {
            self.stand(id, place.at);
        }
        self.refresh(id, Some(now));
        taken
    }

    /// A running task of this class gives back what it holds.
    pub fn release(&mut self, id: ClassId, worker: Option<&Name>) {
        self.drop_holding(id, worker);
        for i in 0..self.class(id).demands.len() {
            let limit = self.class(id).demands[i].limit;
            if !self.limit(limit).is_pace() {
                self.list(limit);
            }
        }
    }

    fn drop_holding(&mut self, id: ClassId, worker: Option<&Name>) {
        let twice = self.planted.strikes(Bug::ReleaseTwice, 3);
        let window_twice = self.planted.strikes(Bug::WindowRefilledTwice, 3);
        let class = &mut self.classes[id.0 as usize];
        class.holders -= 1;
        for demand in &class.demands {
            let limit = &mut self.limits[demand.limit.0 as usize];
            match &mut limit.gauge {
                Gauge::Units { used, .. } => {
                    let again = twice || (window_twice && matches!(limit.key, LimitKey::Window(_)));
                    *used = used.saturating_sub(u64::from(demand.units));
                    if again {
                        *used = used.saturating_sub(u64::from(demand.units));
                    }
                }
                Gauge::Slots(kind) => {
                    if let Some(worker) = worker {
                        self.slots.give_back(worker.as_str(), *kind);
                    }
                }
                Gauge::Rate(_) | Gauge::Quota(_) => {}
            }
        }
    }

    /// A task that runs already is counted here: after a load, or because its demands were resolved anew.
    /// It may push a limit above its capacity; nothing is granted then until enough was given back.
    pub fn hold(&mut self, id: ClassId, worker: Option<&Name>) {
        let class = &mut self.classes[id.0 as usize];
        class.holders += 1;
        for demand in &class.demands {
            match &mut self.limits[demand.limit.0 as usize].gauge {
                Gauge::Units { used, .. } => *used += u64::from(demand.units),
                Gauge::Slots(kind) => {
                    if let Some(worker) = worker {
                        self.slots.take(worker.as_str(), *kind);
                    }
                }
                Gauge::Rate(_) | Gauge::Quota(_) => {}
            }
        }
    }

    // ---- live changes

    pub fn set_capacity(&mut self, id: LimitId, capacity: u64, now: Moment) {
        if let Gauge::Units { capacity: old, .. } = &mut self.limit_mut(id).gauge {
            *old = capacity;
        }
        self.reclassify([id], now);
    }

    /// Brings a limit to the value that a resolver gave it, if that changed. What is used or taken stays so.
    pub fn adopt(&mut self, id: LimitId, gauge: Gauge, now: Moment) {
        match (&self.limit(id).gauge, gauge) {
            (Gauge::Units { capacity: old, .. }, Gauge::Units { capacity, .. }) if *old != capacity => {
                self.set_capacity(id, capacity, now);
            }
            (Gauge::Rate(old), Gauge::Rate(new)) if old.policy() != new.policy() => {
                self.set_rate(id, *new.policy(), now);
            }
            (Gauge::Quota(old), Gauge::Quota(new)) if old.policy() != new.policy() => {
                self.set_quota(id, new.policy().clone(), now);
            }
            _ => {}
        }
    }

    /// Restores what a rate or quota remembers, at load.
    pub fn restore_pace(&mut self, key: &LimitKey, gauge: Gauge) {
        let id = self.ensure(key, || gauge.clone());
        self.limit_mut(id).gauge = gauge;
        self.stale_wakes.push(id);
    }

    pub fn set_rate(&mut self, id: LimitId, policy: RatePolicy, now: Moment) {
        if let Gauge::Rate(rate) = &mut self.limit_mut(id).gauge {
            rate.change(policy, now);
        }
        self.reclassify([id], now);
        self.stale_wakes.push(id);
    }

    pub fn set_quota(&mut self, id: LimitId, policy: QuotaPolicy, now: Moment) {
        if let Gauge::Quota(quota) = &mut self.limit_mut(id).gauge {
            quota.change(policy, now);
        }
        self.reclassify([id], now);
        self.stale_wakes.push(id);
    }

    pub fn set_paused(&mut self, id: LimitId, paused: bool, now: Moment) {
        self.limit_mut(id).paused = paused;
        self.reclassify([id], now);
        self.forget_limit_if_unused(id);
    }

    pub fn set_worker(&mut self, name: &Name, skills: Skills, slots: SlotCounts, now: Moment) {
        let known = self.slots.get(name.as_str());
        if known.is_none_or(|known| known.skills != skills) {
            self.refit_without(name);
            let order = self.slots.set(name, skills.clone(), slots);
            let Admission { limits, slot_lines, .. } = self;
            let fits =
                |id: LimitId| matches!(&limits[id.0 as usize].key, LimitKey::Slot(need) if skills.fit(need));
            slot_lines.refit(&order, fits);
        } else {
            self.slots.set(name, skills, slots);
        }
        self.reclassify_slots(now);
    }

    fn refit_without(&mut self, name: &Name) {
        if let Some(order) = self.slots.order(name.as_str()).cloned() {
            self.slot_lines.refit(&order, |_| false);
        }
    }

    pub fn remove_worker(&mut self, name: &Name, now: Moment) {
        self.refit_without(name);
        self.slots.remove(name.as_str());
        self.reclassify_slots(now);
    }

    fn reclassify_slots(&mut self, now: Moment) {
        self.reclassify(self.slot_lines.limits(), now);
    }

    /// Forgets all places, as a load does: every head is fresh.
    pub fn forget_places(&mut self, now: Moment) {
        let ids: Vec<ClassId> = self.classes().map(|(id, _)| id).collect();
        for id in ids {
            self.leave(id, false);
            self.refresh(id, Some(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testkit::{NOW, class, pool, rate, settle};
    use super::*;
    use crate::model::{QuotaWindow, WhenExhausted};

    #[test]
    fn a_value_that_did_not_change_gives_nobody_anything_to_do() {
        let policy = QuotaPolicy {
            limit: 1,
            window: QuotaWindow::Day,
            zone: "UTC".into(),
            when_busy: WhenExhausted::Wait,
        };
        let key = LimitKey::Quota { of: "mail".into(), key: None };
        let quota = Ask { key, units: 1, gauge: Gauge::Quota(Quota::new(policy)) };
        let mut admission = Admission::default();
        for ask in [pool(), rate(2), quota] {
            class(&mut admission, vec![ask.clone()]);
            settle(&mut admission, NOW);
            let id = admission.find(&ask.key).unwrap();
            admission.adopt(id, ask.gauge, NOW);
            assert!(!admission.is_pending(), "{} is listed", ask.key);
        }
    }
}
