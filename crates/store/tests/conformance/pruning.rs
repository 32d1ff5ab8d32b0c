//! History goes when it is told to, a root after the other and each little by little.

use super::Backend;
use super::ledger::{LEASE, Ledger};
use super::samples::{RUN, STEP, add, granted, items, job, open_loop, run, step};
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::{Body, Life, NodeRow, Payload, StepKind, Write};
use tidegate_core::state::State;
use tidegate_core::time::{Moment, Span};
use tidegate_store::{Before, KEYS_STAY, Pruned, Reads, Retention, Sought, Store};

const INNER: NodeId = NodeId(40);

fn ended_at(task: TaskId, at: Moment) -> Write {
    ended_as(State::Succeeded, task, at)
}

fn ended_as(state: State, task: TaskId, at: Moment) -> Write {
    let output = Some(Payload::new("1"));
    Write::Ended { task, state, output, error: None, at }
}

/// A job that ended, without an idempotency key unless it is said to have one.
fn ended_job(node: u64, has_key: bool, at: Moment) -> [Write; 3] {
    let mut row = NodeRow { node: NodeId(node), ..job() };
    if let Body::Job(body) = &mut row.body {
        body.id = RunId(node.into());
        body.idempotency = body.idempotency.take().filter(|_| has_key);
    }
    let task = TaskId::node(row.node);
    [add(row), granted(task, 1), ended_at(task, at)]
}

/// What time the store says it is.
fn clock<B: Backend>(ledger: &mut Ledger<B>) -> Moment {
    ledger.store.lead(&Name::new("server"), Some(ledger.term), LEASE).unwrap().unwrap().clock
}

fn is_there<B: Backend>(ledger: &mut Ledger<B>, node: u64) -> bool {
    let task = TaskId::node(NodeId(node));
    let is_there = ledger.store.ended(task).unwrap().is_some();
    assert_eq!(ledger.store.payload(task).unwrap().is_some(), is_there);
    let found = ledger.store.find(&[Sought::Id(RunId(node.into()))]).unwrap();
    assert_eq!(found[0].is_some(), is_there);
    is_there
}

pub fn the_oldest_ends_go_first<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    for (node, at) in [(1, 300), (2, 100), (3, 200), (4, 400), (5, 500)] {
        ledger.write(ended_job(node, false, Moment(at)));
    }
    ledger.write([add(NodeRow { node: NodeId(6), ..job() })]);
    let before = ledger.load();
    assert_eq!(ledger.store.prune(Before::all(Moment(450)), 2).unwrap().roots, 2);
    let left: Vec<u64> = (1..=5).filter(|&node| is_there(&mut ledger, node)).collect();
    assert_eq!(left, [1, 4, 5]);
    assert_eq!(ledger.store.prune(Before::all(Moment(450)), 99).unwrap().roots, 2);
    assert_eq!(ledger.store.prune(Before::all(Moment(450)), 99).unwrap().roots, 0);
    assert!(is_there(&mut ledger, 5));
    assert_eq!(ledger.load(), before, "what is open stays as it is");
}

/// Jobs that ended in all the ways in which a root can, at the moments 100, 200 and so on.
fn every_end<B: Backend>(ledger: &mut Ledger<B>) -> Vec<(u64, State)> {
    let ends: Vec<_> = (1..).zip(State::ALL.into_iter().filter(|state| state.is_end())).collect();
    for &(node, state) in &ends {
        let [added, granted, _] = ended_job(node, false, Moment(0));
        let end = ended_as(state, TaskId::node(NodeId(node)), Moment(100 * node as i64));
        ledger.write([added, granted, end]);
    }
    ends
}

pub fn what_succeeded_and_what_did_not_are_kept_apart<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let ends = every_end(&mut ledger);
    let left = |ledger: &mut Ledger<B>| -> Vec<State> {
        ends.iter().filter(|(node, _)| is_there(ledger, *node)).map(|(_, state)| *state).collect()
    };
    let before = Before { succeeded: Moment(0), failed: Moment(350) };
    assert_eq!(ledger.store.prune(before, 99).unwrap().roots, 2);
    let mut expected: Vec<State> = ends.iter().map(|(_, state)| *state).collect();
    expected.retain(|state| !matches!(state, State::Failed | State::TimedOut));
    assert_eq!(left(&mut ledger), expected);
    // Nothing is older than for ever.
    let before = Retention { succeeded: Span::ZERO, failed: Span::MAX }.before(Moment(9_999));
    assert_eq!(ledger.store.prune(before, 99).unwrap().roots, 1);
    expected.retain(|state| *state != State::Succeeded);
    assert_eq!(left(&mut ledger), expected);
    assert_eq!(ledger.store.prune(Before::all(Moment(9_999)), 99).unwrap().roots, 5);
}

pub fn what_succeeded_goes_first<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let failed = TaskId::node(NodeId(1));
    let [added, granted, _] = ended_job(1, false, Moment(0));
    ledger.write([added, granted, ended_as(State::Failed, failed, Moment(100))]);
    ledger.write(ended_job(2, false, Moment(200)));
    assert_eq!(ledger.store.prune(Before::all(Moment(1_000)), 1).unwrap().roots, 1);
    assert!(is_there(&mut ledger, 1) && !is_there(&mut ledger, 2));
    assert_eq!(ledger.store.prune(Before::all(Moment(1_000)), 1).unwrap().roots, 1);
    assert!(!is_there(&mut ledger, 1));
}

