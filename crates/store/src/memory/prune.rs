//! History that nobody wants any more.

use super::Tables;
use crate::contract::KEYS_STAY;
use crate::identity;
use tidegate_core::ids::NodeId;
use tidegate_core::time::Moment;

impl Tables {
    /// Deletes roots that ended before `before`, oldest end first, until `most` rows are gone; gives how many.
    pub fn prune(&mut self, before: Moment, most: u32, clock: Moment) -> u64 {
        let mut left = u64::from(most);
        let mut gone = 0;
        for root in self.prunable(before, clock) {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(self.remove(root));
            gone += 1;
        }
        gone
    }

    fn prunable(&self, before: Moment, clock: Moment) -> Vec<NodeId> {
        let roots = self.tasks.values().map(|task| &task.row).filter(|row| row.parent.is_none());
        let mut ends: Vec<(Moment, NodeId)> = roots
            .filter_map(|row| {
                let stays = identity::idempotency(&row.body).is_some();
                let before = if stays { before.min(clock - KEYS_STAY) } else { before };
                row.life.ended.filter(|&ended| ended < before).map(|ended| (ended, row.node))
            })
            .collect();
        ends.sort();
        ends.into_iter().map(|(_, node)| node).collect()
    }

    /// Removes a node and what is below it; gives the number of rows.
    fn remove(&mut self, node: NodeId) -> u64 {
        let below: Vec<NodeId> = self
            .tasks
            .values()
            .filter(|task| task.row.parent == Some(node))
            .map(|task| task.row.node)
            .collect();
        let items = self.items.len();
        self.items.retain(|(step, _), _| *step != node);
        let own = u64::from(self.tasks.remove(&node).is_some());
        own + (items - self.items.len()) as u64 + below.into_iter().map(|node| self.remove(node)).sum::<u64>()
    }
}
