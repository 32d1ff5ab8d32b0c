//! What the writes about a task do to its row.

use super::Backend;
use super::ledger::Ledger;
use super::samples::{JOB, RUN, STEP, add, ended, grant_row, granted, job, lease, run, step};
use tidegate_core::ids::{NodeId, RunId, TaskId};
use tidegate_core::protocol::{Body, ItemRunBody, Life, NodeRow, StepKind, Stop, Tally, Write};
use tidegate_core::state::State;
use tidegate_core::time::Moment;
use tidegate_store::Reads;

fn task() -> TaskId {
    TaskId::node(JOB)
}

fn entered(node: NodeId, state: State, at: i64) -> Write {
    Write::Entered { node, state, at: Moment(at) }
}

fn moved(state: State, due: Option<i64>, error: Option<&str>) -> Write {
    let tally = Tally { started: 1, failures: 1, losses: 2 };
    let (due, error) = (due.map(Moment), error.map(str::to_owned));
    Write::Moved { task: task(), state, due, tally, error, at: Moment(140) }
}

pub fn a_new_node_loads_as_it_was<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let full = Life {
        state: State::Running,
        due: Some(Moment(-1)),
        tally: Tally { started: 4, failures: 2, losses: 1 },
        grant: Some(grant_row(1 << 60)),
        stop: Some(Stop::Superseded),
        paused: true,
        started: Some(Moment(70)),
        entered: true,
        ended: None,
        error: Some("‘last’".to_owned()),
    };
    let kinds = [
        StepKind::Plain { key: Some("k".into()) },
        StepKind::Loop { count: 7 },
        StepKind::SubFlow,
        StepKind::Wait { until: Moment(9) },
        StepKind::Nothing,
        StepKind::Reused { of: NodeId(7), run: RunId(u128::MAX) },
    ];
    let mut rows = vec![NodeRow { life: full, ..job() }, run()];
    rows.extend((11..).zip(kinds).map(|(node, kind)| NodeRow { node: NodeId(node), ..step(kind) }));
    let inside = ItemRunBody { index: 3, run: run().body.run().expect("a run").clone() };
    rows.push(NodeRow { node: NodeId(20), parent: Some(STEP), body: Body::ItemRun(inside), ..run() });
    ledger.write(rows.iter().rev().cloned().map(add));
    assert_eq!(ledger.load().nodes, rows, "by node, whatever the order of writing");
}

pub fn a_root_that_came_due_waits_and_holds_nothing<B: Backend>() {
    for row in [job(), run()] {
        let mut ledger = Ledger::<B>::open();
        let life = Life { due: Some(Moment(80)), ..Life::new(State::Scheduled) };
        let node = row.node;
        ledger.write([add(NodeRow { life, ..row }), entered(node, State::Waiting, 80)]);
        assert_eq!(ledger.node().life, Life::new(State::Waiting));
    }
}

pub fn a_step_past_the_limit_waits_and_holds<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    ledger.write([add(step(StepKind::Plain { key: None })), entered(STEP, State::Waiting, 80)]);
    assert_eq!(ledger.node().life, Life { entered: true, ..Life::new(State::Waiting) });
}

pub fn what_begins_has_started_once<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    ledger.write([add(run()), entered(RUN, State::Running, 80), entered(RUN, State::Running, 90)]);
    let life = Life { entered: true, started: Some(Moment(80)), ..Life::new(State::Running) };
    assert_eq!(ledger.node().life, life);
}

pub fn a_wait_step_is_entered_and_not_started<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    ledger.write([add(step(StepKind::Wait { until: Moment(900) })), entered(STEP, State::Scheduled, 80)]);
    assert_eq!(ledger.node().life, Life { entered: true, ..Life::new(State::Scheduled) });
}

pub fn a_grant_is_who_has_it<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    ledger.write([add(job()), granted(task(), 1)]);
    let life = Life {
        grant: Some(grant_row(1)),
        tally: Tally { started: 1, ..Tally::default() },
        started: Some(Moment(101)),
        ..Life::new(State::Running)
    };
    assert_eq!(ledger.node().life, life);
}

