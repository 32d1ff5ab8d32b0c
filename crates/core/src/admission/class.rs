//! Classes: all tasks with the same demands. Only the best-ranked waiting one, the head, stands in lines.

use super::limit::{Level, LimitId};
use super::rank::Rank;
use crate::time::{Moment, Span};
use std::collections::{BTreeMap, VecDeque};

/// `units` of one limit. A task's demands are all taken, or none is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Demand {
    pub limit: LimitId,
    pub units: u32,
}

/// A class's place in the core's table; meaningful only while somebody waits in it or holds by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClassId(pub(crate) u32);

/// Where a head that stands is parked. One that reserves stands in the lines of all its demands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub head: Rank,
    /// Which of the class's demands refused it.
    pub at: usize,
    /// How often it was parked elsewhere since it stands.
    pub moves: u32,
    pub reserves: bool,
}

#[derive(Debug)]
pub struct Class {
    /// In the fixed order in which they are tried.
    pub demands: Box<[Demand]>,
    pub level: Level,
    /// Waiting tasks by rank. An entry with a count of n stands for n items in a row of one loop.
    queue: BTreeMap<Rank, u32>,
    waiting: u64,
    /// Running tasks that hold these demands.
    pub(super) holders: u64,
    pub(super) place: Option<Place>,
    /// Nobody of the class can start, whatever is released: it stands in no line and asks for nothing.
    pub(super) aside: bool,
    /// The rank under which the class is in the list of fresh heads.
    pub(super) fresh: Option<Rank>,
    parked: ParkingLog,
}

impl Class {
    pub(super) fn new(demands: Box<[Demand]>, level: Level) -> Self {
        Class {
            demands,
            level,
            queue: BTreeMap::new(),
            waiting: 0,
            holders: 0,
            place: None,
            aside: false,
            fresh: None,
            parked: ParkingLog::default(),
        }
    }

    /// The best-ranked waiting task.
    pub fn best(&self) -> Option<Rank> {
        self.queue.first_key_value().map(|(&rank, _)| rank)
    }

    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Running tasks that hold these demands.
    pub fn holders(&self) -> u64 {
        self.holders
    }

    pub fn is_used(&self) -> bool {
        self.waiting > 0 || self.holders > 0
    }

    pub fn place(&self) -> Option<Place> {
        self.place
    }

    pub fn is_aside(&self) -> bool {
        self.aside
    }

    pub(super) fn units_at(&self, limit: LimitId) -> u32 {
        self.demands.iter().find(|demand| demand.limit == limit).map_or(0, |demand| demand.units)
    }

    pub(super) fn parked_under(&self, limit: LimitId) -> bool {
        self.place.is_some_and(|place| self.demands[place.at].limit == limit)
    }

    /// The limits in whose lines the head stands.
    pub(super) fn lines(&self) -> &[Demand] {
        match self.place {
            None => &[],
            Some(place) if place.reserves => &self.demands,
            Some(place) => std::slice::from_ref(&self.demands[place.at]),
        }
    }

    pub(super) fn add(&mut self, first: Rank, count: u32) {
        if count > 0 {
            self.queue.insert(first, count);
            self.waiting += u64::from(count);
        }
    }

    /// Takes one waiting task out, splitting the range of items it may be part of. False if it is not here.
    pub(super) fn take(&mut self, rank: Rank) -> bool {
        let Some((&first, &count)) = self.queue.range(..=rank).next_back() else { return false };
        let Some(offset) = first.places_to(rank).filter(|&offset| offset < count) else { return false };
        if offset == 0 {
            self.queue.remove(&first);
        } else {
            self.queue.insert(first, offset);
        }
        if offset + 1 < count {
            self.queue.insert(rank.behind(1), count - offset - 1);
        }
        self.waiting -= 1;
        true
    }

    /// Takes out everybody ranked from `first` to `last`.
    pub(super) fn take_range(&mut self, first: Rank, last: Rank) -> Vec<(Rank, u32)> {
        self.cut_at(first);
        self.cut_at(last.behind(1));
        let gone: Vec<(Rank, u32)> =
            self.queue.range(first..=last).map(|(&rank, &count)| (rank, count)).collect();
        for (rank, count) in &gone {
            self.queue.remove(rank);
            self.waiting -= u64::from(*count);
        }
        gone
    }

    /// Splits the range of items that contains `rank`, so that an entry begins there.
    fn cut_at(&mut self, rank: Rank) {
        let Some((&first, count)) = self.queue.range_mut(..rank).next_back() else { return };
        let Some(offset) = first.places_to(rank).filter(|offset| offset < count) else { return };
        let behind = std::mem::replace(count, offset) - offset;
        self.queue.insert(rank, behind);
    }

    /// Everybody, best first, as (first rank, count).
    pub fn ranges(&self) -> impl Iterator<Item = (Rank, u32)> + '_ {
        self.queue.iter().map(|(&rank, &count)| (rank, count))
    }

    /// Whether this very task waits here.
    pub fn holds(&self, rank: Rank) -> bool {
        let last = self.queue.range(..=rank).next_back();
        last.is_some_and(|(first, &count)| first.reaches(rank, count))
    }

    /// How many waiting tasks rank before `rank`.
    pub fn ahead_of(&self, rank: Rank) -> u64 {
        self.queue
            .range(..=rank)
            .map(|(&first, &count)| {
                u64::from(first.places_to(rank).map_or(count, |offset| offset.min(count)))
            })
            .sum()
    }

    /// Notes where the class is parked from `now` on, for the account of what its tasks waited for.
    pub(super) fn note_parking(&mut self, at: Option<usize>, now: Moment) {
        self.parked.note(at.map(|at| at as u16), now);
    }

    /// How long the class was parked under each of its demands between `since` and `now`.
    pub fn waited_under(&self, since: Moment, now: Moment) -> Vec<Span> {
        self.parked.spans(self.demands.len(), since, now)
    }

    /// The same under one of them.
    pub fn waited_at(&self, at: usize, since: Moment, now: Moment) -> Span {
        self.parked.span(at, since, now)
    }
}

