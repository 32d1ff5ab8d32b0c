//! Items of loops: rows of their own, ranges, and the tallies that are loaded instead of those that ended.

use super::Backend;
use super::ledger::Ledger;
use super::samples::{RUN, STEP, add, ended, grant_row, granted, items, lease, open_loop, run};
use tidegate_core::LoopTally;
use tidegate_core::ids::{Name, NodeId, TaskId};
use tidegate_core::protocol::{Body, ItemRow, ItemRunBody, Life, NodeRow, Stop, Tally, Write};
use tidegate_core::state::State;
use tidegate_core::time::Moment;
use tidegate_store::Reads;

fn ended_range(from: u32, to: u32) -> Write {
    Write::ItemsEnded { step: STEP, from, to, state: State::Cancelled, at: Moment(600) }
}

fn indexes(items: &[ItemRow]) -> Vec<u32> {
    items.iter().map(|item| item.index).collect()
}

pub fn items_wait_in_index_order<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    ledger.write(open_loop());
    assert!(ledger.load().loops.is_empty(), "a loop without rows is not listed");
    ledger.write([items(0, 3)]);
    ledger.write([items(3, 2)]);
    let key = |index: u32| (index % 2 == 1).then(|| Name::new(format!("k{index}")));
    let waiting = |index| ItemRow { step: STEP, index, key: key(index), life: Life::new(State::Waiting) };
    assert_eq!(ledger.items(), (0..5).map(waiting).collect::<Vec<_>>());
    for index in 0..5 {
        let order = ledger.store.payload(TaskId::item(STEP, index)).unwrap().unwrap();
        assert_eq!(order.bytes(), format!("[{index}]").as_bytes());
    }
    assert_eq!(ledger.store.payload(TaskId::item(STEP, 5)).unwrap(), None);
}

pub fn an_item_lives_like_any_task<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let task = TaskId::item(STEP, 1);
    ledger.write(open_loop());
    ledger.write([items(0, 3), granted(task, 1)]);
    ledger.write([
        Write::Renewed { leases: vec![lease(task, 1), lease(TaskId::item(STEP, 2), 1)], until: Moment(777) },
        Write::Stopping { task, why: Stop::LoopFailed, error: Some("bad list".to_owned()), at: Moment(130) },
    ]);
    let mut grant = grant_row(1);
    grant.until = Moment(777);
    let running = Life {
        grant: Some(grant),
        stop: Some(Stop::LoopFailed),
        error: Some("bad list".to_owned()),
        tally: Tally { started: 1, ..Tally::default() },
        started: Some(Moment(101)),
        ..Life::new(State::Running)
    };
    assert_eq!(ledger.items()[1].life, running);
    assert_eq!(ledger.items()[2].life, Life::new(State::Waiting));

    let tally = Tally { started: 1, failures: 1, losses: 0 };
    let (due, error) = (Some(Moment(150)), Some("no".to_owned()));
    ledger.write([Write::Moved { task, state: State::Scheduled, due, tally, error, at: Moment(140) }]);
    let scheduled = Life {
        due: Some(Moment(150)),
        tally,
        started: Some(Moment(101)),
        error: Some("no".to_owned()),
        ..Life::new(State::Scheduled)
    };
    assert_eq!(ledger.items()[1].life, scheduled);

    ledger.write([ended(task, State::Succeeded, Some("7"))]);
    assert_eq!(indexes(&ledger.items()), [0, 2]);
}

pub fn an_item_with_a_flow_inside_runs_without_a_worker<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let task = TaskId::item(STEP, 1);
    let entered = |at| Write::ItemEntered { step: STEP, index: 1, at: Moment(at) };
    let inside = |node, index| {
        let mut run = run().body.run().expect("a run").clone();
        (run.id, run.depth) = (None, 1);
        add(NodeRow {
            node: NodeId(node),
            parent: Some(STEP),
            body: Body::ItemRun(ItemRunBody { index, run }),
            ..self::run()
        })
    };
    ledger.write(open_loop());
    ledger.write([items(0, 3), entered(300), inside(20, 1)]);
    ledger.write([entered(310)]);
    let tally = Tally { started: 1, ..Tally::default() };
    let running = Life { tally, started: Some(Moment(300)), ..Life::new(State::Running) };
    assert_eq!(ledger.items()[1].life, running);
    let around: Vec<_> = ledger.load().nodes.iter().map(|row| row.around()).collect();
    assert_eq!(around, [None, Some(TaskId::node(RUN)), Some(task)]);

    ledger.write([
        ended(TaskId::node(NodeId(20)), State::Succeeded, None),
        ended(task, State::Succeeded, None),
    ]);
    ledger.write([Write::ItemEntered { step: STEP, index: 2, at: Moment(320) }, inside(30, 2)]);
    let end = ledger.store.ended(task).unwrap().unwrap();
    assert_eq!((end.state, end.attempts), (State::Succeeded, 1));
    let open: Vec<_> = ledger.load().nodes.iter().map(|row| row.node.0).collect();
    assert_eq!(open, [10, 11, 30], "what was inside an item goes with it");
}

pub fn ranges_end_alike<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    ledger.write(open_loop());
    ledger.write([items(0, 9), ended_range(2, 5), ended_range(8, 9), ended_range(1, 1)]);
    assert_eq!(indexes(&ledger.items()), [0, 1, 5, 6, 7]);
    let ended = ledger.store.ended(TaskId::item(STEP, 4)).unwrap().unwrap();
    assert_eq!((ended.state, ended.output, ended.attempts), (State::Cancelled, None, 0));
}

pub fn loops_are_counted<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    ledger.write(open_loop());
    ledger.write([items(0, 8)]);
    let ends = [State::Succeeded, State::Failed, State::TimedOut, State::Cancelled, State::Expired];
    ledger.write((0..).zip(ends).map(|(index, state)| ended(TaskId::item(STEP, index), state, None)));
    ledger.write([granted(TaskId::item(STEP, 7), 1), ended_range(5, 7)]);
    let tally = LoopTally { succeeded: 1, failed: 3, cancelled: 3 };
    assert_eq!(ledger.load().loops, [(STEP, (8, tally))].into());
}

pub fn items_of_a_loop_that_ended_are_history<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    ledger.write(open_loop());
    ledger.write([items(0, 2), ended(TaskId::node(STEP), State::Failed, None)]);
    let snapshot = ledger.load();
    assert!(snapshot.items.is_empty() && snapshot.loops.is_empty());
    assert_eq!(snapshot.nodes.iter().map(|row| row.node).collect::<Vec<_>>(), [RUN, STEP]);
}
