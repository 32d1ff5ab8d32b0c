//! Names of things. Each is its own type, so that a step can never be passed where a worker is meant.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::Arc;

/// A short piece of text that users chose: a flow, a step, a pool, a tag, a worker.
///
/// Cheap to clone, compared by content.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Name(Arc<str>);

/// Bytes of a name at most, as JSON writes it.
pub const LONGEST_NAME: usize = 256;

impl Name {
    pub fn new(text: impl AsRef<str>) -> Self {
        Name(Arc::from(text.as_ref()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Name::new(text)
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Name(Arc::from(text))
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The public id of what a user submitted, chosen by whoever submits (a UUID of version 7).
///
/// Written `run_` and 26 characters of Crockford's base 32, so that ids sort by their time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub u128);

const BASE32: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const RUN_PREFIX: &str = "run_";
const RUN_DIGITS: usize = 26;

impl RunId {
    /// Reads what `Display` writes; upper case is accepted too.
    pub fn parse(text: &str) -> Option<RunId> {
        let digits = text.strip_prefix(RUN_PREFIX)?;
        if digits.len() != RUN_DIGITS {
            return None;
        }
        digits
            .bytes()
            .try_fold(0u128, |value, digit| {
                let digit = BASE32.iter().position(|&known| known == digit.to_ascii_lowercase())?;
                value.checked_mul(32)?.checked_add(digit as u128)
            })
            .map(RunId)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits: String = (0..RUN_DIGITS)
            .rev()
            .map(|place| BASE32[(self.0 >> (5 * place)) as usize & 31] as char)
            .collect();
        write!(f, "{RUN_PREFIX}{digits}")
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A job, a run or a step. A run takes a block of numbers: its own, then one for each of its steps, so that
/// the number of a step follows from its run and its place in the flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug)]
#[serde(transparent)]
pub struct NodeId(pub u64);

impl NodeId {
    /// The step at `index` of this run.
    pub fn step(self, index: usize) -> NodeId {
        NodeId(self.0 + 1 + index as u64)
    }

    /// The run of which this is the step at `index`.
    pub fn run(self, index: u32) -> Option<NodeId> {
        self.0.checked_sub(1 + u64::from(index)).map(NodeId)
    }
}

/// Everything that can be admitted: a node, or one item (or slot) of a loop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId {
    pub node: NodeId,
    /// One more than the item's index, so that a node sorts before its items and `None` costs no room.
    item: Option<NonZeroU32>,
}

impl TaskId {
    pub fn node(node: NodeId) -> Self {
        TaskId { node, item: None }
    }

    /// The very last index stands for the one before it: it only ever bounds a range.
    pub fn item(node: NodeId, index: u32) -> Self {
        TaskId { node, item: NonZeroU32::new(index.saturating_add(1)) }
    }

    pub fn index(self) -> Option<u32> {
        self.item.map(|item| item.get() - 1)
    }
}

/// `12`, or `12#3` for an item.
impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index() {
            None => write!(f, "{}", self.node.0),
            Some(index) => write!(f, "{}#{index}", self.node.0),
        }
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not the number of a task or a grant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this is no number of a task or a grant")]
pub struct BadNumber;

impl FromStr for TaskId {
    type Err = BadNumber;

    fn from_str(text: &str) -> Result<TaskId, BadNumber> {
        let node = |text: &str| text.parse().map(NodeId).map_err(|_| BadNumber);
        match text.split_once('#') {
            Some((of, index)) => Ok(TaskId::item(node(of)?, index.parse().map_err(|_| BadNumber)?)),
            None => Ok(TaskId::node(node(text)?)),
        }
    }
}

/// The number of one grant: never given twice, by any leader. Whoever writes with another one is too late.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Epoch {
    /// How often a core was loaded from this store.
    pub incarnation: u32,
    pub grant: u64,
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.incarnation, self.grant)
    }
}

impl FromStr for Epoch {
    type Err = BadNumber;

    fn from_str(text: &str) -> Result<Epoch, BadNumber> {
        let (incarnation, grant) = text.split_once('.').ok_or(BadNumber)?;
        let incarnation = incarnation.parse().map_err(|_| BadNumber)?;
        Ok(Epoch { incarnation, grant: grant.parse().map_err(|_| BadNumber)? })
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_read_back_and_sort_like_their_numbers() {
        for value in [0, 1, 31, 32, u128::MAX, 0x0199_0000_0000_7000_8000_0000_0000_0001] {
            assert_eq!(RunId::parse(&RunId(value).to_string()), Some(RunId(value)));
        }
        assert!(RunId(31).to_string() < RunId(32).to_string());
        assert_eq!(RunId::parse("run_0"), None);
        assert_eq!(RunId::parse("00000000000000000000000000"), None);
        assert_eq!(RunId::parse("run_u0000000000000000000000000"), None, "u is not a digit");
        assert_eq!(RunId::parse("run_zzzzzzzzzzzzzzzzzzzzzzzzzz"), None, "more than 128 bits");
    }

    #[test]
    fn a_node_sorts_before_its_items_and_items_by_index() {
        let (node, first, second) =
            (TaskId::node(NodeId(7)), TaskId::item(NodeId(7), 0), TaskId::item(NodeId(7), 1));
        assert!(node < first && first < second && second < TaskId::node(NodeId(8)));
        assert_eq!((node.index(), first.index()), (None, Some(0)));
        assert_eq!(format!("{node:?} {second:?}"), "7 7#1");
        for task in [node, first, second] {
            assert_eq!(task.to_string().parse(), Ok(task));
        }
        for wrong in ["", "#1", "7#", "x", "7#x", "-7"] {
            assert_eq!(wrong.parse::<TaskId>(), Err(BadNumber), "{wrong}");
        }
    }

    #[test]
    fn grants_read_back() {
        let epoch = Epoch { incarnation: 3, grant: 40 };
        assert_eq!(epoch.to_string().parse(), Ok(epoch));
        for wrong in ["", "3", "3.", ".4", "3.x"] {
            assert_eq!(wrong.parse::<Epoch>(), Err(BadNumber), "{wrong}");
        }
    }

    #[test]
    fn steps_follow_their_run() {
        assert_eq!(NodeId(10).step(0), NodeId(11));
        assert_eq!((NodeId(10).step(3).run(3), NodeId(3).run(3)), (Some(NodeId(10)), None));
    }
}
