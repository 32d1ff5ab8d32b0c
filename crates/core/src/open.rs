//! Everything open, by number.
//!
//! Numbers are given out one after the other, and what is open is mostly either among the oldest or among the
//! newest: so nodes lie in pages of neighbours, and the same few pages are touched again and again. One table for
//! all of them would touch memory everywhere, and would have to be copied as a whole whenever it grows, which
//! with a million nodes takes longer than any command may.

use crate::ids::NodeId;
use crate::nodes::Node;
use rustc_hash::FxHashMap;

/// Nodes of a page. One that outlives its neighbours keeps the page: so they are small.
const PAGE: u64 = 64;

#[derive(Debug, Default)]
pub(crate) struct Open {
    pages: FxHashMap<u64, Box<Page>>,
    count: usize,
}

#[derive(Debug)]
struct Page {
    nodes: [Option<Node>; PAGE as usize],
    count: u32,
}

impl Default for Page {
    fn default() -> Self {
        Page { nodes: [const { None }; PAGE as usize], count: 0 }
    }
}

fn place(id: NodeId) -> (u64, usize) {
    (id.0 / PAGE, (id.0 % PAGE) as usize)
}

impl Open {
    pub fn get(&self, id: &NodeId) -> Option<&Node> {
        let (page, slot) = place(*id);
        self.pages.get(&page)?.nodes[slot].as_ref()
    }

    pub fn get_mut(&mut self, id: &NodeId) -> Option<&mut Node> {
        let (page, slot) = place(*id);
        self.pages.get_mut(&page)?.nodes[slot].as_mut()
    }

    pub fn insert(&mut self, id: NodeId, node: Node) {
        let (page, slot) = place(id);
        let page = self.pages.entry(page).or_default();
        if page.nodes[slot].replace(node).is_none() {
            page.count += 1;
            self.count += 1;
        }
    }

    pub fn remove(&mut self, id: &NodeId) -> Option<Node> {
        let (number, slot) = place(*id);
        let page = self.pages.get_mut(&number)?;
        let node = page.nodes[slot].take()?;
        page.count -= 1;
        self.count -= 1;
        if page.count == 0 {
            self.pages.remove(&number);
        }
        Some(node)
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.pages.iter().flat_map(|(&number, page)| {
            let slots = page.nodes.iter().zip(0..);
            slots.filter_map(move |(node, slot)| Some((NodeId(number * PAGE + slot), node.as_ref()?)))
        })
    }

    /// The numbers of all of them, in order.
    pub fn ids(&self) -> Vec<NodeId> {
        let mut ids: Vec<NodeId> = self.iter().map(|(id, _)| id).collect();
        ids.sort_unstable();
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::{Kind, Step};
    use crate::time::Moment;

    fn step(index: u32) -> Node {
        let kind = Kind::Wait { until: Moment(0) };
        let since = Moment(0);
        let run = NodeId(0);
        Node::Step(Box::new(Step { run, index, start_by: None, class: None, entered: true, kind, since }))
    }

    fn index(node: Option<&Node>) -> Option<u32> {
        node.and_then(Node::step).map(|step| step.index)
    }

    #[test]
    fn what_is_put_in_is_found_until_it_is_taken_out() {
        let mut open = Open::default();
        let ids = [NodeId(0), NodeId(63), NodeId(64), NodeId(u64::MAX), NodeId(7_000)];
        for (n, &id) in ids.iter().enumerate() {
            open.insert(id, step(n as u32));
        }
        open.insert(NodeId(63), step(9));
        assert_eq!(open.len(), 5, "one of them was replaced");
        assert_eq!(index(open.get(&NodeId(63))), Some(9));
        assert_eq!(open.ids(), [NodeId(0), NodeId(63), NodeId(64), NodeId(7_000), NodeId(u64::MAX)]);
        assert!(open.get(&NodeId(65)).is_none() && open.get_mut(&NodeId(5)).is_none());
        assert!(open.remove(&NodeId(65)).is_none() && open.remove(&NodeId(99_999)).is_none());
        assert_eq!(index(open.remove(&NodeId(7_000)).as_ref()), Some(4));
        assert!(open.remove(&NodeId(7_000)).is_none());
        assert_eq!((open.len(), open.pages.len()), (4, 3), "an empty page is forgotten");
    }
}