pub fn keys_stay_for_a_day<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let now = clock(&mut ledger);
    let (long_ago, lately) = (now - KEYS_STAY - Span::hours(1), now - Span::hours(1));
    ledger.write(ended_job(1, true, long_ago));
    ledger.write(ended_job(2, true, lately));
    ledger.write(ended_job(3, false, lately));
    assert_eq!(ledger.store.prune(Before::all(now + Span::hours(1)), 99).unwrap().roots, 2);
    let left: Vec<u64> = (1..=3).filter(|&node| is_there(&mut ledger, node)).collect();
    assert_eq!(left, [2]);
}

pub fn a_run_goes_with_everything_below_it<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let inner = NodeRow { node: INNER, parent: Some(STEP), ..run() };
    let leaf = NodeRow { node: INNER.step(0), parent: Some(INNER), ..run() };
    let item = TaskId::item(STEP, 1);
    ledger.write(open_loop().into_iter().chain([add(inner), add(leaf), items(0, 3), granted(item, 1)]));
    ledger.write([INNER.step(0), INNER, STEP].map(|node| ended_at(TaskId::node(node), Moment(100))));
    ledger.write([ended_at(item, Moment(90))]);
    assert_eq!(
        ledger.store.prune(Before::all(Moment(1_000)), 99).unwrap(),
        Pruned::default(),
        "its root is open"
    );
    ledger.write([ended_at(TaskId::node(RUN), Moment(110))]);
    ledger.write(ended_job(1, false, Moment(120)));
    assert_eq!(ledger.store.prune(Before::all(Moment(1_000)), 7).unwrap(), Pruned { roots: 1, rows: 7 });
    for node in [RUN, STEP, INNER, INNER.step(0)] {
        assert_eq!(ledger.store.ended(TaskId::node(node)).unwrap(), None, "{node:?}");
    }
    assert_eq!(ledger.store.ended_items(STEP, 0, 9).unwrap(), []);
    assert_eq!(ledger.store.payload(item).unwrap(), None);
    assert!(is_there(&mut ledger, 1));
}

pub fn a_large_run_goes_little_by_little<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let item = TaskId::item(STEP, 1);
    ledger.write(open_loop().into_iter().chain([items(0, 3), granted(item, 1), ended_at(item, Moment(90))]));
    ledger.write([STEP, RUN].map(|node| ended_at(TaskId::node(node), Moment(100))));
    ledger.write(ended_job(1, false, Moment(120)));
    let mut left = Vec::new();
    loop {
        let pruned = ledger.store.prune(Before::all(Moment(1_000)), 2).unwrap();
        if pruned.rows == 0 {
            break;
        }
        let found = ledger.store.find(&[Sought::Part(STEP)]).unwrap()[0].map(|found| found.node);
        let ended = ledger.store.ended(TaskId::node(RUN)).unwrap().is_some();
        left.push((pruned.rows, pruned.roots, ended, found));
    }
    let expected = [(2, 0, true, Some(RUN)), (2, 0, true, None), (2, 2, false, None)];
    assert_eq!(left, expected, "items, then steps, the root last");
    assert_eq!(ledger.store.ended_items(STEP, 0, 9).unwrap(), []);
}

/// Another run, whose only step is the one of the run of the samples.
fn retry(node: u64) -> [Write; 2] {
    let mut row = NodeRow { node: NodeId(node), ..run() };
    if let Body::Run(body) = &mut row.body {
        body.id = Some(RunId(node.into()));
    }
    let life = Life { ended: Some(Moment(300)), ..Life::new(State::Succeeded) };
    let kind = StepKind::Reused { of: STEP, run: RunId(1) };
    let reused = NodeRow { node: row.node.step(0), parent: Some(row.node), life, ..step(kind) };
    [add(row), add(reused)]
}

pub fn a_run_stays_while_an_open_one_reuses_its_steps<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    ledger.write(open_loop().into_iter().chain([items(0, 2)]));
    ledger.write([TaskId::item(STEP, 0), TaskId::item(STEP, 1)].map(|item| ended_at(item, Moment(80))));
    ledger.write([STEP, RUN].map(|node| ended_at(TaskId::node(node), Moment(100))));
    // Neither of these waits until the tables of a database have followed.
    ledger.write(retry(40));
    ledger.write(retry(50));
    ledger.write(ended_job(1, false, Moment(120)));
    assert_eq!(
        ledger.store.prune(Before::all(Moment(1_000)), 99).unwrap(),
        Pruned { roots: 1, rows: 1 },
        "the job"
    );
    ledger.load();
    for end in [40, 50] {
        assert_eq!(ledger.store.prune(Before::all(Moment(1_000)), 99).unwrap(), Pruned::default());
        assert_eq!(ledger.store.ended_items(STEP, 0, 9).unwrap().len(), 2, "all of it is there");
        assert!(ledger.store.ended(TaskId::node(STEP)).unwrap().is_some());
        ledger.write([ended_at(TaskId::node(NodeId(end)), Moment(2_000))]);
    }
    assert_eq!(ledger.store.prune(Before::all(Moment(1_000)), 99).unwrap(), Pruned { roots: 1, rows: 4 });
    assert_eq!(ledger.store.ended(TaskId::node(STEP)).unwrap(), None);
    assert!(ledger.store.ended(TaskId::node(NodeId(41))).unwrap().is_some(), "who reused it is still there");
}
