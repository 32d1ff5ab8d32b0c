//! Folding and then applying means what applying one by one means, wherever the entries are cut.

use super::*;
use crate::memory::{Item, Task};
use tidegate_core::ids::{Epoch, RunId};
use tidegate_core::protocol::{
    Body, GrantRow, JobBody, Lease, Life, NodeRow, Payload, Rendered, StepBody, StepKind, Stop, Tally,
    TokenRow,
};
use tidegate_core::time::Span;

/// What a store does with a fold, in the plainest way.
fn apply(tables: &mut Tables, fold: Fold) {
    let Fold { new, changes, ranges, limits, workers, tokens } = fold;
    tables.head = new.head;
    for (task, change) in changes {
        match task.index() {
            None => {
                let Some(Task { row, output }) = tables.tasks.get_mut(&task.node) else { continue };
                (row.priority, row.root) = change.rank.unwrap_or((row.priority, row.root));
                let is_step = matches!(row.body, Body::Step(_));
                change_life(&mut row.life, output, change, is_step);
            }
            Some(index) => {
                let Some(Item { life, output, .. }) = tables.items.get_mut(&(task.node, index)) else {
                    continue;
                };
                change_life(life, output, change, false);
            }
        }
    }
    for Range { step, from, to, state, at } in ranges {
        for (_, item) in tables.items.range_mut((step, from)..(step, to)) {
            if item.life.ended.is_none() {
                let mut change = Change::default();
                change.end(state, None, End { at, output: None });
                change_life(&mut item.life, &mut item.output, change, false);
            }
        }
    }
    tables.tasks.extend(new.tasks);
    tables.items.extend(new.items);
    for key in limits {
        match new.limits.get(&key) {
            Some(row) => tables.limits.insert(key, row.clone()),
            None => tables.limits.remove(&key),
        };
    }
    for name in workers {
        match new.workers.get(&name) {
            Some(row) => tables.workers.insert(name, row.clone()),
            None => tables.workers.remove(&name),
        };
    }
    for id in tokens {
        match new.tokens.get(&id) {
            Some(row) => tables.tokens.insert(id, row.clone()),
            None => tables.tokens.remove(&id),
        };
    }
    tables.paces.extend(new.paces);
}

fn change_life(life: &mut Life, output: &mut Option<Payload>, change: Change, is_step: bool) {
    life.state = change.state.unwrap_or(life.state);
    life.due = change.due.unwrap_or(life.due);
    life.tally.started = change.attempts.unwrap_or(life.tally.started);
    (life.tally.failures, life.tally.losses) =
        change.faults.unwrap_or((life.tally.failures, life.tally.losses));
    life.stop = change.stop.unwrap_or(life.stop);
    life.paused = change.paused.unwrap_or(life.paused);
    life.started = life.started.or(change.started);
    if let Some(entered) = change.entered {
        life.entered = entered == Entered::Yes || is_step;
    }
    if let Some(error) = change.error {
        life.error = error;
    }
    let epochs: BTreeSet<Epoch> = change.renewed.iter().map(|(epoch, _)| *epoch).collect();
    assert_eq!(epochs.len(), change.renewed.len(), "a statement changes a row once");
    for (epoch, until) in change.renewed {
        if let Some(grant) = life.grant.as_mut().filter(|grant| grant.epoch == epoch) {
            grant.until = until;
        }
    }
    if let Some(grant) = change.grant {
        life.grant = grant;
    }
    if let Some(end) = change.end {
        life.ended = Some(end.at);
        *output = end.output;
    }
}

