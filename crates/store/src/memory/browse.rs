//! What people look at: what was submitted, ended or not.

use super::tables::{Tables, Task};
use crate::contract::{InState, Wanted};
use std::collections::BTreeMap;
use tidegate_core::ids::NodeId;
use tidegate_core::protocol::NodeRow;

impl Tables {
    pub fn submitted(&self, wanted: &Wanted, most: u32) -> Vec<NodeRow> {
        let before = wanted.before.unwrap_or(NodeId(u64::MAX));
        let is_wanted = |task: &&Task| {
            task.row.parent.is_none()
                && wanted.state.is_none_or(|state| state == task.row.life.state)
                && wanted.name.as_ref().is_none_or(|name| task.row.body.name() == Some(name))
        };
        let tasks = self.tasks.range(..before).rev().map(|(_, task)| task);
        tasks.filter(is_wanted).take(most as usize).map(without_payload).collect()
    }

    pub fn rows_of(&self, root: NodeId) -> Vec<NodeRow> {
        let mut rows = Vec::<NodeRow>::new();
        // Whatever is below a node was added after it.
        for task in self.tasks.range(root..).map(|(_, task)| task) {
            let is_part = |parent: NodeId| rows.iter().any(|row| row.node == parent);
            if task.row.node == root || task.row.parent.is_some_and(is_part) {
                rows.push(without_payload(task));
            }
        }
        rows
    }

    pub fn outline(&self, root: NodeId) -> Vec<NodeRow> {
        let is_part = |row: &NodeRow| row.node == root || row.parent == Some(root);
        self.tasks
            .range(root..)
            .map(|(_, task)| task)
            .filter(|task| is_part(&task.row))
            .map(without_payload)
            .collect()
    }

    pub fn item_states(&self, step: NodeId) -> Vec<InState> {
        let mut states = BTreeMap::<&str, InState>::new();
        for (&(_, first), item) in self.items.range((step, 0)..=(step, u32::MAX)) {
            let state = item.life.state;
            states.entry(state.as_str()).or_insert(InState { state, items: 0, first }).items += 1;
        }
        states.into_values().collect()
    }
}

fn without_payload(task: &Task) -> NodeRow {
    NodeRow { payload: None, ..task.row.clone() }
}
