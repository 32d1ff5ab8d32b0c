//! Rows that a healthy store never has together, and rows that only a crash at the right moment leaves.

use crate::admission::{Skills, SlotCounts};
use crate::core::Core;
use crate::ids::{Epoch, Name, NodeId, RunId, TaskId};
use crate::model::{Flow, OnFailure, Step, Work};
use crate::nodes::LoopTally;
use crate::protocol::{
    Body, Command, DeclaredRow, Evaluation, GrantRow, ItemRow, ItemRunBody, JobBody, Lease, Life, NodeRow,
    RunBody, Snapshot, StepBody, StepKind, Stop, Tally, WorkerRow,
};
use crate::state::State;
use crate::testkit::{Kit, WORKER, doing, flow, looping, rendered, step, template};
use crate::time::{Moment, Span};
use std::sync::Arc;

const NOW: Moment = Moment(1_000_000_000);
const EPOCH: Epoch = Epoch { incarnation: 1, grant: 7 };

fn row(node: u64, parent: Option<NodeId>, body: Body, life: Life) -> NodeRow {
    let (root, accepted) = (node, NOW);
    NodeRow { node: NodeId(node), parent, root, priority: 0, accepted, body, payload: None, life }
}

fn job(node: u64, life: Life) -> NodeRow {
    let body = JobBody {
        id: RunId(u128::from(node)),
        action: "work".into(),
        key: None,
        tags: Vec::new(),
        start_by: Some(NOW + Span::hours(1)),
        idempotency: None,
    };
    row(node, None, Body::Job(body), life)
}

fn granted(worker: &str, until: Moment) -> Life {
    let length = Span::seconds(30);
    let grant = GrantRow { epoch: EPOCH, worker: worker.into(), at: until - length, until, length };
    Life { grant: Some(grant), started: Some(NOW), ..Life::new(State::Running) }
}

fn run(node: u64, flow: &str, life: Life) -> NodeRow {
    let body = RunBody {
        id: Some(RunId(u128::from(node))),
        flow: flow.into(),
        version: 1,
        depth: 0,
        key: None,
        tags: Vec::new(),
        idempotency: None,
    };
    row(node, None, Body::Run(body), life)
}

fn load(nodes: Vec<NodeRow>) -> Kit {
    let flow = Arc::new(flow("one", vec![step("a"), step("b")]));
    let declared = vec![DeclaredRow::Flow { version: 1, flow }];
    let snapshot = Snapshot { nodes, declared, next: 100, now: NOW, ..Snapshot::default() };
    let mut kit = Kit::new(0);
    kit.core = Core::load(snapshot, 2, NOW - Span::seconds(5));
    kit.now = NOW;
    kit.effects.clear();
    kit.apply(Command::Wake);
    kit
}

#[test]
fn time_and_numbers_go_on_from_what_was_written() {
    let mut kit = load(Vec::new());
    assert_eq!((kit.core.now(), kit.core.next()), (NOW, 100));
    assert_eq!(kit.job("work"), NodeId(100));
}

/// A worker that two starts of the core know.
fn load_with_worker(grant: GrantRow) -> Kit {
    let skills = Skills { functions: vec!["work".into()], ..Skills::plain() };
    let slots = SlotCounts { process: 1, io: 1 };
    let worker = WorkerRow { worker: WORKER.into(), incarnation: 1, skills, slots };
    let life = Life { grant: Some(grant), started: Some(NOW), ..Life::new(State::Running) };
    let (nodes, workers) = (vec![job(1, life)], vec![worker]);
    let mut kit = Kit::new(0);
    kit.core = Core::load(Snapshot { nodes, workers, next: 100, now: NOW, ..Snapshot::default() }, 2, NOW);
    kit.now = NOW;
    kit.effects.clear();
    kit
}

#[test]
fn what_was_renewed_before_the_load_has_arrived_and_is_not_delivered_again() {
    for (renewed_after, deliveries) in [(0, 1), (5, 0)] {
        let (at, length) = (NOW - Span::seconds(10), Span::seconds(30));
        let until = at + Span::seconds(renewed_after) + length;
        let mut kit = load_with_worker(GrantRow { epoch: EPOCH, worker: WORKER.into(), at, until, length });
        kit.heartbeat(WORKER, 1, Vec::new());
        kit.heartbeat(WORKER, 1, Vec::new());
        assert_eq!(kit.effects.len(), deliveries, "{:?}", kit.effects);
    }
}

