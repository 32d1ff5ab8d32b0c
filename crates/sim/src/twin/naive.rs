//! The twin: the rules of admission, found out by looking at everybody each time.
//!
//! It keeps who waits, who runs and where heads are parked, and nothing that follows from these: no lines, no
//! lists of what to walk, no classes, no counters. Slow, and short enough to be compared with the rules by eye.

use super::pace::PaceLog;
use super::scene::{Bound, Command, Need, Parked, Scene, Start};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::admission::{LimitKey, Rank, Rules, Skills, SlotCounts};
use tidegate_core::ids::Name;
use tidegate_core::model::{Requirement, SlotKind};
use tidegate_core::time::Moment;

#[derive(Debug)]
struct Limit {
    key: LimitKey,
    gauge: Gauge,
    paused: bool,
}

#[derive(Debug)]
enum Gauge {
    Units(u64),
    Pace(PaceLog),
    Slots,
}

#[derive(Clone, Debug)]
pub struct Running {
    pub source: usize,
    pub worker: Option<Name>,
}

#[derive(Debug)]
pub struct Twin {
    rules: Rules,
    now: Moment,
    limits: Vec<Limit>,
    sources: Vec<Vec<Need>>,
    workers: BTreeMap<Name, (Skills, SlotCounts)>,
    waiting: BTreeMap<Rank, usize>,
    running: BTreeMap<Rank, Running>,
    places: BTreeMap<Rank, Parked>,
    /// Heads looked at in the last command.
    looks: u32,
    /// Reservers that had to give way, in all.
    displaced: u64,
}

impl Twin {
    pub fn new(scene: &Scene) -> Self {
        let limits = scene.limits.iter().cloned().map(|(key, bound)| {
            let gauge = match bound {
                Bound::Units(capacity) => Gauge::Units(capacity),
                Bound::Pace(pace) => Gauge::Pace(PaceLog::new(pace)),
                Bound::Slots => Gauge::Slots,
            };
            Limit { key, gauge, paused: false }
        });
        Twin {
            rules: scene.rules,
            now: scene.now,
            limits: limits.collect(),
            sources: scene.sources.clone(),
            workers: BTreeMap::new(),
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            places: BTreeMap::new(),
            looks: 0,
            displaced: 0,
        }
    }

    pub fn play(&mut self, command: &Command) -> Vec<Start> {
        self.change(command);
        let mut starts = Vec::new();
        self.looks = 0;
        while self.looks < self.rules.walk_max {
            let Some(rank) = self.next_look() else { break };
            self.looks += 1;
            starts.extend(self.look(rank));
        }
        starts
    }

    fn change(&mut self, command: &Command) {
        self.carry_out(command);
        let aside: Vec<Rank> = self.places.keys().copied().filter(|&rank| self.is_aside(rank)).collect();
        for rank in aside {
            self.places.remove(&rank);
        }
    }

    fn carry_out(&mut self, command: &Command) {
        match command {
            Command::Enqueue { source, first, count } => {
                self.waiting.extend((0..*count).map(|n| (first.behind(n), *source)));
            }
            Command::Finish(rank) => {
                self.running.remove(rank);
            }
            Command::Withdraw(rank) => self.withdraw(&[*rank]),
            Command::WithdrawRange { source, first, last } => {
                let of_source = self.waiting.range(first..=last).filter(|(_, of)| *of == source);
                let gone: Vec<Rank> = of_source.map(|(&rank, _)| rank).collect();
                self.withdraw(&gone);
            }
            Command::Rerank { from, to } => {
                let source = self.waiting[from];
                self.withdraw(&[*from]);
                self.waiting.insert(*to, source);
            }
            Command::SetCapacity { limit, capacity } => self.limits[*limit].gauge = Gauge::Units(*capacity),
            Command::SetPace { limit, pace } => {
                if let Gauge::Pace(log) = &mut self.limits[*limit].gauge {
                    log.change(pace.clone(), self.now);
                }
            }
            Command::SetPaused { limit, paused } => self.limits[*limit].paused = *paused,
            Command::Resolve(changes) => {
                changes.iter().for_each(|(source, needs)| self.resolve(*source, needs))
            }
            Command::SetWorker { name, skills, slots } => {
                self.workers.insert(name.clone(), (skills.clone(), *slots));
            }
            Command::RemoveWorker(name) => {
                self.workers.remove(name);
                for running in
                    self.running.values_mut().filter(|running| running.worker.as_ref() == Some(name))
                {
                    running.worker = None;
                }
            }
            Command::Reload => self.places.clear(),
            Command::Advance(now) => self.now = *now,
            Command::Together(commands) => commands.iter().for_each(|command| self.change(command)),
        }
    }

    /// Who asks for something else than before stands nowhere until it is looked at.
    fn resolve(&mut self, source: usize, needs: &[Need]) {
        if self.sources[source] != needs {
            self.places.retain(|rank, _| self.waiting[rank] != source);
            self.sources[source] = needs.to_vec();
        }
    }

