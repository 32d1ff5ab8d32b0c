//! The lines for slots, gathered by who could serve them.
//!
//! Every requirement is a limit with a line of its own, and there are as many as there are functions. Those that the
//! same workers fit are in line for the same slots: they are looked at as one line, or a free slot would have to be
//! offered to each of a hundred functions, after all those before it in each of the others.

use super::class::ClassId;
use super::limit::LimitId;
use super::rank::Rank;
use super::slots::{Slots, WorkerOrder};
use crate::ids::Name;
use crate::model::SlotKind;
use rustc_hash::FxHashMap;
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;

/// Requirements that the same workers fit.
#[derive(Debug)]
struct Group {
    kind: SlotKind,
    /// In the order in which they are chosen.
    workers: Vec<WorkerOrder>,
    members: BTreeSet<LimitId>,
    /// The lines of all members, merged.
    line: BTreeMap<Rank, (LimitId, ClassId)>,
}

#[derive(Debug, Default)]
pub(super) struct SlotLines {
    groups: Slab<Group>,
    /// Only looked up, never walked through: its order decides nothing.
    of: FxHashMap<LimitId, usize>,
}

impl SlotLines {
    pub fn limits(&self) -> Vec<LimitId> {
        let mut all: Vec<LimitId> =
            self.groups.iter().flat_map(|(_, group)| group.members.iter().copied()).collect();
        all.sort_unstable();
        all
    }

    pub fn add(&mut self, id: LimitId, kind: SlotKind, workers: Vec<WorkerOrder>) {
        self.put(Group { kind, workers, members: BTreeSet::from([id]), line: BTreeMap::new() });
    }

    /// Nobody stands in the line of a limit that is removed.
    pub fn remove(&mut self, id: LimitId) {
        let Some(place) = self.of.remove(&id) else { return };
        let group = &mut self.groups[place];
        group.members.remove(&id);
        if group.members.is_empty() {
            self.groups.remove(place);
        }
    }

    /// Joins the group of the same workers, if there is one.
    fn put(&mut self, group: Group) {
        let is_same = |other: &Group| other.kind == group.kind && other.workers == group.workers;
        let place = match self.groups.iter().find(|(_, other)| is_same(other)) {
            Some((place, _)) => place,
            None => {
                let (kind, workers) = (group.kind, group.workers);
                let empty = Group { kind, workers, members: BTreeSet::new(), line: BTreeMap::new() };
                self.groups.insert(empty)
            }
        };
        self.of.extend(group.members.iter().map(|&id| (id, place)));
        let known = &mut self.groups[place];
        let (mut members, mut line) = (group.members, group.line);
        known.members.append(&mut members);
        known.line.append(&mut line);
    }

    /// A worker came, went or has other skills: whom it fits is asked anew.
    pub fn refit(&mut self, worker: &WorkerOrder, fits: impl Fn(LimitId) -> bool) {
        self.of.clear();
        let groups: Vec<Group> =
            std::mem::take(&mut self.groups).into_iter().map(|(_, group)| group).collect();
        for Group { kind, mut workers, members, line } in groups {
            workers.retain(|known| known != worker);
            let (fitting, others): (BTreeSet<_>, _) = members.into_iter().partition(|&id| fits(id));
            let (its_line, other_line) = line.into_iter().partition(|(_, (id, _))| fitting.contains(id));
            if !others.is_empty() {
                self.put(Group { kind, workers: workers.clone(), members: others, line: other_line });
            }
            if !fitting.is_empty() {
                let at = workers.partition_point(|known| known < worker);
                workers.insert(at, worker.clone());
                self.put(Group { kind, workers, members: fitting, line: its_line });
            }
        }
    }

    pub fn enter(&mut self, id: LimitId, rank: Rank, class: ClassId) {
        if let Some(&place) = self.of.get(&id) {
            self.groups[place].line.insert(rank, (id, class));
        }
    }

    pub fn leave(&mut self, id: LimitId, rank: Rank) {
        if let Some(&place) = self.of.get(&id) {
            self.groups[place].line.remove(&rank);
        }
    }

    /// The worker for a head of that rank in the line of `id`, after all better-ranked heads have chosen.
    pub fn worker_for<'a>(&'a self, id: LimitId, rank: Rank, slots: &'a Slots) -> Option<&'a Name> {
        let own = *self.of.get(&id)?;
        let kind = self.groups[own].kind;
        if !slots.any_free(kind) {
            return None;
        }
        let mut choosing = Choosing::new(self, kind, Some(rank), slots);
        while let Some(step) = choosing.next() {
            if step.worker.is_none() && step.group == own {
                return None;
            }
        }
        choosing.choose(own)
    }

    /// The best-ranked head that `may_start` and for which there is a worker after all who stand before it.
    pub fn first_served(
        &self,
        kind: SlotKind,
        slots: &Slots,
        may_start: impl Fn(LimitId, ClassId) -> bool,
    ) -> Option<(Rank, ClassId)> {
        if !slots.any_free(kind) {
            return None;
        }
        let mut choosing = Choosing::new(self, kind, None, slots);
        loop {
            let step = choosing.next()?;
            if step.worker.is_some() && may_start(step.limit, step.class) {
                return Some((step.rank, step.class));
            }
        }
    }
}

/// Heads choosing a worker one after the other, by rank, without taking anything.
struct Choosing<'a, I: Iterator<Item = (&'a Rank, &'a (LimitId, ClassId))>> {
    lines: &'a SlotLines,
    /// Groups whose next head may still get a worker.
    open: Vec<(usize, Peekable<I>)>,
    slots: &'a Slots,
    kind: SlotKind,
    chosen: Vec<(&'a WorkerOrder, u32)>,
}

