//! The view and its picture, without a terminal.

use super::event::Event;
use super::tree::{Frame, draw};
use super::view::View;
use jiff::tz::TimeZone;
use tidegate_core::ids::{Epoch, Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::{
    Body, GrantRow, ItemRow, ItemRunBody, Life, NodeRow, Payload, Rendered, RunBody, Snapshot, StepBody,
    StepKind, Stop, Tally, Write,
};
use tidegate_core::state::State;
use tidegate_core::time::{Moment, Span};

const FILE: &str = r#"
flow: nightly
steps:
  list: { run: [ls] }
  fetch: { after: [list], with_items: "{{ [1, 2, 3, 4] }}", concurrency: 2, run: [curl] }
  flaky: { after: [list], run: [flaky], retry: { attempts: 3 } }
  tidy: { flow: cleaning }
  load: { after: [fetch], run: [load] }
  report: { after: [load, flaky], when: "{{ false }}", run: [mail] }
---
flow: cleaning
steps:
  sweep: { run: [sweep] }
  rest: { after: [sweep], wait: 10s }
"#;

const ROOT: NodeId = NodeId(10);
/// The flow inside `tidy`.
const INSIDE: NodeId = NodeId(20);

fn at(millis: u64) -> Moment {
    Moment(0) + Span::millis(millis)
}

fn step(index: usize) -> TaskId {
    TaskId::node(ROOT.step(index))
}

fn item(index: u32) -> TaskId {
    TaskId::item(ROOT.step(1), index)
}

fn row(node: NodeId, parent: Option<NodeId>, body: Body, life: Life, millis: u64) -> NodeRow {
    NodeRow { node, parent, root: 1, priority: 0, accepted: at(millis), body, payload: None, life }
}

fn run_row(node: NodeId, parent: Option<NodeId>, flow: &str, life: Life) -> NodeRow {
    let body = RunBody {
        id: parent.is_none().then_some(RunId(7)),
        flow: Name::new(flow),
        version: 1,
        depth: 0,
        key: None,
        tags: Vec::new(),
        idempotency: None,
    };
    row(node, parent, Body::Run(body), life, 0)
}

fn step_row(run: NodeId, index: u32, kind: StepKind, life: Life, millis: u64) -> NodeRow {
    let body = Body::Step(StepBody { index, kind, start_by: None });
    row(run.step(index as usize), Some(run), body, life, millis)
}

fn added(row: NodeRow) -> Write {
    Write::NodeAdded(Box::new(row))
}

fn opened(run: NodeId, index: u32, kind: StepKind, millis: u64) -> Write {
    added(step_row(run, index, kind, Life::new(State::Waiting), millis))
}

fn grant(millis: u64) -> GrantRow {
    GrantRow {
        epoch: Epoch { incarnation: 1, grant: 1 },
        worker: Name::new("local"),
        at: at(millis),
        until: at(millis + 30_000),
        length: Span::seconds(30),
    }
}

fn granted(task: TaskId, number: u32, millis: u64) -> Write {
    Write::Granted { task, grant: grant(millis), number }
}

fn ended(task: TaskId, state: State, error: Option<&str>, millis: u64) -> Write {
    Write::Ended { task, state, output: None, error: error.map(str::to_owned), at: at(millis) }
}

fn entered(node: NodeId, state: State, millis: u64) -> Write {
    Write::Entered { node, state, at: at(millis) }
}

/// Up to the middle of the run: everything that can be on its way is.
fn halfway() -> Vec<Write> {
    let plain = || StepKind::Plain { key: None };
    let rendered = Rendered { order: Payload::null(), key: None };
    let failure = Tally { started: 1, failures: 1, losses: 0 };
    vec![
        added(run_row(ROOT, None, "nightly", Life::new(State::Waiting))),
        entered(ROOT, State::Running, 0),
        opened(ROOT, 0, plain(), 0),
        granted(step(0), 1, 0),
        opened(ROOT, 3, StepKind::SubFlow, 0),
        entered(ROOT.step(3), State::Running, 0),
        added(run_row(INSIDE, Some(ROOT.step(3)), "cleaning", Life::new(State::Waiting))),
        entered(INSIDE, State::Running, 0),
        opened(INSIDE, 0, plain(), 0),
        granted(TaskId::node(INSIDE.step(0)), 1, 0),
        ended(step(0), State::Succeeded, None, 1_300),
        opened(ROOT, 1, StepKind::Loop { count: 4 }, 1_300),
        entered(ROOT.step(1), State::Running, 1_300),
        Write::ItemsAdded { step: ROOT.step(1), from: 0, items: vec![rendered; 4], at: at(1_300) },
        granted(item(0), 1, 1_300),
        granted(item(1), 1, 1_300),
        opened(ROOT, 2, plain(), 1_300),
        granted(step(2), 1, 1_300),
        Write::Moved {
            task: step(2),
            state: State::Scheduled,
            due: Some(at(2_400)),
            tally: failure,
            error: Some("exit code 1".to_owned()),
            at: at(1_400),
        },
        ended(item(0), State::Succeeded, None, 1_600),
        granted(item(2), 1, 1_600),
        ended(TaskId::node(INSIDE.step(0)), State::Succeeded, None, 1_700),
        opened(INSIDE, 1, StepKind::Wait { until: at(11_700) }, 1_700),
        entered(INSIDE.step(1), State::Scheduled, 1_700),
    ]
}

/// How it then goes wrong: the loop and with it the run fail, the rest is cancelled or skipped.
fn the_rest() -> Vec<Write> {
    let skipped = Life { ended: Some(at(2_200)), ..Life::new(State::Skipped) };
    vec![
        ended(item(1), State::Failed, Some("exit code 22: no route"), 2_000),
        Write::Stopping { task: step(1), why: Stop::LoopFailed, error: None, at: at(2_000) },
        Write::ItemsEnded { step: ROOT.step(1), from: 3, to: 4, state: State::Cancelled, at: at(2_000) },
        ended(item(2), State::Cancelled, None, 2_100),
        ended(step(1), State::Failed, Some("1 of 4 items failed"), 2_100),
        added(step_row(ROOT, 4, StepKind::Nothing, skipped, 2_200)),
        Write::Stopping { task: TaskId::node(ROOT), why: Stop::Cancelled, error: None, at: at(2_300) },
        ended(step(2), State::Cancelled, None, 2_300),
        ended(TaskId::node(INSIDE.step(1)), State::Cancelled, None, 2_300),
        ended(TaskId::node(INSIDE), State::Cancelled, None, 2_300),
        ended(step(3), State::Cancelled, None, 2_300),
        ended(TaskId::node(ROOT), State::Failed, Some("step `fetch`: 1 of 4 items failed"), 2_400),
    ]
}

fn view() -> View {
    let document = tidegate_flow::parse("nightly.yaml", FILE).unwrap();
    View::new(&document.flows, &document.actions, ROOT)
}

fn after(writes: &[Write]) -> (View, Vec<Event>) {
    let mut view = view();
    let events = writes.iter().filter_map(|write| view.apply(write)).collect();
    (view, events)
}

fn frame(now: Moment, live: bool) -> Frame {
    Frame { now, width: 80, height: 40, turn: 0, live }
}

fn picture(view: &View, frame: &Frame) -> String {
    let lines = draw(view, "run_7", frame);
    assert!(lines.iter().all(|line| line.width() <= frame.width), "every line fits");
    lines.iter().map(|line| line.plain() + "\n").collect()
}

#[test]
fn a_run_under_way_shows_what_runs_what_waits_and_for_what() {
    let (mut view, _) = after(&halfway());
    assert_eq!(view.waiting(), [item(3)], "only what the writes do not tell is asked for");
    view.waits(item(3), Some("waits for pool database (needs 2, 1 of 2 free)".to_owned()));
    for line in 0..4 {
        view.heard(item(1), &format!("line {line}"));
    }
    insta::assert_snapshot!(picture(&view, &frame(at(1_900), true)));
}

#[test]
fn the_last_picture_says_how_each_step_ended() {
    let (mut view, _) = after(&halfway());
    view.heard(item(1), "curl: (7) no route to host");
    for write in the_rest() {
        assert_eq!(view.end(), None);
        view.apply(&write);
    }
    assert_eq!(view.end(), Some(State::Failed));
    insta::assert_snapshot!(picture(&view, &frame(at(9_000), false)));
}

#[test]
fn events_are_told_in_lines() {
    let (_, events) = after(&[halfway(), the_rest()].concat());
    let lines: Vec<String> = events.iter().map(|event| event.line(12, &TimeZone::UTC).plain()).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn on_a_small_screen_what_is_on_its_way_stays() {
    let (view, _) = after(&halfway());
    let small = Frame { height: 7, width: 40, ..frame(at(1_900), true) };
    let picture = picture(&view, &small);
    assert_eq!(picture.lines().count(), 6);
    insta::assert_snapshot!(picture);
}

#[test]
fn writes_of_other_runs_change_nothing() {
    let (view, events) = after(&[
        added(run_row(NodeId(1), None, "nightly", Life::new(State::Waiting))),
        entered(NodeId(1), State::Running, 0),
        granted(TaskId::node(NodeId(2)), 1, 0),
        ended(TaskId::node(NodeId(1)), State::Succeeded, None, 1),
    ]);
    assert!(view.runs.is_empty() && events.is_empty());
    assert_eq!(picture(&view, &frame(at(0), true)), "");
}

#[test]
fn what_was_missed_is_read_from_the_store() {
    let running = |millis| Life {
        started: Some(at(millis)),
        entered: true,
        tally: Tally { started: 1, ..Tally::default() },
        grant: Some(grant(millis)),
        ..Life::new(State::Running)
    };
    let done = Life { ended: Some(at(1_300)), ..running(0) };
    let done = Life { state: State::Succeeded, grant: None, ..done };
    let entered = Life { grant: None, ..running(1_300) };
    let plain = || StepKind::Plain { key: None };
    let snapshot = Snapshot {
        nodes: vec![
            run_row(ROOT, None, "nightly", Life { grant: None, ..running(0) }),
            step_row(ROOT, 0, plain(), done.clone(), 0),
            step_row(ROOT, 1, StepKind::Loop { count: 4 }, entered, 1_300),
            step_row(ROOT, 3, StepKind::SubFlow, Life { ended: Some(at(1_800)), ..done }, 0),
        ],
        items: vec![
            ItemRow { step: ROOT.step(1), index: 2, key: None, life: running(1_600) },
            ItemRow { step: ROOT.step(1), index: 3, key: None, life: Life::new(State::Waiting) },
        ],
        loops: [(ROOT.step(1), (4, tidegate_core::LoopTally { succeeded: 1, failed: 1, cancelled: 0 }))]
            .into(),
        now: at(1_900),
        ..Snapshot::default()
    };
    // It had heard of the flow inside and nothing since.
    let (mut view, _) = after(&halfway()[..10]);
    view.reload(&snapshot);
    insta::assert_snapshot!(picture(&view, &frame(at(1_900), true)));
    let ends = [ended(TaskId::node(ROOT), State::Succeeded, None, 2_000)];
    ends.iter().for_each(|write| drop(view.apply(write)));
    assert_eq!(view.end(), Some(State::Succeeded));
}

#[test]
fn a_line_waits_for_the_news_of_its_start() {
    for task in [step(0), item(1), TaskId::node(INSIDE.step(0))] {
        let mut view = view();
        for write in halfway() {
            let starts = matches!(write, Write::Granted { task: granted, .. } if granted == task);
            assert_eq!(view.heard(task, "too early"), None, "{task:?} before {write:?}");
            view.apply(&write);
            if starts {
                break;
            }
        }
        assert!(view.heard(task, "in time").is_some(), "{task:?} has started");
    }
    let (mut view, _) = after(&halfway());
    assert_eq!(view.heard(step(2), "of the next try"), None, "that has not begun");
    assert!(view.heard(item(0), "the last words").is_some(), "of an item that has ended");
}

const EACH: &str = r#"
flow: all
steps:
  each: { with_items: [1, 2, 3], concurrency: 2, flow: one }
---
flow: one
steps:
  load: { run: [load] }
  rest: { after: [load], wait: 10s }
"#;

/// Two of three items have a flow inside them.
fn of_items() -> (View, Vec<Event>) {
    let document = tidegate_flow::parse("all.yaml", EACH).unwrap();
    let mut view = View::new(&document.flows, &document.actions, ROOT);
    let each = ROOT.step(0);
    let rendered = Rendered { order: Payload::null(), key: None };
    let begin = |index: u32, millis| {
        let inside = NodeId(20 + 10 * u64::from(index));
        let Body::Run(run) = run_row(inside, Some(each), "one", Life::new(State::Waiting)).body else {
            panic!()
        };
        let body = Body::ItemRun(ItemRunBody { index, run });
        let first = TaskId::node(inside.step(0));
        [
            Write::ItemEntered { step: each, index, at: at(millis) },
            added(row(inside, Some(each), body, Life::new(State::Waiting), millis)),
            entered(inside, State::Running, millis),
            opened(inside, 0, StepKind::Plain { key: None }, millis),
            granted(first, 1, millis),
        ]
    };
    let writes = [
        vec![
            added(run_row(ROOT, None, "all", Life::new(State::Waiting))),
            entered(ROOT, State::Running, 0),
            opened(ROOT, 0, StepKind::Loop { count: 3 }, 0),
            entered(each, State::Running, 0),
            Write::ItemsAdded { step: each, from: 0, items: vec![rendered; 3], at: at(0) },
        ],
        begin(0, 0).to_vec(),
        begin(1, 100).to_vec(),
        vec![ended(TaskId::node(NodeId(31)), State::Succeeded, None, 900)],
    ];
    let events = writes.concat().iter().filter_map(|write| view.apply(write)).collect();
    (view, events)
}

#[test]
fn a_loop_over_flows_shows_what_is_inside_the_items_at_work() {
    let (mut view, events) = of_items();
    let lines = events.iter().map(|event| event.line(12, &TimeZone::UTC).plain() + "\n");
    insta::assert_snapshot!(lines.collect::<String>() + &picture(&view, &frame(at(1_900), true)));
    let item = TaskId::item(ROOT.step(0), 0);
    let ends = [
        ended(TaskId::node(NodeId(21)), State::Failed, Some("exit code 1"), 2_000),
        ended(TaskId::node(NodeId(20)), State::Failed, Some("step `load`: exit code 1"), 2_000),
        ended(item, State::Failed, Some("step `load`: exit code 1"), 2_000),
    ];
    ends.iter().for_each(|write| drop(view.apply(write)));
    assert_eq!(view.runs.keys().copied().collect::<Vec<_>>(), [ROOT, NodeId(30)], "it is over");
    assert_eq!(view.steps().count(), 3);

    let each = step_row(ROOT, 0, StepKind::Loop { count: 3 }, Life::new(State::Running), 0);
    let nodes = vec![run_row(ROOT, None, "all", Life::new(State::Running)), each];
    view.reload(&Snapshot { nodes, now: at(3_000), ..Snapshot::default() });
    assert_eq!(view.runs.keys().copied().collect::<Vec<_>>(), [ROOT], "the other was over unheard");
}

#[test]
fn what_was_inside_an_item_keeps_its_name_and_is_not_shown() {
    let document = tidegate_flow::parse("all.yaml", EACH).unwrap();
    let mut view = View::new(&document.flows, &document.actions, ROOT);
    let (each, inside) = (ROOT.step(0), NodeId(20));
    let over = || Life { ended: Some(at(9)), ..Life::new(State::Succeeded) };
    let Body::Run(run) = run_row(inside, Some(each), "one", over()).body else { panic!() };
    let body = Body::ItemRun(ItemRunBody { index: 2, run });
    view.take_in(&[
        run_row(ROOT, None, "all", Life::new(State::Running)),
        step_row(ROOT, 0, StepKind::Loop { count: 3 }, Life::new(State::Running), 0),
        row(inside, Some(each), body, over(), 0),
        step_row(inside, 0, StepKind::Plain { key: None }, over(), 0),
    ]);
    assert_eq!(view.name(TaskId::node(inside.step(0))).as_deref(), Some("each#2/load"));
    assert_eq!(view.steps().map(|(name, _)| name).collect::<Vec<_>>(), ["each"]);
    assert_eq!(picture(&view, &frame(at(10), false)).lines().count(), 2);
}
