//! What is read back: everything open for a core, single payloads and ends for whoever asks.

use super::tables::{Item, Tables, Task};
use crate::contract::{Ended, Found, Loaded, Sought};
use crate::identity;
use std::collections::BTreeMap;
use tidegate_core::ids::{NodeId, TaskId};
use tidegate_core::protocol::{Body, ItemRow, Life, NodeRow, Payload, Snapshot};
use tidegate_core::{LoopTally, RESIDENT};

impl Tables {
    pub fn load(&self) -> Loaded {
        let nodes = self.tasks.values().filter(|task| self.is_wanted(task)).map(loaded).collect();
        let items = self.items.iter().filter(|((step, _), item)| is_open(&item.life) && self.is_open(*step));
        let items = items.map(|(&(step, index), item)| ItemRow {
            step,
            index,
            key: item.order.key.clone(),
            life: item.life.clone(),
        });
        let snapshot = Snapshot {
            nodes,
            items: items.collect(),
            loops: self.loops(),
            limits: self.limits.values().cloned().collect(),
            paces: self.paces.iter().map(|(key, pace)| (key.clone(), pace.clone())).collect(),
            declared: self.declared.clone(),
            workers: self.workers.values().cloned().collect(),
            next: self.head.next,
            now: self.head.now,
        };
        Loaded { snapshot, sequence: self.head.sequence, digest: self.head.digest }
    }

    fn is_open(&self, node: NodeId) -> bool {
        self.tasks.get(&node).is_some_and(|task| is_open(&task.row.life))
    }

    /// What is open, and how the steps of open runs ended: later steps depend on it.
    fn is_wanted(&self, task: &Task) -> bool {
        let row = &task.row;
        let is_step = matches!(row.body, Body::Step(_));
        is_open(&row.life) || (is_step && row.parent.is_some_and(|run| self.is_open(run)))
    }

    fn loops(&self) -> BTreeMap<NodeId, (u32, LoopTally)> {
        let mut loops = BTreeMap::<NodeId, (u32, LoopTally)>::new();
        for (&(step, _), item) in self.items.iter().filter(|((step, _), _)| self.is_open(*step)) {
            let (rows, ended) = loops.entry(step).or_default();
            *rows += 1;
            if !is_open(&item.life) {
                ended.count(item.life.state);
            }
        }
        loops
    }

    pub fn find(&self, sought: &Sought) -> Option<Found> {
        let newest = |is_it: &dyn Fn(&Body) -> bool| {
            let (&node, task) = self.tasks.iter().rev().find(|(_, task)| is_it(&task.row.body))?;
            identity::found(node, &task.row.body)
        };
        match sought {
            Sought::Id(id) => newest(&|body| body.id() == Some(*id)),
            Sought::Key(key) => {
                newest(&|body| identity::idempotency(body).is_some_and(|known| known.key == *key))
            }
            Sought::Part(node) => {
                let row = &self.tasks.get(node)?.row;
                identity::found(*node, &row.body).or_else(|| self.find(&Sought::Part(row.parent?)))
            }
        }
    }

    pub fn payload(&self, task: TaskId) -> Option<Payload> {
        match task.index() {
            None => self.tasks.get(&task.node)?.row.payload.clone(),
            Some(index) => Some(self.items.get(&(task.node, index))?.order.order.clone()),
        }
    }

    pub fn ended(&self, task: TaskId) -> Option<Ended> {
        match task.index() {
            None => {
                let task = self.tasks.get(&task.node)?;
                how_it_ended(&task.row.life, &task.output)
            }
            Some(index) => {
                let item = self.items.get(&(task.node, index))?;
                how_it_ended(&item.life, &item.output)
            }
        }
    }

    pub fn ended_items(&self, step: NodeId, from: u32, to: u32) -> Vec<(u32, Ended)> {
        let ended = |(&(_, index), item): (&(NodeId, u32), &Item)| {
            how_it_ended(&item.life, &item.output).map(|ended| (index, ended))
        };
        // A range that ends before it begins holds nothing; a map would not forgive it.
        self.items.range((step, from)..(step, to.max(from))).filter_map(ended).collect()
    }
}

fn is_open(life: &Life) -> bool {
    life.ended.is_none()
}

fn how_it_ended(life: &Life, output: &Option<Payload>) -> Option<Ended> {
    let ended = || Ended {
        state: life.state,
        output: output.clone(),
        error: life.error.clone(),
        attempts: life.tally.started,
    };
    (!is_open(life)).then(ended)
}

fn loaded(task: &Task) -> NodeRow {
    let mut row = task.row.clone();
    row.payload = row.payload.filter(|payload| payload.bytes().len() <= RESIDENT);
    row
}
