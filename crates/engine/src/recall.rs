//! What the store has of something that is to be retried.

use tidegate_core::ids::{NodeId, RunId, TaskId};
use tidegate_core::protocol::{Body, NodeRow, Past, PastStep, StepKind};
use tidegate_core::state::State;
use tidegate_store::{Reads, Sought, StoreError};

/// What was submitted under an id; nothing if it is not, or no longer, there.
pub fn recall(store: &mut dyn Reads, of: RunId) -> Result<Option<Past>, StoreError> {
    let Some(found) = store.find(&[Sought::Id(of)])?.into_iter().flatten().next() else { return Ok(None) };
    let mut rows = store.outline(found.node)?.into_iter();
    let Some(mut root) = rows.next().filter(|row| row.node == found.node) else { return Ok(None) };
    root.payload = store.payload(TaskId::node(root.node))?;
    let mut steps = Vec::new();
    for row in rows {
        steps.extend(step(store, of, &row)?);
    }
    Ok(Some(Past { root, steps }))
}

/// A step that has ended, if all that it put out is still there. What it reuses may be gone since.
fn step(store: &mut dyn Reads, run: RunId, row: &NodeRow) -> Result<Option<PastStep>, StoreError> {
    let Body::Step(body) = &row.body else { return Ok(None) };
    if !row.life.state.is_end() {
        return Ok(None);
    }
    let step = |ran, run| PastStep { index: body.index, state: row.life.state, ran, run };
    match body.kind {
        StepKind::Reused { of, run } => Ok(is_there(store, of, body.index)?.then(|| step(of, run))),
        _ => Ok(is_whole(store, row)?.then(|| step(row.node, run))),
    }
}

/// Whether a step at this place of its run has ended, and all that it put out is still there.
pub fn is_there(store: &mut dyn Reads, step: NodeId, index: u32) -> Result<bool, StoreError> {
    let Some(run) = step.run(index) else { return Ok(false) };
    let row = store.outline(run)?.into_iter().find(|row| row.node == step && row.life.state.is_end());
    row.map_or(Ok(false), |row| is_whole(store, &row))
}

/// Of a run that is being pruned, items go first: their loop is then worth nothing.
fn is_whole(store: &mut dyn Reads, row: &NodeRow) -> Result<bool, StoreError> {
    match &row.body {
        Body::Step(body) => match body.kind {
            StepKind::Loop { count } if row.life.state == State::Succeeded => {
                let items = store.item_states(row.node)?;
                Ok(items.iter().map(|some| some.items).sum::<u32>() == count)
            }
            _ => Ok(true),
        },
        Body::Job(_) | Body::Run(_) | Body::ItemRun(_) => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::ids::Name;
    use tidegate_core::protocol::{Life, Payload, Rendered, RunBody, StepBody, Write};
    use tidegate_core::time::{Moment, Span};
    use tidegate_store::{Entry, MemoryStore, Store};

    fn added(node: NodeId, parent: Option<NodeId>, body: Body, state: State) -> Write {
        let life = Life { ended: state.is_end().then_some(Moment(5)), ..Life::new(state) };
        let payload = parent.is_none().then(|| Payload::new("{}"));
        let (root, priority, accepted) = (node.0, 0, Moment(1));
        Write::NodeAdded(Box::new(NodeRow { node, parent, root, priority, accepted, body, payload, life }))
    }

    fn run(node: u64, state: State) -> Write {
        let (id, flow, idempotency) = (Some(RunId(node.into())), Name::new("one"), None);
        let body = RunBody { id, flow, version: 1, depth: 0, key: None, tags: Vec::new(), idempotency };
        added(NodeId(node), None, Body::Run(body), state)
    }

    fn step(run: u64, index: u32, kind: StepKind, state: State) -> Write {
        let run = NodeId(run);
        let body = Body::Step(StepBody { index, kind, start_by: None });
        added(run.step(index as usize), Some(run), body, state)
    }

    fn items(step: NodeId, count: usize) -> Write {
        let item = Rendered { order: Payload::null(), key: None };
        Write::ItemsAdded { step, from: 0, items: vec![item; count], at: Moment(2) }
    }

    fn store(writes: Vec<Write>) -> MemoryStore {
        let mut store = MemoryStore::new();
        let term = store.lead(&Name::new("s"), None, Span::hours(1)).unwrap().unwrap().term;
        let (letters, digest) = (Vec::new(), None);
        let entry = Entry { sequence: 1, term, batch: 1, now: Moment(5), next: 99, letters, digest, writes };
        store.commit(&entry).unwrap();
        store
    }

    /// The steps of run 10, each with the one that ran.
    fn recalled(writes: Vec<Write>) -> Vec<(u32, u64, u128)> {
        let past = recall(&mut store(writes), RunId(10)).unwrap().expect("it is there");
        assert_eq!((past.root.node, past.root.payload), (NodeId(10), Some(Payload::new("{}"))));
        past.steps.iter().map(|step| (step.index, step.ran.0, step.run.0)).collect()
    }

    const PLAIN: StepKind = StepKind::Plain { key: None };

    #[test]
    fn what_has_ended_is_recalled() {
        let writes = vec![
            run(10, State::Failed),
            step(10, 0, PLAIN, State::Succeeded),
            step(10, 1, PLAIN, State::Failed),
            step(10, 2, PLAIN, State::Running),
        ];
        assert_eq!(recalled(writes), [(0, 11, 10), (1, 12, 10)]);
        assert_eq!(recall(&mut store(Vec::new()), RunId(10)).unwrap(), None);
    }

    #[test]
    fn a_loop_of_which_items_are_gone_is_not() {
        for (there, expected) in [(3, vec![(0, 11, 10)]), (2, Vec::new()), (0, Vec::new())] {
            let each = step(10, 0, StepKind::Loop { count: 3 }, State::Succeeded);
            assert_eq!(recalled(vec![run(10, State::Failed), each, items(NodeId(11), there)]), expected);
        }
    }

    #[test]
    fn a_step_that_was_reused_is_the_one_that_ran_while_that_is_there() {
        let reused = |index| {
            let kind = StepKind::Reused { of: NodeId(5 + u64::from(index)), run: RunId(4) };
            step(10, index, kind, State::Succeeded)
        };
        let retried = || vec![run(10, State::Failed), reused(0), reused(1)];
        let earlier = |count| {
            let each = step(4, 1, StepKind::Loop { count: 1 }, State::Succeeded);
            vec![run(4, State::Failed), step(4, 0, PLAIN, State::Succeeded), each, items(NodeId(6), count)]
        };
        assert_eq!(recalled([earlier(1), retried()].concat()), [(0, 5, 4), (1, 6, 4)]);
        assert_eq!(recalled([earlier(0), retried()].concat()), [(0, 5, 4)], "its items are gone");
        assert_eq!(recalled(retried()), []);
    }
}
