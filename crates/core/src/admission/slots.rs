//! Worker slots, which are matched rather than counted: a slot goes to the best-ranked head that its worker fits.

use crate::ids::Name;
use crate::model::{Requirement, Runner, SlotKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a worker says of itself when it joins.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Skills {
    pub queues: Vec<Name>,
    pub labels: Vec<Name>,
    pub functions: Vec<Name>,
    /// Whether it starts processes.
    pub processes: bool,
    /// Whether it carries out orders inside its own process.
    #[serde(default)]
    pub io: bool,
}

impl Skills {
    /// A worker of the default queue that knows no functions.
    pub fn plain() -> Self {
        Skills {
            queues: vec![Name::new(Requirement::DEFAULT_QUEUE)],
            labels: Vec::new(),
            functions: Vec::new(),
            processes: true,
            io: true,
        }
    }

    pub fn fit(&self, need: &Requirement) -> bool {
        let runs = match &need.runner {
            Runner::Process => self.processes,
            Runner::Io => self.io,
            Runner::Function(action) => self.functions.contains(action),
        };
        runs && self.queues.contains(&need.queue)
            && need.labels.iter().all(|label| self.labels.contains(label))
    }
}

/// Slots of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SlotCounts {
    pub process: u32,
    pub io: u32,
}

impl SlotCounts {
    pub fn of(&self, kind: SlotKind) -> u32 {
        match kind {
            SlotKind::Process => self.process,
            SlotKind::Io => self.io,
        }
    }

    fn of_mut(&mut self, kind: SlotKind) -> &mut u32 {
        match kind {
            SlotKind::Process => &mut self.process,
            SlotKind::Io => &mut self.io,
        }
    }
}

/// Least capable first, then by name: a slot that can do more is kept for those who need it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct WorkerOrder {
    labels: usize,
    pub name: Name,
}

#[derive(Clone, Debug)]
pub struct WorkerSlots {
    pub skills: Skills,
    pub slots: SlotCounts,
    pub busy: SlotCounts,
}

impl WorkerSlots {
    pub fn free(&self, kind: SlotKind) -> u32 {
        self.slots.of(kind).saturating_sub(self.busy.of(kind))
    }

    /// Whether it could run this once it has nothing else to do.
    fn may_run(&self, need: &Requirement) -> bool {
        self.slots.of(need.slot()) > 0 && self.skills.fit(need)
    }
}

/// The connected workers.
#[derive(Default, Debug)]
pub struct Slots {
    workers: BTreeMap<WorkerOrder, WorkerSlots>,
    order: BTreeMap<Name, WorkerOrder>,
    free: SlotCounts,
}

impl Slots {
    pub fn get(&self, name: &str) -> Option<&WorkerSlots> {
        self.workers.get(self.order.get(name)?)
    }

