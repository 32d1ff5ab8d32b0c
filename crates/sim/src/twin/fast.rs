//! The core's admission behind the same commands, driven as the core drives it.

use super::pace::Pace;
use super::scene::{Bound, Command, Need, Parked, Scene, Start};
use std::collections::BTreeMap;
use tidegate_core::admission::{
    Admission, Ask, ClassId, Gauge, Level, LimitId, LimitKey, Quota, Rank, Rate, Rules, SlotCounts,
};
use tidegate_core::ids::Name;
use tidegate_core::time::Moment;

#[derive(Debug)]
pub struct Fast {
    rules: Rules,
    admission: Admission,
    /// The values in force, for limits that are made when somebody needs them.
    limits: Vec<(LimitKey, Bound)>,
    sources: Vec<Vec<Need>>,
    classes: Vec<Option<ClassId>>,
    by_class: BTreeMap<ClassId, usize>,
    waiting: BTreeMap<Rank, usize>,
    running: BTreeMap<Rank, (usize, Option<Name>)>,
    forgetful: bool,
    rebuilds: bool,
    now: Moment,
    looks: u32,
}

impl Fast {
    pub fn new(scene: &Scene) -> Self {
        Fast {
            admission: Admission::new(scene.rules),
            limits: scene.limits.clone(),
            sources: scene.sources.clone(),
            classes: vec![None; scene.sources.len()],
            by_class: BTreeMap::new(),
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            forgetful: scene.forgetful,
            rebuilds: scene.rebuilds,
            rules: scene.rules,
            now: scene.now,
            looks: 0,
        }
    }

    pub fn play(&mut self, command: &Command) -> Vec<Start> {
        let whole = self.admission.begin();
        let mut budget = whole;
        self.change(command);
        let mut starts = Vec::new();
        while let Some(grant) = self.admission.next_grant(Level::Attempt, self.now, &mut budget) {
            let source = self.by_class[&grant.class];
            self.waiting.remove(&grant.rank);
            self.running.insert(grant.rank, (source, grant.worker.clone()));
            starts.push(Start { rank: grant.rank, worker: grant.worker });
        }
        self.looks = whole - budget;
        self.admission.settle_wakes(self.now);
        starts
    }

    fn change(&mut self, command: &Command) {
        let now = self.now;
        match command {
            Command::Enqueue { source, first, count } => self.enqueue(*source, *first, *count),
            Command::Finish(rank) => {
                let Some((source, worker)) = self.running.remove(rank) else { return };
                if let Some(class) = self.classes[source] {
                    self.admission.release(class, worker.as_ref());
                }
                self.forget_if_unused(source);
            }
            Command::Withdraw(rank) => {
                self.withdraw(*rank);
            }
            Command::WithdrawRange { source, first, last } => {
                let Some(class) = self.classes[*source] else { return };
                for (first, count) in self.admission.withdraw_range(class, *first, *last, now) {
                    self.waiting
                        .retain(|rank, _| first.places_to(*rank).is_none_or(|offset| offset >= count));
                }
                self.forget_if_unused(*source);
            }
            Command::Rerank { from, to } => {
                let source = self.withdraw(*from);
                self.enqueue(source, *to, 1);
            }
            Command::SetCapacity { limit, capacity } => {
                self.limits[*limit].1 = Bound::Units(*capacity);
                if let Some(id) = self.find(*limit) {
                    self.admission.set_capacity(id, *capacity, now);
                }
            }
            Command::SetPace { limit, pace } => self.set_pace(*limit, pace),
            Command::SetPaused { limit, paused } => {
                self.set_paused(&self.limits[*limit].0.clone(), *paused);
            }
            Command::Resolve(changes) => {
                changes.iter().for_each(|(source, needs)| self.resolve(*source, needs))
            }
            Command::SetWorker { name, skills, slots } => {
                self.admission.set_worker(name, skills.clone(), *slots, now);
            }
            Command::RemoveWorker(name) => {
                for (_, worker) in self.running.values_mut() {
                    worker.take_if(|worker| worker == name);
                }
                self.admission.remove_worker(name, now);
            }
            Command::Reload if self.rebuilds => self.rebuild(),
            Command::Reload => self.admission.forget_places(now),
            Command::Advance(now) => {
                self.now = *now;
                self.admission.wake(*now);
            }
            Command::Together(commands) => commands.iter().for_each(|command| self.change(command)),
        }
    }

    fn enqueue(&mut self, source: usize, first: Rank, count: u32) {
        let class = self.class(source);
        self.waiting.extend((0..count).map(|n| (first.behind(n), source)));
        self.admission.enqueue(class, first, count);
    }

    fn withdraw(&mut self, rank: Rank) -> usize {
        let source = self.waiting.remove(&rank).expect("only who waits is withdrawn");
        let class = self.class(source);
        assert!(self.admission.withdraw(class, rank, self.now), "{rank:?} waits, and is not found");
        self.forget_if_unused(source);
        source
    }

    fn set_paused(&mut self, key: &LimitKey, paused: bool) {
        let Some(gauge) = self.number(key).map(|limit| self.gauge(limit)) else { return };
        let id = self.admission.ensure(key, || gauge);
        self.admission.set_paused(id, paused, self.now);
    }

