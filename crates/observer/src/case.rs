//! What was promised about the jobs of a record: the judge's only knowledge of what they are.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Case {
    /// Units that may be held at once, by the number of the limit.
    pub limits: BTreeMap<u32, u32>,
    /// A limit that was never reached was not tested, and that is a violation.
    pub must_reach: bool,
    /// Lines whose jobs start in the order of acceptance, and how many later ones may be granted before a job: as many as
    /// are granted together with one whose process dies before it begins. 0 where one runs at a time.
    pub lines: BTreeMap<u16, u32>,
    /// Nanoseconds for which an execution may be seen after the end of its lease, or after its process went on, if that
    /// was later. 0 if nobody looks at that.
    pub overstay: u64,
    /// Starts that a job may need, whatever is killed.
    pub starts: u32,
    /// The record says how the store's history ended, so that what is missing from it is lost.
    pub has_history: bool,
}
