//! What there is to show of a run.

use crate::contract::{Reads, StoreError};
use tidegate_core::ids::NodeId;
use tidegate_core::protocol::{Body, NodeRow, StepKind};

/// A root with its steps and those of flows inside them, but without what is inside items: there may be as much of that
/// as there are items.
pub fn rows_of(reader: &mut dyn Reads, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
    let mut rows = reader.outline(root)?;
    let mut seen = 0;
    while let Some(row) = rows.get(seen) {
        seen += 1;
        let node = row.node;
        let has_inside = match &row.body {
            Body::Step(body) => matches!(body.kind, StepKind::SubFlow),
            Body::Run(_) => node != root,
            Body::Job(_) | Body::ItemRun(_) => false,
        };
        if has_inside {
            let below = reader.outline(node)?.into_iter().filter(|below| below.node != node);
            rows.extend(below);
        }
    }
    Ok(rows)
}