#[test]
fn an_attempt_of_a_worker_that_is_gone_lives_until_its_lease_ends() {
    let mut kit = load(vec![job(1, granted("gone", NOW + Span::seconds(20)))]);
    let task = TaskId::node(NodeId(1));
    assert!(kit.core.is_live(Lease { task, epoch: EPOCH }));
    assert_eq!(kit.core.next_wake(), Some(NOW + Span::seconds(20)));
    kit.advance(Span::seconds(20));
    assert_eq!(kit.state(task), Some(State::Waiting));
    assert_eq!(kit.core.tally(task).losses, 0, "nobody could renew it");
    kit.join("w", 1, 1);
    let lease = kit.lease(task);
    assert_eq!(lease.epoch, Epoch { incarnation: 2, grant: 1 }, "never a number of an earlier core");
}

#[test]
fn a_lease_that_is_over_gets_a_third_of_a_lease_of_patience() {
    let mut kit = load(vec![job(1, granted("gone", NOW - Span::seconds(1)))]);
    let lease = Lease { task: TaskId::node(NodeId(1)), epoch: EPOCH };
    kit.advance(Span::seconds(9));
    assert!(kit.core.is_live(lease));
    kit.advance(Span::seconds(1));
    assert!(!kit.core.is_live(lease));
}

#[test]
fn what_was_told_to_stop_is_still_to_stop() {
    let life = Life { stop: Some(Stop::Cancelled), ..granted("gone", NOW + Span::seconds(20)) };
    let mut kit = load(vec![job(1, life)]);
    kit.advance(Span::seconds(20));
    assert_eq!(kit.ended(NodeId(1)), Some((State::Cancelled, None)));
    assert!(kit.core.is_idle());
}

#[test]
fn who_started_once_can_neither_expire_nor_fill_its_line() {
    let due = Some(NOW + Span::hours(2));
    let again = Life { due, started: Some(NOW), ..Life::new(State::Scheduled) };
    let mut kit = load(vec![job(1, again), job(2, Life::new(State::Waiting))]);
    let name = Name::new("work");
    assert_eq!(kit.core.lines[&name].unstarted.len(), 1);
    kit.advance(Span::hours(1));
    assert_eq!(kit.ended(NodeId(2)).map(|(state, _)| state), Some(State::Expired));
    assert_eq!(kit.state(TaskId::node(NodeId(1))), Some(State::Scheduled));
}

#[test]
fn steps_go_on_where_they_were() {
    let running = Life { started: Some(NOW), entered: true, ..Life::new(State::Running) };
    let part = |index, kind, state: State| {
        let ended = state.is_end().then_some(NOW);
        let body = Body::Step(StepBody { index, kind, start_by: None });
        let parent = Some(NodeId(1));
        row(
            2 + u64::from(index),
            parent,
            body,
            Life { ended, error: ended.map(|_| "boom".into()), ..Life::new(state) },
        )
    };
    let ended = part(0, StepKind::Nothing, State::Failed);
    let open = part(1, StepKind::Plain { key: None }, State::Waiting);
    let mut kit = load(vec![run(1, "one", running), ended, open]);
    assert_eq!(kit.state(TaskId::node(NodeId(3))), Some(State::Waiting));
    kit.join("w", 1, 1);
    kit.succeed(TaskId::node(NodeId(3)));
    assert_eq!(kit.ended(NodeId(1)), Some((State::Failed, Some("step `a`: boom".to_owned()))));
}

#[test]
fn rows_that_belong_to_nobody_are_left_alone() {
    let orphan = |parent| {
        let body = StepBody { index: 0, kind: StepKind::Plain { key: None }, start_by: None };
        row(50, parent, Body::Step(body), Life::new(State::Waiting))
    };
    for rows in [
        vec![orphan(None)],
        vec![orphan(Some(NodeId(49)))],
        vec![run(1, "forgotten", Life::new(State::Waiting))],
    ] {
        let kit = load(rows);
        assert!(kit.core.is_idle());
    }
}

