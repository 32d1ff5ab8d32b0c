//! Standing in lines: parking, leaving, reserving, stepping aside. Everything that makes room lists the limit.

use super::Admission;
use super::class::{ClassId, Place};
use super::limit::{Gauge, LimitId, LimitKey};
use super::rank::Rank;
use crate::planted::Bug;
use crate::time::Moment;

impl Admission {
    // ---- lists: limits that may accept more than before

    /// Slots are shared between requirement lines: if one opens, all of that kind may.
    pub(super) fn list(&mut self, id: LimitId) {
        if self.planted.strikes(Bug::WakeupDropped, 7) {
            return;
        }
        let limit = self.limit(id);
        let (level, gauge) = (limit.key.level(), &limit.gauge);
        if let Gauge::Slots(kind) = *gauge {
            self.pending[level as usize].slots.insert(kind);
            return;
        }
        let listed = &mut self.pending[level as usize].listed;
        if !listed.contains(&id) {
            listed.push(id);
        }
    }

    /// A head stands in the line of a limit from now on.
    fn enter_line(&mut self, id: LimitId, head: Rank, class: ClassId) {
        self.limit_mut(id).line.insert(head, class);
        self.slot_lines.enter(id, head, class);
    }

    fn leave_line(&mut self, id: LimitId, head: Rank) {
        self.limit_mut(id).line.remove(&head);
        self.slot_lines.leave(id, head);
    }

    pub(super) fn unlist(&mut self, id: LimitId) {
        let level = self.limit(id).key.level();
        self.pending[level as usize].listed.retain(|&listed| listed != id);
    }

    // ---- heads

    /// Brings the list of fresh heads up to date with a class that changed, and its parking log with it.
    pub(super) fn refresh(&mut self, id: ClassId, now: Option<Moment>) {
        let class = &mut self.classes[id.0 as usize];
        let best = class.best();
        let fresh = best.filter(|_| !class.aside && class.place.map(|place| place.head) != best);
        let pending = &mut self.pending[class.level as usize];
        if class.fresh != fresh {
            if let Some(old) = class.fresh {
                pending.fresh.remove(&(old, id));
            }
            if let Some(new) = fresh {
                pending.fresh.insert((new, id));
            }
            class.fresh = fresh;
        }
        if let Some(now) = now {
            class.note_parking(class.place.map(|place| place.at), now);
        }
    }

    /// The best-ranked of the class takes the place under its demand `at`.
    pub(super) fn stand(&mut self, id: ClassId, at: usize) {
        let class = &mut self.classes[id.0 as usize];
        let Some(head) = class.best() else { return };
        class.place = Some(Place { head, at, moves: 0, reserves: false });
        let limit = class.demands[at].limit;
        self.enter_line(limit, head, id);
        self.note_pace(limit);
    }

    /// Out of all its lines; moves and reservation are forgotten. A grant opens nothing: it turns units asked
    /// into units used.
    pub(super) fn leave(&mut self, id: ClassId, granted: bool) {
        let Some(place) = self.class(id).place else { return };
        for i in 0..self.class(id).lines().len() {
            let limit = self.class(id).lines()[i].limit;
            self.leave_line(limit, place.head);
            if place.reserves {
                self.limit_mut(limit).reservers.remove(&place.head);
            }
            if !granted {
                self.list(limit);
            }
            self.note_pace(limit);
        }
        self.class_mut(id).place = None;
    }

    /// The head is gone: the next of its class takes over the parking place, unlooked.
    pub(super) fn pass_on(&mut self, id: ClassId, head: Rank, granted: bool) {
        let at = self.class(id).place.map(|place| place.at);
        self.leave(id, granted);
        self.class_mut(id).take(head);
        if let Some(at) = at {
            self.stand(id, at);
        }
    }

    // ---- reserving

    /// The head stands in all its lines from now on, if at each of its limits fewer reservers than there are
    /// places rank before it. Where a limit is then full, the worst-ranked reserver gives way.
    pub(super) fn reserve(&mut self, id: ClassId) {
        let Some(place) = self.class(id).place else { return };
        let limits: Vec<LimitId> = self.class(id).demands.iter().map(|demand| demand.limit).collect();
        if limits
            .iter()
            .any(|&limit| self.reservers_before(limit, place.head) >= self.places_for_reservers(limit))
        {
            return;
        }
        for &limit in &limits {
            while self.limit(limit).reservers.len() as u64 >= self.places_for_reservers(limit) {
                let Some((_, &worst)) = self.limit(limit).reservers.last_key_value() else { break };
                self.displace(worst);
            }
        }
        for &limit in &limits {
            self.limit_mut(limit).reservers.insert(place.head, id);
            self.enter_line(limit, place.head, id);
            self.note_pace(limit);
        }
        self.class_mut(id).place = Some(Place { reserves: true, ..place });
    }

