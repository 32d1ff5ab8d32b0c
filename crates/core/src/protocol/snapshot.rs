//! Everything open, as a store gives it back.

use super::{DeclaredRow, ItemRow, LimitRow, NodeRow, Pace, WorkerRow};
use crate::admission::LimitKey;
use crate::ids::NodeId;
use crate::nodes::LoopTally;
use crate::time::Moment;
use std::collections::BTreeMap;

/// The durable state that a core needs to go on. Ended nodes are left out, except steps of runs that are open.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Snapshot {
    /// By node. A payload comes along only if it is small ([`RESIDENT`](crate::RESIDENT)).
    pub nodes: Vec<NodeRow>,
    /// Open items of open loops, by step and index.
    pub items: Vec<ItemRow>,
    /// Of every open loop that has item rows: how many there are, and how those that ended did.
    pub loops: BTreeMap<NodeId, (u32, LoopTally)>,
    pub limits: Vec<LimitRow>,
    pub paces: Vec<(LimitKey, Pace)>,
    /// In the order in which they were declared.
    pub declared: Vec<DeclaredRow>,
    /// Workers that have not gone.
    pub workers: Vec<WorkerRow>,
    /// As the last entry said.
    pub next: u64,
    pub now: Moment,
}