#[test]
fn who_comes_back_still_has_what_it_had() {
    let mut kit = load(vec![job(1, granted("gone", NOW + Span::seconds(20)))]);
    let lease = Lease { task: TaskId::node(NodeId(1)), epoch: EPOCH };
    assert_eq!(kit.core.incarnation(&"gone".into()), None, "nobody knows which start it was");
    kit.join("gone", 5, 1);
    assert!(kit.core.is_live(lease));
    kit.advance(Span::seconds(15));
    kit.heartbeat("gone", 5, vec![lease]);
    kit.advance(Span::seconds(29));
    assert!(kit.core.is_live(lease), "it was renewed");
    kit.join("gone", 6, 1);
    assert!(!kit.core.is_live(lease), "another start has nothing of it");
}

#[test]
fn a_run_that_was_being_stopped_goes_on_with_it() {
    let running =
        Life { started: Some(NOW), entered: true, stop: Some(Stop::Cancelled), ..Life::new(State::Running) };
    let untold = StepBody { index: 1, kind: StepKind::Plain { key: None }, start_by: None };
    let untold = row(3, Some(NodeId(1)), Body::Step(untold), Life::new(State::Waiting));
    let kit = load(vec![run(1, "one", running), untold]);
    assert_eq!(kit.ended(NodeId(3)), Some((State::Cancelled, None)));
    assert_eq!(kit.ended(NodeId(1)).map(|(state, _)| state), Some(State::Cancelled));
}

#[test]
fn a_run_that_waits_has_waited_since_it_was_accepted() {
    let waiting = NodeRow { accepted: NOW - Span::minutes(5), ..run(1, "one", Life::new(State::Waiting)) };
    let flow = Arc::new(Flow { concurrency: Some(0), ..flow("one", vec![step("a")]) });
    let declared = vec![DeclaredRow::Flow { version: 1, flow }];
    let core =
        Core::load(Snapshot { nodes: vec![waiting], declared, next: 100, ..Snapshot::default() }, 2, NOW);
    let explained = core.explain(TaskId::node(NodeId(1)), NOW).expect("it waits");
    assert_eq!(explained.since, NOW - Span::minutes(5));
}

#[test]
fn a_run_belongs_to_its_item_and_the_item_to_its_window() {
    let called = Work::Flow { flow: "one".into(), inputs: template() };
    let each = Step { each: looping("each", Some(1), OnFailure::Continue).each, ..doing("each", called) };
    let flows = [flow("one", vec![step("a")]), flow("outer", vec![each])];
    let declared = flows.map(|flow| DeclaredRow::Flow { version: 1, flow: Arc::new(flow) });
    let running = || Life { started: Some(NOW), entered: true, ..Life::new(State::Running) };
    let each = StepBody { index: 0, kind: StepKind::Loop { count: 2 }, start_by: None };
    let of_item = |index| match run(3, "one", running()).body {
        Body::Run(run) => Body::ItemRun(ItemRunBody { index, run: RunBody { id: None, ..run } }),
        other => other,
    };
    let nodes = vec![
        run(1, "outer", running()),
        row(2, Some(NodeId(1)), Body::Step(each), running()),
        row(3, Some(NodeId(2)), of_item(0), running()),
    ];
    let item = |index, life| ItemRow { step: NodeId(2), index, key: None, life };
    let at_work = Life { started: Some(NOW), tally: Tally { started: 1, ..Tally::default() }, ..running() };
    let items = vec![item(0, at_work), item(1, Life::new(State::Waiting))];
    let loops = [(NodeId(2), (2, LoopTally::default()))].into();
    let (declared, next) = (declared.to_vec(), 100);
    let mut kit = Kit::new(1);
    kit.core =
        Core::load(Snapshot { nodes, items, loops, declared, next, now: NOW, ..Snapshot::default() }, 2, NOW);
    kit.now = NOW;
    kit.join(WORKER, 2, 1);
    let [first, second] = [0, 1].map(|index| TaskId::item(NodeId(2), index));
    assert_eq!([first, second].map(|item| kit.state(item)), [Some(State::Running), Some(State::Waiting)]);
    assert_eq!(kit.core.name(TaskId::node(NodeId(3))), kit.core.name(first));
    kit.answer_step(NodeId(3), 0, Evaluation::Order(rendered(None)));
    kit.succeed(TaskId::node(NodeId(4)));
    assert_eq!(kit.state(second), Some(State::Running), "the window is free, and was not before");
}