struct Step<'a> {
    group: usize,
    rank: Rank,
    limit: LimitId,
    class: ClassId,
    worker: Option<&'a Name>,
}

impl<'a> Choosing<'a, std::collections::btree_map::Range<'a, Rank, (LimitId, ClassId)>> {
    fn new(lines: &'a SlotLines, kind: SlotKind, before: Option<Rank>, slots: &'a Slots) -> Self {
        let of_kind = lines.groups.iter().filter(|(_, group)| group.kind == kind);
        let open = of_kind.filter_map(|(place, group)| {
            let mut heads = match before {
                Some(rank) => group.line.range(..rank),
                None => group.line.range(..),
            }
            .peekable();
            heads.peek().is_some().then_some((place, heads))
        });
        Choosing { lines, open: open.collect(), slots, kind, chosen: Vec::new() }
    }
}

impl<'a, I: Iterator<Item = (&'a Rank, &'a (LimitId, ClassId))>> Choosing<'a, I> {
    /// The next head, and the worker it gets.
    fn next(&mut self) -> Option<Step<'a>> {
        let heads = self.open.iter_mut().enumerate();
        let (_, at) = heads.filter_map(|(at, (_, heads))| Some((*heads.peek()?.0, at))).min()?;
        let (group, heads) = &mut self.open[at];
        let group = *group;
        let (&rank, &(limit, class)) = heads.next()?;
        let worker = self.choose(group);
        if worker.is_none() {
            // Nobody behind it in that group gets one either.
            drop(self.open.swap_remove(at));
        }
        Some(Step { group, rank, limit, class, worker })
    }

    fn choose(&mut self, group: usize) -> Option<&'a Name> {
        for worker in &self.lines.groups[group].workers {
            let taken = self.chosen.iter_mut().find(|(chosen, _)| *chosen == worker);
            let count = taken.as_ref().map_or(0, |(_, count)| *count);
            if self.slots.free(worker, self.kind) > count {
                match taken {
                    Some((_, count)) => *count += 1,
                    None => self.chosen.push((worker, 1)),
                }
                return Some(&worker.name);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::slots::{Skills, SlotCounts};
    use super::super::testkit::rank;
    use super::*;
    use crate::model::Requirement;

    const KIND: SlotKind = SlotKind::Process;

    fn need(label: &str) -> Requirement {
        let labels = label.split_whitespace().map(Name::new).collect();
        Requirement { labels, ..Requirement::process() }
    }

    /// Three lines: for anybody, for `gpu`, for `tpu`.
    fn lines(slots: &Slots) -> SlotLines {
        let mut lines = SlotLines::default();
        for (id, label) in ["", "gpu", "tpu"].into_iter().enumerate() {
            lines.add(LimitId(id as u32), KIND, slots.fitting(&need(label)));
        }
        lines
    }

    fn join(slots: &mut Slots, name: &str, labels: &str, count: u32) -> WorkerOrder {
        let labels = labels.split_whitespace().map(Name::new).collect();
        slots.set(&name.into(), Skills { labels, ..Skills::plain() }, SlotCounts { process: count, io: 0 })
    }

    #[test]
    fn requirements_that_the_same_workers_fit_are_one_group() {
        let mut slots = Slots::default();
        let both = join(&mut slots, "both", "gpu tpu", 1);
        let mut lines = lines(&slots);
        assert_eq!(lines.groups.len(), 1);
        let fits = |worker: &'static str| {
            move |id: LimitId| worker.is_empty() || worker == ["", "gpu", "tpu"][id.0 as usize]
        };
        let gpu = join(&mut slots, "gpu", "gpu", 1);
        lines.enter(LimitId(1), rank(5), ClassId(7));
        lines.refit(&gpu, |id| id.0 < 2);
        assert_eq!(lines.groups.len(), 2);
        assert_eq!(
            lines.worker_for(LimitId(1), rank(9), &slots).map(Name::as_str),
            Some("both"),
            "rank 5 took gpu"
        );
        lines.refit(&both, |_| false);
        assert_eq!(lines.worker_for(LimitId(1), rank(9), &slots), None);
        lines.refit(&gpu, fits("nothing"));
        assert_eq!((lines.groups.len(), lines.limits().len()), (1, 3), "all of them wait for nobody");
        lines.leave(LimitId(1), rank(5));
        (0..3).for_each(|id| lines.remove(LimitId(id)));
        assert_eq!((lines.groups.len(), lines.of.len()), (0, 0));
    }

    #[test]
    fn heads_choose_by_rank_across_groups() {
        let mut slots = Slots::default();
        join(&mut slots, "gpu", "gpu", 1);
        join(&mut slots, "plain", "", 1);
        let mut lines = lines(&slots);
        for (id, at) in [(2, 1), (1, 2), (0, 3), (0, 4), (1, 5)] {
            lines.enter(LimitId(id), rank(at), ClassId(id));
        }
        let served = |may_start: fn(ClassId) -> bool| {
            lines.first_served(KIND, &slots, |_, class| may_start(class)).map(|(rank, _)| rank)
        };
        assert_eq!(served(|_| true), Some(rank(2)), "nobody has a tpu");
        assert_eq!(served(|class| class == ClassId(0)), Some(rank(3)));
        assert_eq!(served(|class| class == ClassId(2)), None);
        let workers = [(1, 2), (0, 3), (0, 4), (1, 5)];
        let workers =
            workers.map(|(id, at)| lines.worker_for(LimitId(id), rank(at), &slots).map(Name::as_str));
        assert_eq!(workers, [Some("gpu"), Some("plain"), None, None]);
    }
}
