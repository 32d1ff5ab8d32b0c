//! The walk: fresh heads and the lines of all listed limits, merged by rank.
//!
//! One pass by rank is enough, because whatever happens to a head changes what is free only for those ranked
//! after it. A walk that looked at `walk_max` heads stops; what is left stays listed and goes on with the next
//! command, merged with what that command lists. So a newcomer can never overtake who was not looked at yet.

use super::class::{ClassId, Place};
use super::limit::{Gauge, Level, LimitId, LimitKey};
use super::rank::Rank;
use super::{Admission, Pending};
use crate::ids::Name;
use crate::planted::Bug;
use crate::time::Moment;

/// A task that may start: its class's demands are taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    pub rank: Rank,
    pub class: ClassId,
    pub worker: Option<Name>,
}

impl Admission {
    /// Starts a new command: how many heads it may look at.
    pub fn begin(&mut self) -> u32 {
        self.pending.iter_mut().for_each(|pending| pending.last = None);
        for claim in self.planted.take_uncounted() {
            self.limit_mut(claim.limit).take(claim.units, Moment(0));
        }
        self.rules.walk_max
    }

    /// Whether a walk has still to go on.
    pub fn is_pending(&self) -> bool {
        let is_empty = |pending: &Pending| {
            pending.listed.is_empty() && pending.slots.is_empty() && pending.fresh.is_empty()
        };
        !self.pending.iter().all(is_empty)
    }

    /// Walks on until somebody may start. `None`: nobody else, or the budget is used up.
    pub fn next_grant(&mut self, level: Level, now: Moment, budget: &mut u32) -> Option<Grant> {
        while *budget > 0 {
            let (rank, class) = self.next_look(level, now)?;
            *budget -= 1;
            let last = self.pending[level as usize].last.replace(rank);
            debug_assert!(
                last.is_none_or(|last| last < rank) || self.planted.is_any(),
                "nobody is looked at twice in a command: {last:?} then {rank:?}"
            );
            if let Some(grant) = self.look(class, rank, now) {
                return Some(grant);
            }
        }
        None
    }

    /// The best-ranked of the fresh heads and of the candidates of the listed lines.
    fn next_look(&mut self, level: Level, now: Moment) -> Option<(Rank, ClassId)> {
        let mut best = self.pending[level as usize].fresh.first().copied();
        let mut listed = std::mem::take(&mut self.pending[level as usize].listed);
        listed.retain(|&limit| match self.first_accepted(limit, now) {
            None => false,
            Some(candidate) => {
                best = Some(best.map_or(candidate, |best| best.min(candidate)));
                true
            }
        });
        self.pending[level as usize].listed = listed;
        let mut slots = std::mem::take(&mut self.pending[level as usize].slots);
        slots.retain(|&kind| {
            let parked = |limit, class: ClassId| self.class(class).parked_under(limit);
            let candidate = self.slot_lines.first_served(kind, &self.slots, parked);
            best = best.into_iter().chain(candidate).min();
            candidate.is_some()
        });
        self.pending[level as usize].slots = slots;
        best
    }

    /// The best-ranked head parked under the limit, if nobody before it in line is refused.
    fn first_accepted(&self, id: LimitId, now: Moment) -> Option<(Rank, ClassId)> {
        let limit = self.limit(id);
        let mut free = limit.unused(now);
        for (&rank, &class) in &limit.line {
            let units = i64::from(self.class(class).units_at(id));
            if self.planted.has(Bug::ReservationIgnored) && !self.class(class).parked_under(id) {
                continue;
            }
            if free < units {
                return None;
            }
            if self.class(class).parked_under(id) {
                return Some((rank, class));
            }
            // It reserves and is parked elsewhere: its units are set aside for it.
            free -= units;
        }
        None
    }

    /// Whether the limit has `units` left for this rank after those who stand before it.
    pub(crate) fn accepts(&self, id: LimitId, rank: Rank, units: u32, now: Moment) -> bool {
        let limit = self.limit(id);
        if let LimitKey::Slot(_) = &limit.key {
            return self.slot_lines.worker_for(id, rank, &self.slots).is_some();
        }
        let units = i64::from(units);
        let mut free = limit.unused(now);
        if self.planted.has(Bug::Barging) {
            return free >= units;
        }
        if self.planted.has(Bug::QuotaOffByOne) && matches!(limit.gauge, Gauge::Quota(_)) {
            free += 1;
        }
        for (&before, &class) in &limit.line {
            if before >= rank || free < units {
                break;
            }
            if self.planted.has(Bug::ReservationIgnored) && !self.class(class).parked_under(id) {
                continue;
            }
            free -= i64::from(self.class(class).units_at(id));
        }
        free >= units
    }