    fn reservers_before(&self, limit: LimitId, rank: Rank) -> u64 {
        self.limit(limit).reservers.range(..rank).count() as u64
    }

    fn places_for_reservers(&self, limit: LimitId) -> u64 {
        let limit = self.limit(limit);
        let capacity = match &limit.key {
            LimitKey::Slot(need) => self.slots.capacity(need),
            _ => limit.capacity(),
        };
        (capacity / self.rules.share).min(self.rules.reservers).max(1)
    }

    /// It stands on where it is parked, keeps its moves, and leaves its other lines.
    pub(super) fn displace(&mut self, id: ClassId) {
        let Some(place) = self.class(id).place else { return };
        for i in 0..self.class(id).demands.len() {
            let limit = self.class(id).demands[i].limit;
            self.limit_mut(limit).reservers.remove(&place.head);
            if i != place.at {
                self.leave_line(limit, place.head);
                self.list(limit);
                self.note_pace(limit);
            }
        }
        self.class_mut(id).place = Some(Place { reserves: false, ..place });
    }

    // ---- stepping aside

    /// Whether nobody of the class could start, however much was released: something it needs is paused, closed,
    /// too small, or no connected worker fits.
    pub(super) fn must_stand_aside(&self, id: ClassId) -> bool {
        self.class(id).demands.iter().any(|demand| self.sends_aside(demand.limit, demand.units))
    }

    pub(crate) fn sends_aside(&self, limit: LimitId, units: u32) -> bool {
        let limit = self.limit(limit);
        limit.paused
            || match (&limit.key, &limit.gauge) {
                (LimitKey::Slot(need), _) => !self.slots.may_run(need),
                (_, Gauge::Rate(rate)) => limit.is_closed() || rate.policy().burst < units,
                _ => limit.capacity() < u64::from(units),
            }
    }

    /// These limits changed capacity or pause, or workers came or went: decides anew who stands aside.
    pub(super) fn reclassify(&mut self, limits: impl IntoIterator<Item = LimitId>, now: Moment) {
        for limit in limits {
            self.list(limit);
            let users: Vec<ClassId> = self.limit(limit).users.iter().copied().collect();
            for id in users {
                let aside = self.must_stand_aside(id);
                if aside == self.class(id).aside {
                    continue;
                }
                self.class_mut(id).aside = aside;
                if aside {
                    self.leave(id, false);
                }
                self.refresh(id, Some(now));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{NOW, class, pool, rank, rate, settle};
    use super::super::{Ask, Level, Skills, SlotCounts};
    use super::*;
    use crate::ids::Name;
    use crate::model::{Requirement, SlotKind};

    fn slot(labels: &[&str]) -> Ask {
        let labels = labels.iter().map(Name::new).collect();
        let need = Requirement { labels, ..Requirement::process() };
        let gauge = Gauge::Slots(need.slot());
        Ask { key: LimitKey::Slot(need), units: 1, gauge }
    }

    #[test]
    fn a_slot_that_is_free_opens_every_line_in_which_somebody_stands() {
        let mut admission = Admission::default();
        let skills = Skills { labels: vec!["gpu".into(), "tpu".into()], ..Skills::plain() };
        admission.set_worker(&"w".into(), skills, SlotCounts { process: 1, io: 0 }, NOW);
        let labels: [&[&str]; 3] = [&[], &["gpu"], &["tpu"]];
        let [plain, gpu, _] = labels.map(|labels| class(&mut admission, vec![slot(labels)]));
        admission.enqueue(plain, rank(1), 1);
        admission.enqueue(gpu, rank(2), 1);
        assert_eq!(settle(&mut admission, NOW), [rank(1)]);

        admission.release(plain, Some(&"w".into()));
        assert_eq!(admission.pending[Level::Attempt as usize].slots, [SlotKind::Process].into());
        assert_eq!(settle(&mut admission, NOW), [rank(2)]);
    }

    #[test]
    fn a_pace_is_noted_once_and_units_never() {
        let mut admission = Admission::default();
        let id = class(&mut admission, vec![pool(), rate(2)]);
        admission.enqueue(id, rank(1), 3);
        assert_eq!(admission.stale_wakes, [admission.class(id).demands[1].limit]);
        let mut budget = admission.begin();
        assert!(admission.next_grant(Level::Attempt, NOW, &mut budget).is_some());
        assert_eq!(admission.next_grant(Level::Attempt, NOW, &mut budget), None);
        assert_eq!(admission.stale_wakes, [admission.class(id).demands[1].limit]);
    }
}
