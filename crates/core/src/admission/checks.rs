//! What must hold between commands: nobody is overlooked, and lines hold exactly those who stand in them.

use super::{Admission, Gauge};
use crate::time::Moment;

impl Admission {
    /// Every head is refused by the very limit it is parked under, or that limit has still to be walked; who is
    /// not aside is represented by its best-ranked task.
    pub fn check_places(&self, now: Moment) {
        for (id, class) in self.classes() {
            assert_eq!(
                class.is_aside(),
                self.must_stand_aside(id),
                "aside is decided when something changes"
            );
            let Some(place) = class.place() else {
                let overlooked = class.best().is_some() && !class.is_aside() && class.fresh.is_none();
                assert!(!overlooked, "{:?} stands nowhere", class.best());
                continue;
            };
            assert!(!class.is_aside(), "who stands aside stands in no line");
            assert!(
                class.best() == Some(place.head) || class.fresh.is_some(),
                "the best of a class is its head"
            );
            let demand = class.demands[place.at];
            let pending = &self.pending[class.level as usize];
            let is_listed = match self.limit(demand.limit).gauge {
                Gauge::Slots(kind) => pending.slots.contains(&kind),
                _ => pending.listed.contains(&demand.limit),
            };
            let is_pending = is_listed || !pending.fresh.is_empty();
            assert!(
                is_pending || !self.accepts(demand.limit, place.head, demand.units, now),
                "{:?} is parked under {}, which would accept it",
                place.head,
                self.limit(demand.limit).key
            );
        }
        for (id, limit) in self.limits() {
            for (rank, &class) in &limit.line {
                let class = self.class(class);
                assert!(
                    class.lines().iter().any(|demand| demand.limit == id),
                    "{rank:?} stands where it belongs"
                );
                assert_eq!(class.place().map(|place| place.head), Some(*rank), "only heads stand in lines");
            }
            let reserve = |rank| {
                limit.line.get(rank).is_some_and(|&id| self.class(id).place().is_some_and(|p| p.reserves))
            };
            assert!(limit.reservers.keys().all(reserve), "reservers of {} stand in its line", limit.key);
            assert!(limit.reservers.len() as u64 <= self.rules.reservers, "reservers are bounded");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{NOW, class, pool, rank, settle};
    use super::*;

    /// Somebody holds the only unit of the pool, and somebody else waits for it.
    fn one_waits() -> Admission {
        let mut admission = Admission::default();
        let class = class(&mut admission, vec![pool()]);
        admission.enqueue(class, rank(1), 1);
        admission.enqueue(class, rank(2), 1);
        assert_eq!(settle(&mut admission, NOW), [rank(1)]);
        admission
    }

    #[test]
    #[should_panic(expected = "is parked under pool:db, which would accept it")]
    fn a_line_that_was_not_listed_when_it_opened_is_noticed() {
        let mut admission = one_waits();
        let (class, _) = admission.classes().next().unwrap();
        admission.drop_holding(class, None);
        admission.check_places(NOW);
    }
}
