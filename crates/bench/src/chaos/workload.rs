//! What the programs that are killed work on: actions with limits, and what is promised about their jobs.

use crate::definitions::{action, pool};
use crate::jobs::{Jobs, Kind};
use crate::subject::Setting;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::ids::Name;
use tidegate_core::model::Action;
use tidegate_core::time::Span;
use tidegate_observer::{Case, Claim};
use tidegate_worker::Functions;

/// A job may be unlucky many times; it is not to be given up for that.
const LOSSES: u32 = 30;
const POOL: u32 = 4;
/// Of which everything takes one, so that its leases are short. It never runs out.
const BRIEF: &str = "brief";
/// How long leases last where processes share a store.
const LEASE: Span = Span::seconds(1);
/// A worker ends what has lost its lease at once, as far as the machine lets it.
const OVERSTAY: Duration = Duration::from_secs(2);

/// An action: its name, its own limit, the units it wants of the pool, how long its jobs take, and how many later ones
/// may begin before a job because they are granted with it.
struct Shape {
    name: &'static str,
    concurrency: Option<u32>,
    units: u32,
    takes: Duration,
    together: Option<u32>,
}

const fn shape(name: &'static str, concurrency: Option<u32>, units: u32, millis: u64) -> Shape {
    let together = match (concurrency, units) {
        (Some(1), _) => Some(0),
        (Some(limit), _) => Some(limit),
        (None, 0) => None,
        (None, units) => Some(POOL / units),
    };
    Shape { name, concurrency, units, takes: Duration::from_millis(millis), together }
}

/// The last outlasts its lease several times over, if nobody renews it.
const SHAPES: [Shape; 6] = [
    shape("alone", Some(1), 0, 1),
    shape("few", Some(3), 0, 4),
    shape("narrow", None, 1, 4),
    shape("wide", None, 2, 4),
    shape("free", None, 0, 1),
    shape("slow", Some(4), 0, 900),
];

/// By the place of its action, each has a limit of its own; all who want the pool share the last.
const POOL_LIMIT: u32 = SHAPES.len() as u32 + 1;

/// For whom the work is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workload {
    /// One process at a time, which has the store for itself. With it everything it worked on ends.
    Embedded,
    /// Several processes, which lose their leases.
    Cluster,
}

impl Workload {
    fn shapes(self) -> &'static [Shape] {
        match self {
            Workload::Embedded => &SHAPES[..5],
            Workload::Cluster => &SHAPES,
        }
    }

    /// How many kinds of jobs there are: a submitter submits one of them.
    pub fn kinds(self) -> u64 {
        self.shapes().len() as u64
    }

    /// The action of the job of this number.
    pub fn action(self, number: u64) -> Name {
        Name::new(self.shapes()[(number % self.kinds()) as usize].name)
    }

    /// Slots of each of the two workers of a process. Those who share a store get so few that there is work for all.
    pub fn slots(self) -> u32 {
        match self {
            Workload::Embedded => 32,
            Workload::Cluster => 2,
        }
    }

    pub fn setting(self, name: Option<Name>) -> Setting {
        let mut limits = pool("pool", POOL);
        limits.pools.extend(pool(BRIEF, u32::MAX).pools.into_iter().map(|mut brief| {
            brief.lease = (self == Workload::Cluster).then_some(LEASE);
            brief
        }));
        Setting { actions: self.actions(), limits, name, keeps_digests: true, ..Setting::default() }
    }

    fn actions(self) -> Vec<Action> {
        let action = |shape: &Shape| {
            let pools = [(BRIEF, 1), ("pool", shape.units)];
            let mut action =
                action(shape.name, shape.concurrency, &pools[..1 + usize::from(shape.units > 0)]);
            action.policy.max_losses = LOSSES;
            action
        };
        self.shapes().iter().map(action).collect()
    }

    pub fn functions(self, jobs: &Arc<Jobs>) -> Functions {
        let mut functions = Functions::default();
        for (number, shape) in (1..).zip(self.shapes()) {
            let own = Claim { limit: number, units: u32::from(shape.concurrency.is_some()) };
            let shared = Claim { limit: POOL_LIMIT, units: shape.units };
            let (line, claims, takes) = (number as u16, [own, shared], shape.takes);
            jobs.register(
                &mut functions,
                shape.name,
                Kind { line, claims, takes, is_leased: true, ..Kind::default() },
            );
        }
        functions
    }

    /// What is promised, if jobs may have been handed back so many times.
    pub fn case(self, hand_backs: u32) -> Case {
        let numbered = || (1..).zip(self.shapes());
        let own = numbered().filter_map(|(number, shape)| Some((number, shape.concurrency?)));
        // Where others live on, any number of them pass by one that has still its lease and was never begun.
        let is_ordered = |together: &u32| self == Workload::Embedded || *together == 0;
        let lines = numbered()
            .filter_map(|(number, shape)| Some((number as u16, shape.together.filter(is_ordered)?)));
        Case {
            limits: own.chain([(POOL_LIMIT, POOL)]).collect(),
            must_reach: true,
            lines: lines.collect(),
            overstay: OVERSTAY.as_nanos() as u64,
            // One more where grants run ahead of their commits.
            starts: 1 + LOSSES + hand_backs + u32::from(self == Workload::Embedded),
            has_history: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_promised_is_what_is_declared() {
        let case = Workload::Embedded.case(3);
        assert_eq!(case.limits, [(1, 1), (2, 3), (POOL_LIMIT, POOL)].into());
        assert_eq!(case.lines, [(1, 0), (2, 3), (3, 4), (4, 2)].into());
        assert_eq!(case.starts, 1 + LOSSES + 3 + 1);
        let limits = |workload: Workload| -> Vec<Option<u32>> {
            workload.actions().iter().map(|action| action.policy.each.concurrency).collect()
        };
        assert_eq!(limits(Workload::Embedded), [Some(1), Some(3), None, None, None]);
        let case = Workload::Cluster.case(0);
        assert_eq!(case.limits, [(1, 1), (2, 3), (6, 4), (POOL_LIMIT, POOL)].into());
        assert_eq!(case.lines, [(1, 0)].into());
        assert_eq!(limits(Workload::Cluster), [Some(1), Some(3), None, None, None, Some(4)]);
    }

    #[test]
    fn leases_are_short_where_processes_lose_them() {
        for (workload, lease) in [(Workload::Embedded, None), (Workload::Cluster, Some(LEASE))] {
            let pools = workload.setting(None).limits.pools;
            assert!(pools.iter().any(|pool| pool.name.as_str() == BRIEF && pool.lease == lease));
        }
    }
}
