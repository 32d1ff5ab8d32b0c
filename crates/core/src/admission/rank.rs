//! The order in which tasks start.

use crate::ids::{NodeId, TaskId};
use std::fmt;

/// A task's place in the order of starts; smaller starts first.
///
/// Higher priority first, then the sequence of the root (given when it was accepted, or came due), then the
/// task's own place within it: steps as the flow lists them, items by index. Ranks are unique because the task
/// is part of them. Opaque on purpose: fair sharing will change what is inside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    /// Negated priority, so that the derived order puts high priorities first.
    lowness: i8,
    root: u64,
    node: NodeId,
    item: u32,
}

impl Rank {
    pub fn new(priority: i8, root: u64, task: TaskId) -> Self {
        let item = task.index().map_or(0, |index| index + 1);
        Rank { lowness: priority.saturating_neg(), root, node: task.node, item }
    }

    pub fn task(self) -> TaskId {
        match self.item {
            0 => TaskId::node(self.node),
            item => TaskId::item(self.node, item - 1),
        }
    }

    /// Before everybody of that priority, after everybody of a higher one.
    pub fn best_of(priority: i8) -> Self {
        Rank::new(priority, 0, TaskId::node(NodeId(0)))
    }

    pub fn priority(self) -> i8 {
        self.lowness.saturating_neg()
    }

    pub fn root(self) -> u64 {
        self.root
    }

    /// The rank of the item `n` places behind this one in the same loop.
    pub fn behind(self, n: u32) -> Self {
        Rank { item: self.item + n, ..self }
    }

    /// How many places `later`, an item of the same loop, stands behind this one.
    pub fn places_to(self, later: Rank) -> Option<u32> {
        (self.behind(0) <= later && Rank { item: later.item, ..self } == later)
            .then(|| later.item - self.item)
    }

    /// Whether `rank` is one of `count` items in a row that begin with this one.
    pub fn reaches(self, rank: Rank, count: u32) -> bool {
        self.places_to(rank).is_some_and(|offset| offset < count)
    }
}

impl fmt::Debug for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{:?}", self.priority(), self.root, self.task())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priority_then_root_then_own_place() {
        let rank = |priority, root, task| Rank::new(priority, root, task);
        let (node, item) = (|n| TaskId::node(NodeId(n)), |n, i| TaskId::item(NodeId(n), i));
        let inorder = [
            rank(5, 9, node(9)),
            rank(0, 1, node(1)),
            rank(0, 1, item(2, 0)),
            rank(0, 1, item(2, 1)),
            rank(0, 1, node(3)),
            rank(0, 2, node(2)),
            rank(-100, 0, node(0)),
        ];
        assert!(inorder.is_sorted());
        assert_eq!(inorder[0].priority(), 5);
        assert_eq!(inorder[3].task(), item(2, 1));
        assert_eq!(inorder[2].behind(1), inorder[3]);
        assert_eq!(inorder[2].places_to(inorder[3]), Some(1));
        assert_eq!(inorder[3].places_to(inorder[2]), None);
        assert_eq!(inorder[2].places_to(inorder[4]), None, "another node");
        assert_eq!(format!("{:?}", inorder[3]), format!("0/1/{:?}", item(2, 1)));
        assert_eq!(std::mem::size_of::<Rank>(), 24);
    }
}