    /// Units left at a limit for this rank after those who stand before it. Not asked of slots.
    pub(crate) fn free_for(&self, id: LimitId, rank: Rank, now: Moment) -> i64 {
        let before =
            self.limit(id).line.range(..rank).map(|(_, &class)| i64::from(self.class(class).units_at(id)));
        self.limit(id).unused(now) - before.sum::<i64>()
    }

    /// Heads of other classes that stand at a limit before this rank.
    pub(crate) fn others_before(&self, id: LimitId, own: ClassId, rank: Rank) -> u64 {
        self.limit(id).line.range(..rank).filter(|(_, class)| **class != own).count() as u64
    }

    /// Grants, or parks under the first limit that refuses.
    fn look(&mut self, id: ClassId, rank: Rank, now: Moment) -> Option<Grant> {
        let class = self.class(id);
        let place = class.place.filter(|place| place.head == rank);
        let refused =
            class.demands.iter().position(|demand| !self.accepts(demand.limit, rank, demand.units, now));
        let Some(at) = refused else { return Some(self.grant(id, rank, place.is_some(), now)) };
        self.park(id, at, place);
        self.refresh(id, Some(now));
        None
    }

    fn park(&mut self, id: ClassId, at: usize, place: Option<Place>) {
        let is_pace = self.limit(self.class(id).demands[at].limit).is_pace();
        match place {
            Some(place) if place.reserves && !is_pace => {
                self.class_mut(id).place = Some(Place { at, ..place });
            }
            // Waiting for time to pass must not keep units of anything else from others.
            Some(place) => {
                self.leave(id, false);
                self.stand(id, at);
                if let Some(new) = &mut self.class_mut(id).place {
                    new.moves = place.moves + u32::from(!place.reserves);
                }
            }
            None => {
                self.leave(id, false);
                self.stand(id, at);
            }
        }
        let wants = |place: Place| !place.reserves && place.moves >= self.rules.reserve_after && !is_pace;
        if self.class(id).place.is_some_and(wants) {
            self.reserve(id);
        }
    }

    fn grant(&mut self, id: ClassId, rank: Rank, standing: bool, now: Moment) -> Grant {
        let mut worker = None;
        for i in 0..self.class(id).demands.len() {
            let demand = self.class(id).demands[i];
            if let LimitKey::Slot(need) = &self.limit(demand.limit).key {
                let kind = need.slot();
                worker = self.slot_lines.worker_for(demand.limit, rank, &self.slots).cloned();
                if let Some(worker) = &worker {
                    self.slots.take(worker.as_str(), kind);
                }
                continue;
            }
            let units = if self.planted.has(Bug::WeightIgnored) { 1 } else { demand.units };
            let is_pace = self.limit(demand.limit).is_pace();
            if is_pace || !self.planted.put_off(demand) {
                self.limit_mut(demand.limit).take(units, now);
            }
            self.note_pace(demand.limit);
            debug_assert!(
                self.limit(demand.limit).unused(now) >= 0 || self.planted.is_any(),
                "granted {rank:?} over the capacity of {}",
                self.limit(demand.limit).key
            );
        }
        self.class_mut(id).holders += 1;
        if standing {
            self.pass_on(id, rank, true);
        } else {
            self.class_mut(id).take(rank);
        }
        self.refresh(id, Some(now));
        Grant { rank, class: id, worker }
    }

    // ---- paces

    pub(super) fn note_pace(&mut self, id: LimitId) {
        if self.limit(id).is_pace() && !self.stale_wakes.contains(&id) {
            self.stale_wakes.push(id);
        }
    }

    /// Lists the paces whose time has come.
    pub fn wake(&mut self, now: Moment) {
        while let Some(&(at, id)) = self.wakes.first() {
            if at > now {
                break;
            }
            self.wakes.pop_first();
            self.limit_mut(id).wake = None;
            self.list(id);
            self.stale_wakes.push(id);
        }
    }

