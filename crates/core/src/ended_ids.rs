//! Ids of what ended a moment ago. A submission that was repeated on its way may arrive after the task it made has
//! come and gone, and before anybody could have looked it up in the store.

use crate::core::Core;
use crate::ids::{Name, NodeId, RunId};
use crate::protocol::Idempotency;
use crate::time::{Moment, Span};
use std::collections::VecDeque;

/// For how long, and how many. After that a look-up in the store finds it.
const KEPT: Span = Span::seconds(60);
const MOST: usize = 100_000;

#[derive(Debug)]
struct EndedId {
    at: Moment,
    id: RunId,
    key: Option<Name>,
}

#[derive(Debug, Default)]
pub(crate) struct EndedIds(VecDeque<EndedId>);

impl Core {
    /// A root has ended. It is still known by its id and key for a while.
    pub(crate) fn forget_id(&mut self, id: RunId, idempotency: Option<&Idempotency>) {
        let key = idempotency.map(|idempotency| idempotency.key.clone());
        self.ended_ids.0.push_back(EndedId { at: self.now, id, key });
        self.forget_old_ids();
    }

    fn forget_old_ids(&mut self) {
        while self.ended_ids.0.front().is_some_and(|ended| ended.at + KEPT <= self.now)
            || self.ended_ids.0.len() > MOST
        {
            let Some(ended) = self.ended_ids.0.pop_front() else { return };
            self.by_id.remove(&ended.id);
            ended.key.into_iter().for_each(|key| {
                self.by_key.remove(&key);
            });
        }
    }

    /// The open node that was submitted under an id.
    pub fn node_of(&self, id: RunId) -> Option<NodeId> {
        self.by_id.get(&id).copied().filter(|node| self.nodes.get(node).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_ids_are_known_for_a_while_and_never_too_many() {
        let mut core = Core::new(1);
        core.by_id.insert(RunId(1), NodeId(1));
        core.forget_id(RunId(1), None);
        assert_eq!((core.by_id.len(), core.node_of(RunId(1))), (1, None));
        core.now = Moment(0) + KEPT;
        core.by_id.insert(RunId(2), NodeId(2));
        core.forget_id(RunId(2), None);
        assert!(!core.by_id.contains_key(&RunId(1)) && core.by_id.contains_key(&RunId(2)));
        for n in 0..MOST as u128 + 5 {
            core.by_id.insert(RunId(100 + n), NodeId(7));
            core.forget_id(RunId(100 + n), None);
        }
        assert_eq!(core.by_id.len(), MOST);
    }
}