    /// These of one source wait no more. If the head was one of them, the best that is left takes its parking
    /// place and nothing else.
    fn withdraw(&mut self, gone: &[Rank]) {
        for rank in gone {
            let source = self.waiting.remove(rank);
            let Some(place) = self.places.remove(rank) else { continue };
            let next = self.waiting.iter().find(|(rank, of)| Some(**of) == source && !gone.contains(rank));
            if let Some((&next, _)) = next {
                self.places.insert(next, Parked { moves: 0, reserves: false, ..place });
            }
        }
    }

    // ---- who is looked at

    /// The best-ranked head that is fresh, or that the limit it is parked under would accept.
    pub fn next_look(&self) -> Option<Rank> {
        let unused = self.unused(self.now);
        let mut seen = BTreeSet::new();
        let heads = self.waiting.iter().filter(|(_, source)| seen.insert(**source));
        let mut heads = heads.map(|(&rank, _)| rank).filter(|&rank| !self.is_aside(rank));
        heads.find(|rank| match self.places.get(rank) {
            None => true,
            Some(place) => self.accepts(place.under, *rank, &unused),
        })
    }

    /// Whether time alone lets somebody be looked at at `then`, if nothing else happens before.
    pub fn is_due(&self, then: Moment) -> bool {
        let unused = self.unused(then);
        self.places.iter().any(|(&rank, place)| self.accepts(place.under, rank, &unused))
    }

    fn look(&mut self, rank: Rank) -> Option<Start> {
        let unused = self.unused(self.now);
        let needs = &self.sources[self.waiting[&rank]];
        let refused = needs.iter().map(|need| need.limit).find(|&limit| !self.accepts(limit, rank, &unused));
        match refused {
            None => Some(self.start(rank)),
            Some(limit) => {
                self.park(rank, limit);
                None
            }
        }
    }

    fn start(&mut self, rank: Rank) -> Start {
        let source = self.waiting[&rank];
        let mut worker = None;
        for need in self.sources[source].clone() {
            if let LimitKey::Slot(needed) = &self.limits[need.limit].key {
                worker = self.worker_for(needed, rank);
            }
            if let Gauge::Pace(log) = &mut self.limits[need.limit].gauge {
                log.started(need.units, self.now);
            }
        }
        self.withdraw(&[rank]);
        self.running.insert(rank, Running { source, worker: worker.clone() });
        Start { rank, worker }
    }

    fn park(&mut self, rank: Rank, under: usize) {
        let is_pace = matches!(self.limits[under].gauge, Gauge::Pace(_));
        let place = match self.places.get(&rank) {
            // Fresh: whoever of its class stood until now does not stand any more.
            None => {
                let source = self.waiting[&rank];
                self.places.retain(|other, _| self.waiting[other] != source);
                Parked { under, moves: 0, reserves: false }
            }
            Some(place) if place.reserves => Parked { under, reserves: !is_pace, ..*place },
            Some(place) => Parked { under, moves: place.moves + 1, ..*place },
        };
        self.places.insert(rank, place);
        if !place.reserves && !is_pace && place.moves >= self.rules.reserve_after {
            self.reserve(rank);
        }
    }

    fn reserve(&mut self, rank: Rank) {
        let limits: Vec<usize> = self.needs(rank).iter().map(|need| need.limit).collect();
        let before = |limit| self.reservers(limit).filter(|other| *other < rank).count() as u64;
        if limits.iter().any(|&limit| before(limit) >= self.places_for_reservers(limit)) {
            return;
        }
        for &limit in &limits {
            while self.reservers(limit).count() as u64 >= self.places_for_reservers(limit) {
                let worst = self.reservers(limit).last();
                let Some(place) = worst.and_then(|worst| self.places.get_mut(&worst)) else { break };
                place.reserves = false;
                self.displaced += 1;
            }
        }
        if let Some(place) = self.places.get_mut(&rank) {
            place.reserves = true;
        }
    }

    // ---- sums and scans

    fn needs(&self, waiting: Rank) -> &[Need] {
        &self.sources[self.waiting[&waiting]]
    }

