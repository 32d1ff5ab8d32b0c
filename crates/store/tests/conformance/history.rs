//! What is not loaded and can be asked for: large payloads, and how things ended.

use super::Backend;
use super::ledger::{Ledger, lead};
use super::samples::{JOB, RUN, STEP, add, ended, granted, items, job, open_loop, run, step};
use tidegate_core::RESIDENT;
use tidegate_core::ids::{NodeId, TaskId};
use tidegate_core::protocol::{Life, NodeRow, Payload, StepKind, Write};
use tidegate_core::state::State;
use tidegate_core::time::Moment;
use tidegate_store::{Ended, InState, Reads, Store, Wanted};

fn with_payload(node: u64, payload: impl AsRef<[u8]>) -> NodeRow {
    NodeRow { node: NodeId(node), payload: Some(Payload::new(payload)), ..job() }
}

pub fn small_payloads_come_along_and_large_ones_are_asked_for<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    // Two bytes a letter: the bound counts bytes.
    let (small, large) = ("ü".repeat(RESIDENT / 2), "ü".repeat(RESIDENT / 2 + 1));
    ledger.write([add(with_payload(1, &small)), add(with_payload(2, &large)), add(run())]);
    let payloads: Vec<_> = ledger.load().nodes.into_iter().map(|row| row.payload).collect();
    assert_eq!(payloads, [Some(Payload::new(&small)), None, None]);
    let mut ask = |node| ledger.store.payload(TaskId::node(node)).unwrap();
    assert_eq!(ask(NodeId(1)), Some(Payload::new(small)));
    assert_eq!(ask(NodeId(2)), Some(Payload::new(large)));
    assert_eq!((ask(RUN), ask(NodeId(99))), (None, None));
}

pub fn payloads_are_bytes<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let odd: [&[u8]; 4] = [b"", b"\0null\0", b"\xff\xfe", "\u{feff}x".as_bytes()];
    ledger.write((1..).zip(odd).map(|(node, payload)| add(with_payload(node, payload))));
    let loaded = ledger.load().nodes;
    for (row, payload) in loaded.iter().zip(odd) {
        assert_eq!(row.payload, Some(Payload::new(payload)));
        assert_eq!(ledger.store.payload(TaskId::node(row.node)).unwrap(), row.payload);
    }
}

pub fn an_ended_task_is_history<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let (task, output) = (TaskId::node(JOB), "x".repeat(70_000));
    ledger.write([add(job()), granted(task, 1)]);
    assert_eq!(ledger.store.ended(task).unwrap(), None);
    ledger.write([ended(task, State::Succeeded, Some(&output))]);
    assert!(ledger.load().nodes.is_empty());
    let end = Ended { state: State::Succeeded, output: Some(Payload::new(output)), error: None, attempts: 1 };
    assert_eq!(ledger.store.ended(task).unwrap(), Some(end));
    assert_eq!(ledger.store.payload(task).unwrap(), job().payload);

    let failed = TaskId::node(NodeId(1));
    ledger.write([add(NodeRow { node: failed.node, ..job() }), ended(failed, State::Failed, None)]);
    let end = ledger.store.ended(failed).unwrap().unwrap();
    assert_eq!((end.output, end.error.as_deref(), end.attempts), (None, Some("it broke"), 0));
}

pub fn steps_of_open_runs_stay<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let inner = NodeRow { node: NodeId(20), parent: Some(STEP), ..run() };
    ledger.write([add(run()), add(step(StepKind::SubFlow)), add(inner)]);
    ledger.write([ended(TaskId::node(NodeId(20)), State::Failed, None)]);
    let ended_step = Write::Ended {
        task: TaskId::node(STEP),
        state: State::Failed,
        output: Some(Payload::null()),
        error: Some("inside".to_owned()),
        at: Moment(510),
    };
    ledger.write([ended_step]);
    let nodes = ledger.load().nodes;
    assert_eq!(nodes.iter().map(|row| row.node).collect::<Vec<_>>(), [RUN, STEP], "no run that ended");
    let life =
        Life { ended: Some(Moment(510)), error: Some("inside".to_owned()), ..Life::new(State::Failed) };
    assert_eq!(nodes[1].life, life);
    ledger.write([ended(TaskId::node(RUN), State::Failed, None)]);
    assert!(ledger.load().nodes.is_empty());
    assert!(ledger.store.ended(TaskId::node(STEP)).unwrap().is_some());
}

pub fn a_step_may_come_with_its_end<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let life = Life { ended: Some(Moment(5)), ..Life::new(State::Skipped) };
    let skipped = NodeRow { life, ..step(StepKind::Nothing) };
    ledger.write([add(run()), add(skipped.clone())]);
    assert_eq!(ledger.load().nodes, [run(), skipped]);
    assert_eq!(ledger.store.ended(TaskId::node(STEP)).unwrap().unwrap().state, State::Skipped);
}

