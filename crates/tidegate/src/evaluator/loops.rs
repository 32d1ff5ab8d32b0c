//! Loops whose items are being rendered: what was read for one slice is there for the next.
//!
//! Without this a loop over many items would read its whole list, and everything its templates refer to, once a slice.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value as Json;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tidegate_core::Called;
use tidegate_core::ids::NodeId;
use tidegate_core::protocol::Payload;
use tidegate_flow::evaluate::Items;

/// Loops that are remembered. One that is forgotten is read anew.
const REMEMBERED: usize = 4;

/// A loop between two slices.
pub(super) struct Progress {
    pub step: NodeId,
    /// What it calls, as it was defined when `items` was made.
    pub callee: Option<Called>,
    pub items: Items,
    pub list: List,
}

#[derive(Default)]
pub(super) struct Loops(Mutex<VecDeque<Progress>>);

impl Loops {
    /// The loop as the slice before this one left it.
    pub fn take(&self, step: NodeId, from: u32, callee: Option<&Called>) -> Option<Progress> {
        let mut loops = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = loops.iter().position(|progress| progress.step == step)?;
        let progress = loops.remove(at)?;
        (progress.list.next <= from && progress.callee.as_ref() == callee).then_some(progress)
    }

    pub fn put(&self, progress: Progress) {
        if progress.list.is_read() {
            return;
        }
        let mut loops = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loops.push_front(progress);
        loops.truncate(REMEMBERED);
    }
}

/// A JSON list that is read from its beginning to its end, item by item.
#[derive(Clone)]
pub(super) struct List {
    text: Payload,
    /// Where the next item, or what stands before it, begins.
    offset: usize,
    /// The index of the next item.
    next: u32,
}

impl List {
    pub fn new(text: Payload) -> List {
        List { text, offset: 0, next: 0 }
    }

    /// Items `from..to`, which must not have been read before. Nothing if there are no such items.
    pub fn read(&mut self, from: u32, to: u32) -> Option<Vec<Json>> {
        while self.next < from {
            self.item::<IgnoredAny>()?;
        }
        (self.next..to).map(|_| self.item()).collect()
    }

    fn item<T: DeserializeOwned>(&mut self) -> Option<T> {
        let text = self.text.bytes();
        let before = if self.next == 0 { b"[" } else { b"," };
        let rest = text[self.offset..].trim_ascii_start().strip_prefix(before)?;
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter();
        let item = values.next()?.ok()?;
        self.offset = text.len() - rest.len() + values.byte_offset();
        self.next += 1;
        Some(item)
    }

    /// Whether no item is left.
    fn is_read(&self) -> bool {
        self.text.bytes()[self.offset..].trim_ascii_start().starts_with(b"]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_is_read_once_slice_by_slice() {
        let items = json!([1, -2.5, "a,]b", [3, [4]], { "c": [5, 6] }, null, true, "last"]);
        let mut list = List::new(Payload::new(items.to_string()));
        let items = items.as_array().expect("a list");
        assert_eq!(list.read(0, 3).as_deref(), Some(&items[..3]));
        assert!(!list.is_read());
        assert_eq!(list.read(4, 8).as_deref(), Some(&items[4..]), "what is skipped is not wanted");
        assert!(list.is_read());
        assert_eq!(list.read(8, 9), None);
    }

    #[test]
    fn what_is_no_list_has_no_items() {
        for text in ["", "null", "{}", "[", "[1,", "[1 2]", "[]"] {
            let mut list = List::new(Payload::new(text));
            assert_eq!(list.read(0, 2), None, "{text}");
        }
    }

    #[test]
    fn a_loop_is_remembered_for_the_slice_that_follows() {
        let loops = Loops::default();
        let progress = |step, next| {
            let mut list = List::new(Payload::new("[1,2,3]"));
            list.read(0, next);
            let items = Items::new(&tidegate_flow::evaluate::Scope::default());
            Progress { step: NodeId(step), callee: None, items, list }
        };
        loops.put(progress(1, 2));
        assert!(loops.take(NodeId(2), 2, None).is_none(), "another loop");
        assert!(loops.take(NodeId(1), 0, None).is_none(), "it has gone on since");
        loops.put(progress(1, 2));
        let taken = loops.take(NodeId(1), 2, None).map(|mut progress| progress.list.read(2, 3));
        assert_eq!(taken, Some(Some(vec![json!(3)])));
        assert!(loops.take(NodeId(1), 2, None).is_none(), "it was taken");
        loops.put(progress(1, 3));
        assert!(loops.take(NodeId(1), 3, None).is_none(), "nothing was left of it");
        (1..=9).for_each(|step| loops.put(progress(step, 1)));
        assert!(loops.take(NodeId(5), 1, None).is_none() && loops.take(NodeId(6), 1, None).is_some());
    }
}