    /// Heads that reserve and need this limit, best first.
    pub fn reservers(&self, limit: usize) -> impl Iterator<Item = Rank> + '_ {
        let reserve = self.places.iter().filter(|(_, place)| place.reserves).map(|(&rank, _)| rank);
        reserve.filter(move |&rank| self.needs(rank).iter().any(|need| need.limit == limit))
    }

    fn places_for_reservers(&self, limit: usize) -> u64 {
        let capacity = match (&self.limits[limit].key, &self.limits[limit].gauge) {
            (LimitKey::Slot(need), _) => {
                let fitting = self.workers.values().filter(|(skills, _)| skills.fit(need));
                fitting.map(|(_, slots)| u64::from(slots.of(need.slot()))).sum()
            }
            (_, Gauge::Units(capacity)) => *capacity,
            (_, Gauge::Pace(log)) => log.pace().capacity(),
            (_, Gauge::Slots) => 0,
        };
        (capacity / self.rules.share).min(self.rules.reservers).max(1)
    }

    /// What nobody has of each limit.
    fn unused(&self, now: Moment) -> Vec<i64> {
        let used = self.used();
        let unused = self.limits.iter().zip(used).map(|(limit, used)| match &limit.gauge {
            Gauge::Units(capacity) => *capacity as i64 - used as i64,
            Gauge::Pace(log) => log.available(now),
            Gauge::Slots => 0,
        });
        unused.collect()
    }

    /// Units of each limit that running tasks hold.
    pub fn used(&self) -> Vec<u64> {
        let mut used = vec![0; self.limits.len()];
        for need in self.running.values().flat_map(|running| &self.sources[running.source]) {
            used[need.limit] += u64::from(need.units);
        }
        used
    }

    /// Who stands in the line of a limit before a rank, with the units it asks.
    fn standing(&self, limit: usize, before: Rank) -> impl Iterator<Item = (Rank, u32)> + '_ {
        self.places.range(..before).filter_map(move |(&rank, place)| {
            let need = self.needs(rank).iter().find(|need| need.limit == limit)?;
            (place.reserves || place.under == limit).then_some((rank, need.units))
        })
    }

    fn accepts(&self, limit: usize, rank: Rank, unused: &[i64]) -> bool {
        if let LimitKey::Slot(need) = &self.limits[limit].key {
            return self.worker_for(need, rank).is_some();
        }
        let units = self.needs(rank).iter().find(|need| need.limit == limit).map_or(0, |need| need.units);
        let asked: i64 = self.standing(limit, rank).map(|(_, units)| i64::from(units)).sum();
        unused[limit] - asked >= i64::from(units)
    }

    /// The worker of a head of that rank, after all who stand before it in any line for slots have chosen.
    fn worker_for(&self, need: &Requirement, rank: Rank) -> Option<Name> {
        let kind = need.slot();
        let mut free: Vec<(usize, &Name, &Skills)> = Vec::new();
        for (name, (skills, slots)) in &self.workers {
            let idle = slots.of(kind).saturating_sub(self.busy(name).of(kind));
            free.extend((0..idle).map(|_| (skills.labels.len(), name, skills)));
        }
        free.sort_by_key(|&(labels, name, _)| (labels, name));
        let mut choose = |need: &Requirement| {
            let chosen = free.iter().position(|(_, _, skills)| skills.fit(need))?;
            Some(free.remove(chosen).1.clone())
        };
        let mut before = BTreeMap::new();
        for (number, limit) in self.limits.iter().enumerate() {
            if let LimitKey::Slot(other) = &limit.key
                && other.slot() == kind
            {
                before.extend(self.standing(number, rank).map(|(rank, _)| (rank, other)));
            }
        }
        for other in before.into_values() {
            choose(other);
        }
        choose(need)
    }

    /// Slots of a worker that running tasks have.
    pub fn busy(&self, worker: &Name) -> SlotCounts {
        let mut busy = SlotCounts::default();
        for running in self.running.values().filter(|running| running.worker.as_ref() == Some(worker)) {
            for need in &self.sources[running.source] {
                match &self.limits[need.limit].key {
                    LimitKey::Slot(need) if need.slot() == SlotKind::Io => busy.io += 1,
                    LimitKey::Slot(_) => busy.process += 1,
                    _ => {}
                }
            }
        }
        busy
    }

    /// Whether nothing that is released could let it start.
    pub fn is_aside(&self, waiting: Rank) -> bool {
        self.needs(waiting).iter().any(|need| {
            let limit = &self.limits[need.limit];
            let closed = match (&limit.key, &limit.gauge) {
                (LimitKey::Slot(needed), _) => !self
                    .workers
                    .values()
                    .any(|(skills, slots)| slots.of(needed.slot()) > 0 && skills.fit(needed)),
                (_, Gauge::Units(capacity)) => *capacity < u64::from(need.units),
                (_, Gauge::Pace(log)) => {
                    log.pace().is_closed() || log.pace().capacity() < u64::from(need.units)
                }
                (_, Gauge::Slots) => false,
            };
            limit.paused || closed
        })
    }

    // ---- what others see of it

    pub fn now(&self) -> Moment {
        self.now
    }
    pub fn looks(&self) -> u32 {
        self.looks
    }
    pub fn displaced(&self) -> u64 {
        self.displaced
    }
    pub fn waiting(&self) -> &BTreeMap<Rank, usize> {
        &self.waiting
    }
    pub fn running(&self) -> &BTreeMap<Rank, Running> {
        &self.running
    }
    pub fn places(&self) -> &BTreeMap<Rank, Parked> {
        &self.places
    }
    pub fn sources(&self) -> &[Vec<Need>] {
        &self.sources
    }
    pub fn workers(&self) -> &BTreeMap<Name, (Skills, SlotCounts)> {
        &self.workers
    }
    pub fn is_paused(&self, limit: usize) -> bool {
        self.limits[limit].paused
    }
    /// The units of a limit, unless it counts by something else.
    pub fn capacity(&self, limit: usize) -> Option<u64> {
        match self.limits[limit].gauge {
            Gauge::Units(capacity) => Some(capacity),
            _ => None,
        }
    }
    pub fn is_pace(&self, limit: usize) -> bool {
        matches!(self.limits[limit].gauge, Gauge::Pace(_))
    }
}
