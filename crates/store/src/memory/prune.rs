//! History that nobody wants any more.

use super::Tables;
use crate::contract::{KEYS_STAY, Pruned};
use crate::identity;
use crate::retention::Before;
use std::collections::BTreeSet;
use tidegate_core::ids::NodeId;
use tidegate_core::state::State;
use tidegate_core::time::Moment;

impl Tables {
    /// Deletes `most` rows of roots that ended before `before`: those that succeeded first, and of each the oldest end.
    pub fn prune(&mut self, before: Before, most: u32, clock: Moment) -> Pruned {
        let mut pruned = Pruned::default();
        let outcomes = before.outcomes().map(|(succeeded, before)| self.prunable(succeeded, before, clock));
        for root in outcomes.into_iter().flatten() {
            let left = u64::from(most) - pruned.rows;
            if left == 0 {
                break;
            }
            pruned.rows += self.remove(root, left as usize) as u64;
            pruned.roots += u64::from(!self.tasks.contains_key(&root));
        }
        pruned
    }

    fn prunable(&self, succeeded: bool, before: Moment, clock: Moment) -> Vec<NodeId> {
        let reused = self.reused();
        let rows = self.tasks.values().map(|task| &task.row);
        let roots = rows.filter(|row| row.parent.is_none() && !reused.contains(&row.node));
        let mut ends: Vec<(Moment, NodeId)> = roots
            .filter(|row| (row.life.state == State::Succeeded) == succeeded)
            .filter_map(|row| {
                let stays = identity::idempotency(&row.body).is_some();
                let before = if stays { before.min(clock - KEYS_STAY) } else { before };
                row.life.ended.filter(|&ended| ended < before).map(|ended| (ended, row.node))
            })
            .collect();
        ends.sort();
        ends.into_iter().map(|(_, node)| node).collect()
    }

    /// Runs whose steps are reused by open ones.
    fn reused(&self) -> BTreeSet<NodeId> {
        let is_open = |run: NodeId| self.tasks.get(&run).is_some_and(|task| task.row.life.ended.is_none());
        let rows = self.tasks.values().map(|task| &task.row);
        rows.filter(|row| row.parent.is_some_and(is_open)).filter_map(|row| row.body.reuses()).collect()
    }

    /// Removes items, then what is below a root, then itself, and stops after `most` rows; gives their number.
    fn remove(&mut self, root: NodeId, most: usize) -> usize {
        let nodes = self.tree(root);
        let items_of = |&node: &NodeId| self.items.range((node, 0)..=(node, u32::MAX)).map(|(&item, _)| item);
        let items: Vec<(NodeId, u32)> = nodes.iter().flat_map(items_of).take(most).collect();
        let left = most - items.len();
        let gone: Vec<NodeId> = nodes.into_iter().rev().take(left).collect();
        items.iter().for_each(|item| drop(self.items.remove(item)));
        gone.iter().for_each(|node| drop(self.tasks.remove(node)));
        items.len() + gone.len()
    }

    /// A root and everything below it. What is below a node comes after it.
    fn tree(&self, root: NodeId) -> Vec<NodeId> {
        let mut nodes = vec![root];
        let mut looked_at = 0;
        while let Some(&node) = nodes.get(looked_at) {
            let below = self.tasks.values().map(|task| &task.row).filter(|row| row.parent == Some(node));
            nodes.extend(below.map(|row| row.node));
            looked_at += 1;
        }
        nodes
    }
}
