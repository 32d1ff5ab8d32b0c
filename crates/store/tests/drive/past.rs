//! What has been, as far as a retry has to know it.

use std::collections::BTreeMap;
use tidegate_core::ids::{NodeId, RunId};
use tidegate_core::protocol::{Body, NodeRow, Past, PastStep, StepKind, Write};

/// Every row as it was added, with its end.
#[derive(Default)]
pub struct Rows(BTreeMap<NodeId, NodeRow>);

impl Rows {
    pub fn note(&mut self, write: &Write) {
        match write {
            Write::NodeAdded(row) => drop(self.0.insert(row.node, (**row).clone())),
            Write::Ended { task, state, at, .. } if task.index().is_none() => {
                if let Some(row) = self.0.get_mut(&task.node) {
                    (row.life.state, row.life.ended) = (*state, Some(*at));
                }
            }
            _ => {}
        }
    }

    /// What was submitted, in order.
    pub fn ids(&self) -> Vec<RunId> {
        self.0.values().filter_map(|row| row.body.id()).collect()
    }

    pub fn past(&self, of: RunId) -> Option<Past> {
        let root = self.0.values().find(|row| row.body.id() == Some(of))?;
        let below = self.0.values().filter(|row| row.parent == Some(root.node));
        let ended = below.filter(|row| row.life.state.is_end());
        let step = |row: &NodeRow| {
            let Body::Step(body) = &row.body else { return None };
            let (ran, run) = match body.kind {
                StepKind::Reused { of, run } => (of, run),
                _ => (row.node, of),
            };
            Some(PastStep { index: body.index, state: row.life.state, ran, run })
        };
        Some(Past { root: root.clone(), steps: ended.filter_map(step).collect() })
    }
}