pub fn a_move_ends_the_grant_and_keeps_the_last_error<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    ledger.write([add(job()), granted(task(), 1), moved(State::Scheduled, Some(150), Some("no route"))]);
    let scheduled = Life {
        due: Some(Moment(150)),
        tally: Tally { started: 1, failures: 1, losses: 2 },
        started: Some(Moment(101)),
        error: Some("no route".to_owned()),
        ..Life::new(State::Scheduled)
    };
    assert_eq!(ledger.node().life, scheduled);

    ledger.write([moved(State::Waiting, None, None)]);
    assert_eq!(ledger.node().life, Life { state: State::Waiting, due: None, ..scheduled });

    ledger.write([granted(task(), 2)]);
    let life = ledger.node().life;
    assert_eq!((life.started, life.tally.started, life.tally.losses), (Some(Moment(101)), 2, 2));
    assert_eq!(life.grant, Some(grant_row(2)));
}

pub fn a_new_attempt_was_told_nothing<B: Backend>() {
    let stopping = || Write::Stopping { task: task(), why: Stop::TimedOut, error: None, at: Moment(130) };
    let mut ledger = Ledger::<B>::open();
    ledger.write([add(job()), granted(task(), 1), stopping(), moved(State::Waiting, None, None)]);
    assert_eq!(ledger.node().life.stop, None);
    ledger.write([stopping(), granted(task(), 2)]);
    assert_eq!(ledger.node().life.stop, None);
}

pub fn only_the_live_lease_is_renewed<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let (first, second) = (TaskId::node(NodeId(1)), TaskId::node(NodeId(2)));
    ledger.write([first, second].map(|task| add(NodeRow { node: task.node, ..job() })));
    ledger.write([granted(first, 5), granted(second, 6)]);
    let leases = vec![lease(first, 5), lease(second, 4), lease(task(), 5)];
    ledger.write([Write::Renewed { leases, until: Moment(777) }]);
    let until: Vec<_> = ledger.load().nodes.iter().map(|row| row.life.grant.clone().unwrap().until).collect();
    assert_eq!(until, [Moment(777), Moment(130)]);
}

pub fn stops_ranks_and_pauses_are_kept<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    ledger.write([
        add(job()),
        granted(task(), 1),
        Write::Stopping { task: task(), why: Stop::FailedFast, error: None, at: Moment(130) },
        Write::Ranked { node: JOB, priority: 100, root: u64::MAX },
        Write::Paused { node: JOB, paused: true },
    ]);
    let row = ledger.node();
    assert_eq!((row.priority, row.root, row.life.paused), (100, u64::MAX, true));
    assert_eq!(row.life.stop, Some(Stop::FailedFast));
    assert_eq!(row.life.grant, Some(grant_row(1)), "it has what it has until it has stopped");
    ledger.write([Write::Paused { node: JOB, paused: false }]);
    assert!(!ledger.node().life.paused);
}

pub fn a_write_about_nothing_changes_nothing<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let item = TaskId::item(JOB, 0);
    ledger.write([
        entered(JOB, State::Running, 1),
        granted(task(), 1),
        granted(item, 1),
        moved(State::Waiting, None, None),
        Write::Stopping { task: item, why: Stop::Cancelled, error: None, at: Moment(1) },
        Write::Ranked { node: JOB, priority: 1, root: 1 },
        Write::Paused { node: JOB, paused: true },
        ended(task(), State::Succeeded, Some("1")),
        ended(item, State::Succeeded, Some("1")),
        Write::ItemsEnded { step: JOB, from: 0, to: 9, state: State::Cancelled, at: Moment(1) },
        Write::WorkerGone { worker: "nobody".into(), at: Moment(1) },
    ]);
    let snapshot = ledger.load();
    assert!(snapshot.nodes.is_empty() && snapshot.items.is_empty() && snapshot.loops.is_empty());
    assert_eq!(ledger.store.ended(task()).unwrap(), None);
    assert_eq!(ledger.store.ended(item).unwrap(), None);
}
