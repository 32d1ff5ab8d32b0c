//! What must hold after every command; asserted in debug and simulation builds, never relied upon.

use crate::admission::{ClassId, Gauge, LimitKey, SlotCounts};
use crate::core::Core;
use crate::ids::Name;
use crate::model::SlotKind;
use crate::nodes::{Kind, Node, RunState, Work};
use crate::state::State;
use std::collections::BTreeMap;

/// Above this many open nodes the sums are checked only now and then: they cost as much as there is to sum up.
const CHECKED_ALWAYS: usize = 400;

impl Core {
    pub(crate) fn check(&self) {
        if self.planted.is_any() || (self.nodes.len() > CHECKED_ALWAYS && !self.grants.is_multiple_of(1024)) {
            return;
        }
        self.admission.check_places(self.now);
        self.check_sums();
    }

    /// Counters equal the sums over running tasks.
    fn check_sums<'a>(&'a self) {
        let mut holders: BTreeMap<ClassId, u64> = BTreeMap::new();
        let mut busy: BTreeMap<&Name, SlotCounts> = BTreeMap::new();
        let mut count = |work: &'a Work| {
            if work.state() == State::Running {
                *holders.entry(work.class).or_default() += 1;
            }
            let Some(running) = work.running() else { return };
            let slots = busy.entry(&running.worker).or_default();
            match self.slot_kind(work.class) {
                SlotKind::Process => slots.process += 1,
                SlotKind::Io => slots.io += 1,
            }
        };
        let mut outer = Vec::new();
        for (_, node) in self.nodes.iter() {
            match node {
                Node::Job(job) => count(&job.work),
                Node::Run(run) => outer.extend(run.class.filter(|_| run.state == RunState::Running)),
                Node::Step(step) => {
                    outer.extend(step.class.filter(|_| step.entered));
                    match &step.kind {
                        Kind::Plain { work: Some(work), .. } => count(work),
                        Kind::Loop(items) => items.items.values().for_each(|item| count(&item.work)),
                        _ => {}
                    }
                }
            }
        }
        outer.into_iter().for_each(|class| *holders.entry(class).or_default() += 1);
        let mut used = BTreeMap::new();
        for (id, class) in self.admission.classes() {
            let held = holders.get(&id).copied().unwrap_or(0);
            assert_eq!(class.holders(), held, "holders of a class are its running tasks");
            for demand in &class.demands {
                *used.entry(demand.limit).or_insert(0) += held * u64::from(demand.units);
            }
        }
        for (id, limit) in self.admission.limits() {
            if let Gauge::Units { used: counted, .. } = limit.gauge {
                assert_eq!(counted, used.get(&id).copied().unwrap_or(0), "units used of {}", limit.key);
            }
        }
        for (name, worker) in self.admission.slots().iter() {
            assert_eq!(worker.busy, busy.get(name).copied().unwrap_or_default(), "busy slots of {name}");
        }
    }

    fn slot_kind(&self, class: ClassId) -> SlotKind {
        let demands = self.admission.class(class).demands.iter();
        let keys = demands.map(|demand| &self.admission.limit(demand.limit).key);
        keys.filter_map(|key| if let LimitKey::Slot(need) = key { Some(need.slot()) } else { None })
            .next()
            .unwrap_or(SlotKind::Process)
    }
}