    /// By name.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &WorkerSlots)> {
        self.order.iter().filter_map(|(name, order)| Some((name, self.workers.get(order)?)))
    }

    pub(super) fn set(&mut self, name: &Name, skills: Skills, slots: SlotCounts) -> WorkerOrder {
        let busy = self.remove(name.as_str());
        let order = WorkerOrder { labels: skills.labels.len(), name: name.clone() };
        self.order.insert(name.clone(), order.clone());
        self.workers.insert(order.clone(), WorkerSlots { skills, slots, busy });
        self.count_free();
        order
    }

    pub(super) fn order(&self, name: &str) -> Option<&WorkerOrder> {
        self.order.get(name)
    }

    pub(super) fn free(&self, worker: &WorkerOrder, kind: SlotKind) -> u32 {
        self.workers.get(worker).map_or(0, |worker| worker.free(kind))
    }

    /// Everybody who fits, in the order in which they are chosen.
    pub(super) fn fitting(&self, need: &Requirement) -> Vec<WorkerOrder> {
        let fitting = self.workers.iter().filter(|(_, worker)| worker.skills.fit(need));
        fitting.map(|(order, _)| order.clone()).collect()
    }

    /// Forgets a worker; says how many of its slots were taken.
    pub(super) fn remove(&mut self, name: &str) -> SlotCounts {
        let gone = self.order.remove(name).and_then(|order| self.workers.remove(&order));
        self.count_free();
        gone.map(|worker| worker.busy).unwrap_or_default()
    }

    fn count_free(&mut self) {
        self.free = SlotCounts::default();
        for worker in self.workers.values() {
            self.free.process += worker.free(SlotKind::Process);
            self.free.io += worker.free(SlotKind::Io);
        }
    }

    pub(super) fn take(&mut self, name: &str, kind: SlotKind) {
        self.change(name, kind, |busy| busy + 1);
    }

    pub(super) fn give_back(&mut self, name: &str, kind: SlotKind) {
        self.change(name, kind, |busy| busy.saturating_sub(1));
    }

    fn change(&mut self, name: &str, kind: SlotKind, change: impl Fn(u32) -> u32) {
        let Some(worker) = self.order.get(name).and_then(|order| self.workers.get_mut(order)) else { return };
        let before = worker.free(kind);
        let busy = worker.busy.of_mut(kind);
        *busy = change(*busy);
        let free = self.free.of_mut(kind);
        *free = *free + worker.free(kind) - before;
    }

    pub fn any_free(&self, kind: SlotKind) -> bool {
        self.free.of(kind) > 0
    }

    /// Whether a connected worker could ever run this.
    pub fn may_run(&self, need: &Requirement) -> bool {
        self.workers.values().any(|worker| worker.may_run(need))
    }

    /// All slots of the workers that fit.
    pub fn capacity(&self, need: &Requirement) -> u64 {
        let fitting = self.workers.values().filter(|worker| worker.skills.fit(need));
        fitting.map(|worker| u64::from(worker.slots.of(need.slot()))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skills(labels: &[&str]) -> Skills {
        Skills { labels: labels.iter().map(Name::new).collect(), ..Skills::plain() }
    }

    fn need(labels: &[&str]) -> Requirement {
        Requirement { labels: labels.iter().map(Name::new).collect(), ..Requirement::process() }
    }

    const TWO: SlotCounts = SlotCounts { process: 2, io: 0 };

    #[test]
    fn the_least_capable_worker_is_chosen_first() {
        let mut slots = Slots::default();
        slots.set(&"a".into(), skills(&["gpu"]), TWO);
        slots.set(&"b".into(), skills(&[]), TWO);
        let names = |labels: &[&str]| {
            slots.fitting(&need(labels)).into_iter().map(|worker| worker.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&[]), [Name::new("b"), Name::new("a")]);
        assert_eq!(names(&["gpu"]), [Name::new("a")]);
        assert_eq!(names(&["tpu"]), []);
        assert_eq!((slots.capacity(&need(&[])), slots.capacity(&need(&["gpu"]))), (4, 2));
    }

    #[test]
    fn skills_fit_by_queue_runner_and_labels() {
        let plain = skills(&["x"]);
        assert!(plain.fit(&need(&["x"])));
        assert!(!plain.fit(&need(&["x", "y"])));
        assert!(!plain.fit(&Requirement { queue: "other".into(), ..need(&[]) }));
        assert!(!plain.fit(&Requirement::function("resize".into())));
        let function = Skills { functions: vec!["resize".into()], processes: false, ..skills(&[]) };
        assert!(function.fit(&Requirement::function("resize".into())));
        assert!(!function.fit(&need(&[])));
    }

    #[test]
    fn free_slots_are_counted_through_changes() {
        let mut slots = Slots::default();
        let name = Name::new("a");
        slots.set(&name, skills(&[]), TWO);
        slots.take("a", SlotKind::Process);
        slots.take("a", SlotKind::Process);
        assert!(!slots.any_free(SlotKind::Process));
        assert!(!slots.any_free(SlotKind::Io));
        slots.set(&name, skills(&[]), SlotCounts { process: 1, io: 1 });
        assert_eq!(slots.get("a").map(|w| (w.busy.process, w.free(SlotKind::Process))), Some((2, 0)));
        slots.give_back("a", SlotKind::Process);
        assert!(!slots.any_free(SlotKind::Process), "lowered below use: one more must end");
        slots.give_back("a", SlotKind::Process);
        assert!(slots.any_free(SlotKind::Process));
        slots.take("nobody", SlotKind::Process);
        assert_eq!(slots.iter().map(|(name, _)| name).collect::<Vec<_>>(), [&name]);
        assert_eq!(slots.remove("a"), SlotCounts::default());
        assert!(!slots.may_run(&need(&[])));
        assert_eq!(slots.iter().count(), 0);
    }
}