pub fn ended_items_are_read_in_slices<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    ledger.write(open_loop());
    ledger.write([items(0, 6)]);
    for index in [4, 1, 2] {
        let task = TaskId::item(STEP, index);
        ledger.write([granted(task, 1), ended(task, State::Succeeded, Some(&index.to_string()))]);
    }
    let mut slice = |from, to| ledger.store.ended_items(STEP, from, to).unwrap();
    let end = |index: u32| {
        let output = Some(Payload::new(index.to_string()));
        (index, Ended { state: State::Succeeded, output, error: None, attempts: 1 })
    };
    assert_eq!(slice(0, 99), [end(1), end(2), end(4)]);
    assert_eq!(slice(2, 4), [end(2)]);
    assert_eq!(slice(3, 3), []);
    assert_eq!(slice(4, 1), []);
    assert_eq!(ledger.store.ended_items(RUN, 0, 9).unwrap(), []);
}

pub fn everything_is_there_after_a_restart<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    ledger.write(open_loop());
    ledger.write([items(0, 3), add(job()), granted(TaskId::item(STEP, 1), 1)]);
    let before = ledger.store.load().unwrap();
    let Ledger { place, store, term, .. } = ledger;
    drop(store);
    let mut store = place.open();
    assert_eq!(store.load().unwrap(), before);
    store.resign(term).unwrap();
    assert!(lead(&mut store) > term);
}

pub fn what_was_submitted_is_listed_newest_first<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let over = Life { ended: Some(Moment(60)), ..Life::new(State::Failed) };
    let old = NodeRow { node: NodeId(1), life: over, payload: None, ..job() };
    let (job, run) = (NodeRow { payload: None, ..job() }, run());
    ledger.write([add(old.clone()), add(job.clone()), add(run.clone()), add(step(StepKind::Nothing))]);
    let mut list = |wanted: Wanted, most| ledger.store.submitted(&wanted, most).unwrap();
    assert_eq!(list(Wanted::default(), 9), [run.clone(), job.clone(), old.clone()]);
    assert_eq!(list(Wanted::default(), 1), std::slice::from_ref(&run));
    assert_eq!(list(Wanted { before: Some(RUN), ..Wanted::default() }, 9), [job.clone(), old.clone()]);
    assert_eq!(
        list(Wanted { state: Some(State::Failed), ..Wanted::default() }, 9),
        std::slice::from_ref(&old)
    );
    let named = |name: &str| Wanted { name: Some(name.into()), ..Wanted::default() };
    assert_eq!(list(named("mail.send"), 9), [job, old]);
    assert_eq!(list(named("nightly"), 9), [run]);
    assert_eq!(list(named("nobody"), 9), []);
}

pub fn a_run_is_seen_with_everything_below_it<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let inner = NodeRow { node: NodeId(20), parent: Some(STEP), ..run() };
    let below = NodeRow { node: NodeId(21), parent: Some(NodeId(20)), ..step(StepKind::Nothing) };
    let other = NodeRow { node: NodeId(30), ..run() };
    ledger.write([add(run()), add(step(StepKind::SubFlow)), add(inner), add(below), add(other)]);
    ledger.write([ended(TaskId::node(NodeId(21)), State::Failed, None)]);
    ledger.write([ended(TaskId::node(NodeId(20)), State::Failed, None)]);
    let mut states = || -> Vec<(u64, State)> {
        let tree = ledger.store.tree(RUN).unwrap();
        tree.into_iter().map(|row| (row.node.0, row.life.state)).collect()
    };
    let (waits, failed) = (State::Waiting, State::Failed);
    assert_eq!(states(), [(10, waits), (11, waits), (20, failed), (21, failed)]);
    assert_eq!(ledger.store.tree(NodeId(99)).unwrap(), []);
}

pub fn the_outline_of_a_run_has_its_own_steps_only<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let second = NodeRow { node: NodeId(12), ..step(StepKind::Wait { until: Moment(9) }) };
    let inner = NodeRow { node: NodeId(20), parent: Some(STEP), ..run() };
    let below = NodeRow { node: NodeId(21), parent: Some(NodeId(20)), ..step(StepKind::Nothing) };
    ledger.write([add(job()), add(run()), add(step(StepKind::SubFlow)), add(second), add(inner), add(below)]);
    let mut outline = |root| -> Vec<(u64, State)> {
        let rows = ledger.store.outline(root).unwrap();
        assert!(rows.iter().all(|row| row.payload.is_none()));
        let seen = rows.iter().map(|row| (row.node.0, row.life.state)).collect();
        ledger.write([ended(TaskId::node(STEP), State::Failed, None)]);
        seen
    };
    let (waits, failed) = (State::Waiting, State::Failed);
    assert_eq!(outline(RUN), [(10, waits), (11, waits), (12, waits)]);
    assert_eq!(outline(RUN), [(10, waits), (11, failed), (12, waits)]);
    assert_eq!(outline(JOB), [(3, waits)]);
    assert_eq!(outline(NodeId(99)), []);
}

pub fn items_are_counted_by_their_states<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    ledger.write(open_loop());
    ledger.write([items(0, 4), ended(TaskId::item(STEP, 1), State::Failed, None)]);
    let states = ledger.store.item_states(STEP).unwrap();
    let failed = InState { state: State::Failed, items: 1, first: 1 };
    assert_eq!(states, [failed, InState { state: State::Waiting, items: 3, first: 0 }]);
    assert_eq!(ledger.store.item_states(JOB).unwrap(), []);
}