    fn set_pace(&mut self, limit: usize, pace: &Pace) {
        self.limits[limit].1 = Bound::Pace(pace.clone());
        let Some(id) = self.find(limit) else { return };
        match pace {
            Pace::Rate(policy) => self.admission.set_rate(id, *policy, self.now),
            Pace::Quota(policy) => self.admission.set_quota(id, policy.clone(), self.now),
        }
    }

    fn resolve(&mut self, source: usize, needs: &[Need]) {
        self.sources[source] = needs.to_vec();
        if let Some(class) = self.classes[source] {
            let demands = self.admission.demands(self.asks(source));
            self.admission.change_demands(class, &demands, self.now);
        }
    }

    /// As a new leader loads: only who runs, who waits, paces, pauses and workers are stored.
    fn rebuild(&mut self) {
        let old = std::mem::replace(&mut self.admission, Admission::new(self.rules));
        self.classes.fill(None);
        self.by_class.clear();
        for (name, worker) in old.slots().iter() {
            self.admission.set_worker(name, worker.skills.clone(), worker.slots, self.now);
        }
        for (_, limit) in old.limits() {
            if limit.is_pace() {
                self.admission.restore_pace(&limit.key, limit.gauge.clone());
            }
            if limit.paused {
                self.set_paused(&limit.key, true);
            }
        }
        for (source, worker) in self.running.clone().into_values() {
            let class = self.class(source);
            self.admission.hold(class, worker.as_ref());
        }
        for (rank, source) in self.waiting.clone() {
            let class = self.class(source);
            self.admission.enqueue(class, rank, 1);
        }
    }

    // ---- classes and limits, made on demand

    fn class(&mut self, source: usize) -> ClassId {
        if let Some(class) = self.classes[source] {
            return class;
        }
        let demands = self.admission.demands(self.asks(source));
        let class = self.admission.add_class(Level::Attempt, &demands);
        self.classes[source] = Some(class);
        self.by_class.insert(class, source);
        class
    }

    fn forget_if_unused(&mut self, source: usize) {
        if let Some(class) = self.classes[source]
            && self.forgetful
            && self.admission.remove_class(class)
        {
            self.classes[source] = None;
            self.by_class.remove(&class);
        }
    }

    fn asks(&self, source: usize) -> Vec<Ask> {
        let asks = self.sources[source].iter().map(|need| Ask {
            key: self.limits[need.limit].0.clone(),
            units: need.units,
            gauge: self.gauge(need.limit),
        });
        asks.collect()
    }

    fn gauge(&self, limit: usize) -> Gauge {
        match &self.limits[limit] {
            (_, Bound::Units(capacity)) => Gauge::Units { capacity: *capacity, used: 0 },
            (_, Bound::Pace(Pace::Rate(policy))) => Gauge::Rate(Rate::new(*policy)),
            (_, Bound::Pace(Pace::Quota(policy))) => Gauge::Quota(Quota::new(policy.clone())),
            (LimitKey::Slot(need), Bound::Slots) => Gauge::Slots(need.slot()),
            (key, Bound::Slots) => panic!("{key} has no slots"),
        }
    }

    fn number(&self, key: &LimitKey) -> Option<usize> {
        self.limits.binary_search_by(|(other, _)| other.cmp(key)).ok()
    }

    fn find(&self, limit: usize) -> Option<LimitId> {
        self.admission.find(&self.limits[limit].0)
    }

    // ---- what others see of it

    pub fn admission(&self) -> &Admission {
        &self.admission
    }
    pub fn looks(&self) -> u32 {
        self.looks
    }
    pub fn running(&self) -> impl ExactSizeIterator<Item = (Rank, usize)> + '_ {
        self.running.iter().map(|(&rank, &(source, _))| (rank, source))
    }
    /// How many tasks of a source wait.
    pub fn waiting(&self, source: usize) -> u64 {
        self.classes[source].map_or(0, |class| self.admission.class(class).waiting())
    }
    /// Where the head of a source is parked.
    pub fn parked(&self, source: usize) -> Option<(Rank, Parked)> {
        let class = self.admission.class(self.classes[source]?);
        let place = class.place()?;
        let key = &self.admission.limit(class.demands[place.at].limit).key;
        let under = self.number(key)?;
        Some((place.head, Parked { under, moves: place.moves, reserves: place.reserves }))
    }
    pub fn places(&self) -> BTreeMap<Rank, Parked> {
        (0..self.sources.len()).filter_map(|source| self.parked(source)).collect()
    }
    /// Units of each limit that are held.
    pub fn used(&self) -> Vec<u64> {
        let used = (0..self.limits.len()).map(|limit| self.find(limit));
        used.map(|id| id.map_or(0, |id| self.admission.limit(id).used())).collect()
    }
    pub fn busy(&self, worker: &Name) -> SlotCounts {
        self.admission.slots().get(worker.as_str()).map(|worker| worker.busy).unwrap_or_default()
    }
    /// Whether a pace that nobody needs any more waits to be forgotten.
    pub fn has_idle_pace(&self) -> bool {
        self.admission
            .limits()
            .any(|(id, limit)| limit.is_pace() && self.admission.users(id).next().is_none())
    }
}