/// When the class was parked under what. Bounded: of a restless class only the newest stays are kept.
#[derive(Debug, Default)]
struct ParkingLog(VecDeque<(Moment, Option<u16>)>);

const STAYS_KEPT: usize = 32;

impl ParkingLog {
    fn note(&mut self, at: Option<u16>, now: Moment) {
        match self.0.back_mut() {
            Some(last) if last.1 == at => return,
            // A stay of no length tells nobody anything.
            Some(last) if last.0 == now => last.1 = at,
            _ => self.0.push_back((now, at)),
        }
        if self.0.len() > STAYS_KEPT {
            self.0.pop_front();
        }
    }

    fn span(&self, at: usize, since: Moment, now: Moment) -> Span {
        let mut span = Span::ZERO;
        for (i, &(from, under)) in self.0.iter().enumerate() {
            if under.map(usize::from) == Some(at) {
                let until = self.0.get(i + 1).map_or(now, |next| next.0);
                span = span + until.since(from.max(since));
            }
        }
        span
    }

    fn spans(&self, demands: usize, since: Moment, now: Moment) -> Vec<Span> {
        let mut spans = vec![Span::ZERO; demands];
        for (i, &(from, at)) in self.0.iter().enumerate() {
            let until = self.0.get(i + 1).map_or(now, |next| next.0);
            if let Some(span) = at.and_then(|at| spans.get_mut(usize::from(at))) {
                *span = *span + until.since(from.max(since));
            }
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{NodeId, TaskId};

    fn item(index: u32) -> Rank {
        Rank::new(0, 1, TaskId::item(NodeId(1), index))
    }

    fn class() -> Class {
        let demands = [Demand { limit: LimitId(0), units: 1 }, Demand { limit: LimitId(1), units: 2 }];
        Class::new(Box::new(demands), Level::Attempt)
    }

    #[test]
    fn items_in_a_row_are_one_entry_that_splits() {
        let mut class = class();
        class.add(item(0), 10);
        assert_eq!(class.waiting(), 10);
        assert!(class.is_used(), "somebody waits");
        assert!(class.take(item(4)));
        assert!(!class.take(item(4)), "gone");
        assert!(!class.take(item(10)), "never there");
        assert!(class.take(item(0)));
        assert!(class.take(item(9)));
        assert_eq!(class.ranges().collect::<Vec<_>>(), [(item(1), 3), (item(5), 4)]);
        assert_eq!(class.best(), Some(item(1)));
        assert_eq!((class.ahead_of(item(1)), class.ahead_of(item(5)), class.ahead_of(item(8))), (0, 3, 6));
        assert_eq!(class.ahead_of(Rank::new(0, 2, TaskId::node(NodeId(2)))), 7);
        class.add(item(4), 0);
        assert_eq!(class.waiting(), 7);
        assert_eq!(class.take_range(item(2), item(6)), [(item(2), 2), (item(5), 2)]);
        assert_eq!(class.ranges().collect::<Vec<_>>(), [(item(1), 1), (item(7), 2)]);
        assert_eq!(class.take_range(item(0), item(99)).len(), 2);
        assert!(!class.is_used());
    }

    #[test]
    fn a_head_stands_in_one_line_until_it_reserves() {
        let mut class = class();
        assert_eq!(class.lines(), []);
        for (reserves, lines) in [(false, 1..2), (true, 0..2)] {
            class.place = Some(Place { head: item(0), at: 1, moves: 0, reserves });
            assert_eq!(class.lines(), &class.demands[lines]);
        }
    }

    #[test]
    fn the_log_tells_what_was_waited_for() {
        let mut log = ParkingLog::default();
        let at = |seconds: i64| Moment(seconds * 1_000_000);
        log.note(Some(0), at(0));
        log.note(Some(0), at(1));
        log.note(Some(1), at(10));
        log.note(None, at(15));
        log.note(Some(0), at(15));
        assert_eq!(log.spans(2, at(0), at(20)), [Span::seconds(15), Span::seconds(5)]);
        assert_eq!(log.spans(2, at(12), at(20)), [Span::seconds(5), Span::seconds(3)]);
        for n in 0..100 {
            log.note(Some(n % 2), at(20 + i64::from(n)));
        }
        assert_eq!(log.0.len(), STAYS_KEPT);
    }

    #[test]
    fn the_log_keeps_only_stays_that_have_a_length_and_an_end() {
        let mut log = ParkingLog::default();
        let at = |seconds: i64| Moment(seconds * 1_000_000);
        log.note(Some(0), at(0));
        for n in 0..100 {
            log.note(Some(1), at(1 + n));
        }
        for n in 0..100 {
            log.note(Some(n % 2), at(200));
        }
        assert_eq!(log.spans(2, at(0), at(201)), [Span::seconds(1), Span::seconds(200)]);
    }
}