/// A small world of two roots, a step and three items, and one write about it.
fn write(state: &Tables, what: u8, which: u8, how: u8) -> Option<Write> {
    let at = Moment(i64::from(how));
    let node = NodeId(u64::from(which % 3));
    let task = if which.is_multiple_of(2) {
        TaskId::node(node)
    } else {
        TaskId::item(NodeId(2), u32::from(which % 5))
    };
    let life = match task.index() {
        None => state.tasks.get(&task.node).map(|task| &task.row.life),
        Some(index) => state.items.get(&(task.node, index)).map(|item| &item.life),
    };
    let is_open = life.is_none_or(|life| life.ended.is_none());
    let error = how.is_multiple_of(3).then(|| format!("error {how}"));
    let epoch = Epoch { incarnation: 1, grant: u64::from(how % 4) };
    Some(match what % 15 {
        0 if !state.tasks.contains_key(&node) => Write::NodeAdded(Box::new(row(node))),
        1 if !state.items.contains_key(&(NodeId(2), 0)) => {
            let item = |index: u32| Rendered { order: Payload::new(index.to_string()), key: None };
            Write::ItemsAdded { step: NodeId(2), from: 0, items: (0..5).map(item).collect(), at }
        }
        2 => Write::Paused { node, paused: how.is_multiple_of(2) },
        3 => Write::Ranked { node, priority: 3, root: u64::from(how) },
        4 | 5 if is_open => {
            let grant = GrantRow { epoch, worker: "w".into(), at, until: at, length: Span(9) };
            Write::Granted { task, grant, number: u32::from(how) }
        }
        6 if is_open => {
            let tally = Tally { started: u32::from(how), failures: 1, losses: 2 };
            Write::Moved { task, state: State::Scheduled, due: Some(at), tally, error, at }
        }
        7 if is_open => Write::Ended { task, state: State::Failed, output: Some(Payload::null()), error, at },
        8 if is_open => Write::Stopping { task, why: Stop::Cancelled, error, at },
        9 => Write::Renewed { leases: vec![Lease { task, epoch }], until: at },
        10 => {
            let (from, to) = (u32::from(which % 5), u32::from(how % 5));
            let items = state.items.range((NodeId(2), from)..(NodeId(2), to.max(from)));
            let all_open = items.into_iter().all(|(_, item)| item.life.ended.is_none());
            return all_open.then_some(Write::ItemsEnded {
                step: NodeId(2),
                from,
                to,
                state: State::Cancelled,
                at,
            });
        }
        11 if is_open && task.index().is_none() => {
            Write::Entered { node, state: [State::Waiting, State::Running][usize::from(how % 2)], at }
        }
        12 if is_open && let Some(index) = task.index() => Write::ItemEntered { step: task.node, index, at },
        13 => Write::TokenSet(Box::new(token(which % 3, at))),
        14 => Write::TokenGone { id: token(which % 3, at).id },
        _ => return None,
    })
    .filter(|write| {
        !matches!(write, Write::Paused { .. } | Write::Ranked { .. }) || node_is_open(state, node)
    })
}

fn node_is_open(state: &Tables, node: NodeId) -> bool {
    state.tasks.get(&node).is_none_or(|task| task.row.life.ended.is_none())
}

fn token(which: u8, at: Moment) -> TokenRow {
    let (id, scopes) = (format!("t{which}").into(), vec!["run".into()]);
    TokenRow { id, name: "ci".into(), hash: "00".into(), scopes, by: "ann".into(), at, until: None }
}

fn row(node: NodeId) -> NodeRow {
    let job = JobBody {
        id: RunId(node.0.into()),
        action: "a".into(),
        key: None,
        tags: Vec::new(),
        start_by: None,
        idempotency: None,
    };
    let step = StepBody { index: 0, kind: StepKind::SubFlow, start_by: None };
    let body = if node == NodeId(2) { Body::Step(step) } else { Body::Job(job) };
    let (accepted, life) = (Moment(1), Life::new(State::Waiting));
    NodeRow { node, parent: None, root: 1, priority: 0, accepted, body, payload: None, life }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 2_000, ..Default::default() })]

    #[test]
    fn folds_mean_what_their_entries_mean(
        writes in proptest::collection::vec((proptest::num::u8::ANY, proptest::num::u8::ANY, proptest::num::u8::ANY), 1..60),
        cuts in proptest::collection::vec(proptest::bool::ANY, 60),
    ) {
        let (mut expected, mut tables, mut fold) = (Tables::default(), Tables::default(), Fold::default());
        let mut sequence = 0;
        for (&(what, which, how), &cut) in writes.iter().zip(&cuts) {
            let Some(write) = write(&expected, what, which, how) else { continue };
            sequence += 1;
            let (now, letters) = (Moment(sequence as i64), Vec::new());
            let entry = Entry {
                sequence, term: 1, batch: 1, now, next: 7, letters, digest: Some(sequence), writes: vec![write],
            };
            expected.apply(&entry);
            fold.add(&entry);
            if cut {
                apply(&mut tables, std::mem::take(&mut fold));
            }
        }
        if sequence > fold.head().sequence {
            fold.new.head = expected.head.clone();
        }
        apply(&mut tables, fold);
        proptest::prop_assert_eq!(tables, expected);
    }
}
