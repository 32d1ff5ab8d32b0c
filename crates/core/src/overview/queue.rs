//! What waits for a limit, in the order in which it is looked at.

use super::MOST_LISTED;
use crate::admission::{Class, ClassId, Demand, LimitId, LimitKey, Rank};
use crate::catalog::Source;
use crate::core::Core;
use crate::explain::brief;
use crate::ids::{Name, NodeId, TaskId};
use crate::time::Moment;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Which of those that wait. What is not said matters not.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct QueueWanted {
    /// Of this action or flow.
    pub name: Option<Name>,
    /// Kept waiting by this limit.
    pub limit: Option<LimitKey>,
    /// Parts of this run, or itself.
    pub root: Option<NodeId>,
    pub most: u32,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Queue {
    /// How many wait, of those that are wanted; of a run, how many are listed.
    pub waiting: u64,
    /// Best-ranked first.
    pub rows: Vec<QueueRow>,
    /// How many each limit keeps waiting.
    pub by_limit: Vec<(LimitKey, u64)>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct QueueRow {
    pub task: TaskId,
    pub name: String,
    /// So many items of a loop in a row, this one included.
    pub count: u32,
    /// Its action or flow, if it has one.
    pub what: Option<Name>,
    pub priority: i8,
    pub since: Moment,
    /// The limit that it stands under.
    pub limit: Option<LimitKey>,
    /// In a few words.
    pub waits: String,
}

impl Core {
    /// Those who stand in line, best-ranked first. It costs as much as there are classes, and what is listed.
    pub fn queue(&self, wanted: &QueueWanted, now: Moment) -> Queue {
        let classes: Vec<(ClassId, &Class)> =
            self.admission.classes().filter(|(id, class)| self.is_wanted(*id, class, wanted)).collect();
        let mut by_limit = BTreeMap::<LimitKey, u64>::new();
        for (_, class) in &classes {
            if let Some(limit) = self.stands_under(class) {
                *by_limit.entry(limit).or_default() += class.waiting();
            }
        }
        let rows = self.in_order(&classes, wanted, now);
        let waiting = match wanted.root {
            Some(_) => rows.iter().map(|row| u64::from(row.count)).sum(),
            None => classes.iter().map(|(_, class)| class.waiting()).sum(),
        };
        Queue { waiting, rows, by_limit: by_limit.into_iter().collect() }
    }

    fn is_wanted(&self, id: ClassId, class: &Class, wanted: &QueueWanted) -> bool {
        class.waiting() > 0
            && wanted.name.as_ref().is_none_or(|name| self.what_of(id).as_ref() == Some(name))
            && wanted.limit.as_ref().is_none_or(|limit| self.stands_under(class).as_ref() == Some(limit))
    }

    /// The action or flow of a class.
    pub(super) fn what_of(&self, id: ClassId) -> Option<Name> {
        match &*self.classes.entry(id)?.source {
            Source::Run { flow, .. } => Some(flow.clone()),
            Source::Attempt(attempt) => attempt.action.clone(),
            Source::Step { .. } | Source::Window { .. } => None,
        }
    }

    fn stands_under(&self, class: &Class) -> Option<LimitKey> {
        Some(self.admission.limit(self.kept_waiting_by(class)?).key.clone())
    }

    /// The limit that a class is parked under; if it stands aside, the first that lets nobody of it start.
    pub(super) fn kept_waiting_by(&self, class: &Class) -> Option<LimitId> {
        let aside = |demand: &&Demand| self.admission.sends_aside(demand.limit, demand.units);
        match class.place() {
            Some(place) => Some(class.demands[place.at].limit),
            None => class.demands.iter().find(aside).map(|demand| demand.limit),
        }
    }

    /// The best of all classes, as many as are wanted: each class is in order already.
    fn in_order(&self, classes: &[(ClassId, &Class)], wanted: &QueueWanted, now: Moment) -> Vec<QueueRow> {
        let most = (wanted.most as usize).min(MOST_LISTED);
        let mut lines: Vec<_> = classes.iter().map(|(_, class)| class.ranges()).collect();
        let mut heads: BinaryHeap<Reverse<(Rank, u32, usize)>> = BinaryHeap::with_capacity(lines.len());
        let next = |lines: &mut Vec<_>, at: usize| -> Option<Reverse<(Rank, u32, usize)>> {
            let line: &mut dyn Iterator<Item = (Rank, u32)> = lines.get_mut(at)?;
            line.next().map(|(rank, count)| Reverse((rank, count, at)))
        };
        for at in 0..lines.len() {
            heads.extend(next(&mut lines, at));
        }
        let mut rows = Vec::new();
        while let Some(Reverse((rank, count, at))) = heads.pop() {
            heads.extend(next(&mut lines, at));
            if wanted.root.is_some_and(|root| root.0 != rank.root()) {
                continue;
            }
            rows.extend(self.row(rank, count, classes[at], now));
            if rows.len() == most {
                break;
            }
        }
        rows
    }

    fn row(&self, rank: Rank, count: u32, (id, class): (ClassId, &Class), now: Moment) -> Option<QueueRow> {
        let task = rank.task();
        let explanation = self.explain(task, now)?;
        Some(QueueRow {
            task,
            count,
            what: self.what_of(id),
            priority: rank.priority(),
            since: explanation.since,
            limit: self.stands_under(class),
            waits: brief(&explanation).unwrap_or_default(),
            name: explanation.name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Command, LimitValue, Pausable};
    use crate::testkit::Kit;

    #[test]
    fn the_best_ranked_of_all_come_first() {
        let mut kit = Kit::new(0);
        let jobs: Vec<NodeId> = ["a", "b", "a"].map(|action| kit.job(action)).into();
        let all = QueueWanted { most: 10, ..QueueWanted::default() };
        let queue = kit.core.queue(&all, kit.now);
        assert_eq!(queue.waiting, 3);
        assert_eq!(queue.rows.iter().map(|row| row.task.node).collect::<Vec<_>>(), jobs);
        assert!(queue.rows.iter().all(|row| row.waits.contains("workers")), "{:?}", queue.rows);
        let some = QueueWanted { most: 2, ..QueueWanted::default() };
        assert_eq!(kit.core.queue(&some, kit.now).rows.len(), 2);
    }

    #[test]
    fn those_of_an_action_a_limit_or_a_run_are_told_apart() {
        let mut kit = Kit::new(0);
        kit.set(LimitKey::Action("b".into()), Some(LimitValue::Units(0)));
        let jobs: Vec<NodeId> = ["a", "b", "a"].map(|action| kit.job(action)).into();
        let rows = |wanted: QueueWanted| -> Vec<NodeId> {
            let queue = kit.core.queue(&QueueWanted { most: 10, ..wanted }, kit.now);
            assert_eq!(queue.waiting, queue.rows.len() as u64);
            queue.rows.iter().map(|row| row.task.node).collect()
        };
        let (name, limit) = (Some("a".into()), Some(LimitKey::Action("b".into())));
        assert_eq!(rows(QueueWanted { name, ..QueueWanted::default() }), [jobs[0], jobs[2]]);
        assert_eq!(rows(QueueWanted { root: Some(jobs[2]), ..QueueWanted::default() }), [jobs[2]]);
        assert_eq!(rows(QueueWanted { limit, ..QueueWanted::default() }), [jobs[1]]);
        let queue = kit.core.queue(&QueueWanted { most: 10, ..QueueWanted::default() }, kit.now);
        let counted: u64 = queue.by_limit.iter().map(|(_, count)| count).sum();
        assert_eq!(counted, 3, "{:?}", queue.by_limit);
    }

    #[test]
    fn who_stands_aside_is_found_under_what_keeps_it_there() {
        let mut kit = Kit::new(1);
        let key = LimitKey::Action("a".into());
        kit.set(key.clone(), Some(LimitValue::Units(1)));
        let jobs = [kit.job("a"), kit.job("a")];
        kit.apply(Command::Pause(Pausable::Limit(key.clone())));
        let detail = kit.core.limit_detail(&key, kit.now).expect("it was set");
        let waiters: Vec<NodeId> = detail.waiters.iter().map(|row| row.task.node).collect();
        assert_eq!((detail.limit.waiting, waiters), (2, jobs.to_vec()));
        assert_eq!(kit.core.queue(&QueueWanted::default(), kit.now).by_limit, [(key, 2)]);
    }
}