    /// Brings the timers of paces up to date; called at the end of a command. A pace that nobody names is
    /// forgotten as soon as it has nothing to remember.
    pub fn settle_wakes(&mut self, now: Moment) {
        while let Some(id) = self.stale_wakes.pop() {
            let Some(limit) = self.limits.get(id.0 as usize) else { continue };
            if !limit.is_pace() {
                continue;
            }
            let wake = if limit.users.is_empty() {
                let forget = match &limit.gauge {
                    Gauge::Rate(rate) => rate.full_at(),
                    Gauge::Quota(quota) => quota.forgotten_at(),
                    _ => now,
                };
                if forget <= now && !limit.paused {
                    self.remove_limit(id);
                    continue;
                }
                // A pause is remembered until it ends, a closed rate until it changes: no timer brings that about.
                Some(forget).filter(|&forget| !limit.paused && forget < Moment::MAX)
            } else {
                self.first_pace_wake(id, now)
            };
            let old = std::mem::replace(&mut self.limit_mut(id).wake, wake);
            if let Some(old) = old {
                self.wakes.remove(&(old, id));
            }
            if let Some(wake) = wake {
                self.wakes.insert((wake, id));
            }
        }
    }

    /// Only the first head parked under a pace has a timer: when its units, and those set aside before it, are
    /// there. If they cannot all be there at once, time does not help, but a reserver that leaves does.
    fn first_pace_wake(&self, id: LimitId, now: Moment) -> Option<Moment> {
        let limit = self.limit(id);
        let parked = limit.line.iter().find(|(_, class)| self.class(**class).parked_under(id));
        let (&rank, _) = parked?;
        let heads = limit.line.range(..=rank);
        let units = heads.map(|(_, &class)| i64::from(self.class(class).units_at(id))).sum();
        limit.available_at(units, now).filter(|&at| at < Moment::MAX)
    }

    pub fn next_wake(&self) -> Option<Moment> {
        self.wakes.first().map(|&(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{NOW, class, pool, rank, rate, settle};
    use super::super::{Ask, Rules};
    use super::*;
    use crate::time::Span;

    #[test]
    fn a_pace_that_nobody_needs_wakes_nobody() {
        for (limit, paused) in [(0, false), (2, true)] {
            let mut admission = Admission::default();
            let class = class(&mut admission, vec![rate(limit)]);
            let id = admission.class(class).demands[0].limit;
            admission.set_paused(id, paused, NOW);
            assert!(admission.remove_class(class));
            settle(&mut admission, NOW);
            assert_eq!(admission.next_wake(), None, "it would be woken for ever");
            admission.set_paused(id, false, NOW);
            settle(&mut admission, NOW);
            assert_eq!(admission.limits().count(), usize::from(limit == 0), "forgotten when it is full");
        }
    }

    #[test]
    fn who_waits_behind_reservers_at_a_full_bucket_is_not_woken_by_time() {
        let mut admission = Admission::new(Rules { reserve_after: 0, ..Rules::default() });
        let narrow = class(&mut admission, vec![pool()]);
        let both = class(&mut admission, vec![pool(), rate(2)]);
        let wide = class(&mut admission, vec![Ask { units: 2, ..rate(2) }]);
        admission.enqueue(narrow, rank(1), 1);
        admission.enqueue(both, rank(2), 1);
        assert_eq!(settle(&mut admission, NOW), [rank(1)]);
        assert!(admission.class(both).place().is_some_and(|place| place.reserves));
        assert_eq!(admission.next_wake(), None, "nobody is parked under the rate");

        admission.enqueue(wide, rank(3), 1);
        assert_eq!(settle(&mut admission, NOW), []);
        assert_eq!(admission.next_wake(), None, "one of two is set aside, two are needed");

        admission.release(narrow, None);
        assert_eq!(settle(&mut admission, NOW), [rank(2)]);
        let full = NOW + Span::millis(500);
        assert_eq!(admission.next_wake(), Some(full));
        admission.wake(full);
        assert_eq!(settle(&mut admission, full), [rank(3)]);
    }

    #[test]
    fn a_pace_that_nobody_names_is_forgotten_when_it_is_full() {
        let mut admission = Admission::default();
        let class = class(&mut admission, vec![rate(2)]);
        admission.enqueue(class, rank(1), 1);
        assert_eq!(settle(&mut admission, NOW), [rank(1)]);
        admission.release(class, None);
        assert!(admission.remove_class(class));
        settle(&mut admission, NOW);
        let full = NOW + Span::millis(500);
        assert_eq!((admission.next_wake(), admission.limits().count()), (Some(full), 1));
        admission.wake(full);
        settle(&mut admission, full);
        assert_eq!((admission.next_wake(), admission.limits().count()), (None, 0));
    }
}
