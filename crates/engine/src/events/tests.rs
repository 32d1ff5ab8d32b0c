//! One test a kind of event, and one for each way in which a subscription goes on.

use super::{BadPosition, Derivation, Event, EventsError, Happening, Position, Subscription};
use crate::{Definition, Engine, Evaluate, Prepared, Reader, Settings};
use std::sync::Arc;
use tidegate_core::Asked;
use tidegate_core::admission::{LimitKey, Skills, SlotCounts};
use tidegate_core::ids::{Epoch, Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::{
    Body, Command, Evaluation, GrantRow, ItemRunBody, JobBody, Lease, Life, LimitRow, LimitValue, NodeRow,
    Override, Payload, RunBody, SetLimit, StepBody, StepKind, Submission, Submit, Tally, WorkerRow, Write,
};
use tidegate_core::state::State;
use tidegate_core::time::{Moment, Span};
use tidegate_store::{Entry, Found, MemoryStore, Reads, StoreError};

const JOB: NodeId = NodeId(1);
const RUN: NodeId = NodeId(10);
const STEP: NodeId = NodeId(11);
const INSIDE: NodeId = NodeId(20);
const EPOCH: Epoch = Epoch { incarnation: 1, grant: 7 };

fn at(seconds: u64) -> Moment {
    Moment(0) + Span::seconds(seconds)
}

fn entry(sequence: u64, writes: Vec<Write>) -> Entry {
    let (now, letters) = (at(sequence), Vec::new());
    Entry { sequence, term: 1, batch: 0, now, next: 0, letters, digest: None, writes }
}

fn row(node: NodeId, parent: Option<NodeId>, body: Body) -> NodeRow {
    let life = Life::new(State::Waiting);
    NodeRow { node, parent, root: 1, priority: 3, accepted: at(1), body, payload: None, life }
}

fn job() -> NodeRow {
    let tags = vec![("tenant".into(), "acme".into())];
    let (id, action) = (RunId(1), "mail".into());
    row(JOB, None, Body::Job(JobBody { id, action, key: None, tags, start_by: None, idempotency: None }))
}

fn run(node: NodeId, parent: Option<NodeId>) -> NodeRow {
    let (id, flow) = (parent.is_none().then_some(RunId(10)), Name::new("import"));
    let (key, tags, idempotency) = (None, Vec::new(), None);
    row(node, parent, Body::Run(RunBody { id, flow, version: 1, depth: 0, key, tags, idempotency }))
}

fn step(kind: StepKind) -> NodeRow {
    row(STEP, Some(RUN), Body::Step(StepBody { index: 0, kind, start_by: None }))
}

fn added(row: NodeRow) -> Write {
    Write::NodeAdded(Box::new(row))
}

fn granted(task: TaskId, number: u32) -> Write {
    let (worker, until, length) = ("w".into(), at(30), Span::seconds(30));
    Write::Granted { task, grant: GrantRow { epoch: EPOCH, worker, at: at(2), until, length }, number }
}

fn moved(task: TaskId, due: Option<Moment>, error: Option<&str>, seconds: u64) -> Write {
    let state = if due.is_some() { State::Scheduled } else { State::Waiting };
    let (tally, error) = (Tally::default(), error.map(str::to_owned));
    Write::Moved { task, state, due, tally, error, at: at(seconds) }
}

fn ended(task: TaskId, state: State, seconds: u64) -> Write {
    Write::Ended { task, state, output: None, error: None, at: at(seconds) }
}

/// What is derived from these writes, each an entry of its own.
fn derived(derivation: &mut Derivation, writes: Vec<Write>) -> Vec<Event> {
    let entries = writes.into_iter().zip(1..).map(|(write, sequence)| entry(sequence, vec![write]));
    entries.flat_map(|entry| derivation.events(&entry)).collect()
}

fn kinds(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.what.kind()).collect()
}

fn finished(state: State, count: u32) -> Happening {
    Happening::TaskFinished { state, error: None, count }
}

#[test]
fn a_job_is_a_run_and_a_task_in_one() {
    let task = TaskId::node(JOB);
    let life = vec![added(job()), granted(task, 1), ended(task, State::Succeeded, 5)];
    let events = derived(&mut Derivation::default(), life);
    let tags = vec![("tenant".into(), "acme".into())];
    let expected = [
        Happening::RunQueued { name: "mail".into(), priority: 3, tags, due: None },
        Happening::RunStarted,
        Happening::TaskGranted { worker: "w".into(), epoch: EPOCH, attempt: 1 },
        finished(State::Succeeded, 1),
        Happening::RunFinished { state: State::Succeeded, error: None },
    ];
    assert_eq!(events.iter().map(|event| event.what.clone()).collect::<Vec<_>>(), expected);
    assert!(events.iter().all(|event| event.run == Some(RunId(1)) && event.task == Some(task)));
    let positions: Vec<String> = events.iter().map(|event| event.position.to_string()).collect();
    assert_eq!(positions, ["1.1", "2.1", "2.2", "3.1", "3.2"]);
    assert_eq!(events[4].at, at(5));
}

#[test]
fn a_run_starts_when_it_enters_and_ends_once_with_what_runs_inside() {
    let inside = StepBody { index: 0, kind: StepKind::SubFlow, start_by: None };
    let mut skipped = row(NodeId(21), Some(INSIDE), Body::Step(inside));
    skipped.life = Life::new(State::Skipped);
    let entered = |node, state| Write::Entered { node, state, at: at(3) };
    let events = derived(
        &mut Derivation::default(),
        vec![
            added(run(RUN, None)),
            entered(RUN, State::Running),
            added(step(StepKind::SubFlow)),
            entered(STEP, State::Running),
            added(run(INSIDE, Some(STEP))),
            entered(INSIDE, State::Running),
            added(skipped),
            ended(TaskId::node(INSIDE), State::Succeeded, 6),
            ended(TaskId::node(STEP), State::Succeeded, 6),
            ended(TaskId::node(RUN), State::Succeeded, 6),
        ],
    );
    let ends = ["task.finished"; 4];
    assert_eq!(kinds(&events), [&["run.queued", "run.started"], &ends[..], &["run.finished"]].concat());
    assert!(events.iter().all(|event| event.run == Some(RunId(10))));
    assert_eq!(events[2].what, finished(State::Skipped, 1));
    let tasks: Vec<_> = events[2..].iter().filter_map(|event| event.task).collect();
    assert_eq!(tasks, [NodeId(21), INSIDE, STEP, RUN, RUN].map(TaskId::node));
}

#[test]
fn a_failed_try_is_retried_and_the_end_of_its_pause_is_no_event() {
    let task = TaskId::node(JOB);
    let mut derivation = Derivation::default();
    derived(&mut derivation, vec![added(job()), granted(task, 1)]);
    let writes =
        vec![moved(task, Some(at(9)), Some("boom"), 5), moved(task, None, None, 9), granted(task, 2)];
    let events = derived(&mut derivation, writes);
    assert_eq!(kinds(&events), ["task.retrying", "task.granted"], "the run has started before");
    assert_eq!(events[0].what, Happening::TaskRetrying { at: at(9), reason: Some("boom".to_owned()) });
}

#[test]
fn what_is_handed_back_is_told_apart_from_what_was_lost() {
    let (task, lease) = (TaskId::node(JOB), Lease { task: TaskId::node(JOB), epoch: EPOCH });
    let begun = || {
        let mut derivation = Derivation::default();
        derived(&mut derivation, vec![added(job()), granted(task, 1)]);
        derivation
    };
    let (worker, epoch) = (Some(Name::new("w")), EPOCH);
    let back = derived(&mut begun(), vec![moved(task, None, None, 29)]);
    assert_eq!(back[0].what, Happening::TaskReturned { worker: worker.clone(), epoch });
    let lost = derived(&mut begun(), vec![moved(task, None, None, 30)]);
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].what, Happening::LeaseExpired { worker, epoch });
    let renewed = Write::Renewed { leases: vec![lease], until: at(60) };
    let back = derived(&mut begun(), vec![renewed, moved(task, None, None, 30)]);
    assert_eq!(kinds(&back), ["task.returned"]);
    let lost_for_good = derived(&mut begun(), vec![ended(task, State::Failed, 30)]);
    assert_eq!(kinds(&lost_for_good), ["lease.expired", "task.finished", "run.finished"]);
}

#[test]
fn items_that_end_alike_are_one_event() {
    let mut derivation = Derivation::default();
    derived(&mut derivation, vec![added(run(RUN, None)), added(step(StepKind::Loop { count: 9 }))]);
    let (step, state) = (STEP, State::Cancelled);
    let item = TaskId::item(STEP, 0);
    let many = Write::ItemsEnded { step, from: 1, to: 9, state, at: at(4) };
    let events = derived(&mut derivation, vec![granted(item, 1), ended(item, State::Failed, 4), many]);
    assert_eq!(kinds(&events), ["task.granted", "task.finished", "task.finished"]);
    assert_eq!((events[1].task, events[2].task), (Some(item), Some(TaskId::item(STEP, 1))));
    assert_eq!(events[2].what, finished(state, 8));
    assert!(events.iter().all(|event| event.run == Some(RunId(10))));
}

#[test]
fn what_has_ended_inside_an_item_is_forgotten_with_its_end() {
    let mut derivation = Derivation::default();
    derived(&mut derivation, vec![added(run(RUN, None)), added(step(StepKind::Loop { count: 2 }))]);
    let before = format!("{derivation:?}");
    let Body::Run(inner) = run(INSIDE, Some(STEP)).body else { panic!("a run has the body of one") };
    let body = Body::ItemRun(ItemRunBody { index: 1, run: inner });
    let deep = StepBody { index: 0, kind: StepKind::Plain { key: None }, start_by: None };
    let item = TaskId::item(STEP, 1);
    let begins = vec![
        Write::ItemEntered { step: STEP, index: 1, at: at(2) },
        added(row(INSIDE, Some(STEP), body)),
        added(row(INSIDE.step(0), Some(INSIDE), Body::Step(deep))),
    ];
    assert_eq!(kinds(&derived(&mut derivation, begins)), Vec::<&str>::new(), "it is granted to nobody");
    let ends = [TaskId::node(INSIDE.step(0)), TaskId::node(INSIDE), item];
    let events = derived(&mut derivation, ends.map(|task| ended(task, State::Succeeded, 5)).to_vec());
    let told: Vec<_> = events.iter().map(|event| (event.run, event.task)).collect();
    assert_eq!(told, ends.map(|task| (Some(RunId(10)), Some(task))));
    assert_eq!(format!("{derivation:?}"), before);
}

#[test]
fn limits_and_workers_belong_to_no_run() {
    let key = LimitKey::Pool("gpu".into());
    let value = LimitValue::Units(4);
    let set = Override { value: value.clone(), by: "ada".into(), at: at(1), until: Some(at(9)) };
    let limit = |set, paused| Write::LimitSet(Box::new(LimitRow { key: key.clone(), set, paused }));
    let joined = |slots| {
        let slots = SlotCounts { process: slots, io: slots };
        let row = WorkerRow { worker: "w".into(), incarnation: 1, skills: Skills::plain(), slots };
        Write::WorkerJoined(Box::new(row))
    };
    let gone = Write::WorkerGone { worker: "w".into(), at: at(5) };
    let writes = vec![limit(Some(set), false), limit(None, true), joined(2), joined(0), gone];
    let events = derived(&mut Derivation::default(), writes);
    let expected = ["limit.changed", "limit.changed", "worker.joined", "worker.drained", "worker.lost"];
    assert_eq!(kinds(&events), expected);
    let (to, by, until) = (Some(value), Some(Name::new("ada")), Some(at(9)));
    let changed = Happening::LimitChanged { limit: key, to, by, until, paused: false };
    assert_eq!(events[0].what, changed);
    assert!(events.iter().all(|event| event.run.is_none() && event.task.is_none()));
}

#[test]
fn a_step_that_is_reused_is_told_as_such() {
    let mut derivation = Derivation::default();
    let kind = StepKind::Reused { of: NodeId(3), run: RunId(2) };
    let life = Life { ended: Some(at(1)), ..Life::new(State::Skipped) };
    let reused = NodeRow { life, ..step(kind) };
    let events = derived(&mut derivation, vec![added(run(RUN, None)), added(reused)]);
    assert_eq!(kinds(&events), ["run.queued", "task.reused"]);
    assert_eq!(events[1].what, Happening::TaskReused { state: State::Skipped, run: RunId(2) });
    assert_eq!((events[1].run, events[1].task), (Some(RunId(10)), Some(TaskId::node(STEP))));
}

#[test]
fn what_began_before_is_asked_for_and_what_is_over_is_forgotten() {
    let mut derivation = Derivation::default();
    let (item, lease) = (TaskId::item(STEP, 0), Lease { task: TaskId::item(STEP, 0), epoch: EPOCH });
    let renewed = Write::Renewed { leases: vec![lease], until: at(30) };
    let ends = [STEP, RUN].map(|node| ended(TaskId::node(node), State::Failed, 41));
    let late = row(
        NodeId(12),
        Some(RUN),
        Body::Step(StepBody { index: 1, kind: StepKind::Nothing, start_by: None }),
    );
    let writes =
        [vec![renewed, moved(item, None, None, 40), added(job()), added(late)], ends.into()].concat();
    let entry = entry(1, writes);
    assert_eq!(derivation.unknown(&entry), [RUN, STEP], "the job is new");
    let root = Found { node: RUN, id: RunId(10), content: None };
    derivation.learn(RUN, root);
    derivation.learn(STEP, root);
    let events = derivation.events(&entry);
    let expected = ["lease.expired", "run.queued", "task.finished", "task.finished", "run.finished"];
    assert_eq!(kinds(&events), expected);
    assert_eq!(events[0].what, Happening::LeaseExpired { worker: None, epoch: EPOCH });
    assert_eq!((events[0].run, events[4].run), (Some(RunId(10)), Some(RunId(10))));
    derived(&mut derivation, vec![ended(TaskId::node(JOB), State::Succeeded, 42)]);
    assert_eq!(format!("{derivation:?}"), format!("{:?}", Derivation::default()));
    let unknown = derived(&mut derivation, vec![ended(TaskId::node(STEP), State::Succeeded, 43)]);
    assert_eq!((kinds(&unknown), unknown[0].run), (vec!["task.finished"], None), "nobody knew");
}

#[test]
fn positions_are_read_as_they_are_written() {
    let position = Position { entry: 7, index: 2 };
    assert_eq!("7.2".parse(), Ok(position));
    assert!(Position::START < position && position < Position { entry: 8, index: 1 });
    for text in ["", "7", "7.", ".2", "7.2.1", "-1.2"] {
        assert_eq!(text.parse::<Position>(), Err(BadPosition(text.to_owned())));
    }
}

struct Nobody;

impl Evaluate for Nobody {
    fn evaluate(&self, _: &Asked, _: &mut dyn Reads) -> Result<Evaluation, StoreError> {
        Ok(Evaluation::Failed { error: "nobody evaluates".to_owned() })
    }

    fn prepare(&self, _: &Name, _: &Definition, _: &Payload) -> Result<Prepared, String> {
        Err("nobody prepares".to_owned())
    }
}

struct Bench {
    store: MemoryStore,
    engine: Engine,
}

impl Bench {
    fn new() -> Bench {
        let store = MemoryStore::new();
        let (owner, reader) = (Box::new(store.handle()), Box::new(store.handle()));
        let engine = Engine::start(Settings::new("engine"), owner, reader, Arc::new(Nobody));
        Bench { store, engine }
    }

    fn subscribe(&self, after: Option<Position>) -> Subscription {
        Subscription::new(&self.engine, Reader::from(Box::new(self.store.handle())), after)
    }

    async fn submit(&self, id: u128) {
        let what = Submission::Job { action: Name::new("mail"), key: None, order: Payload::null() };
        let (tags, priority, due, idempotency) = (Vec::new(), 0, None, None);
        let submit = Submit { id: RunId(id), what, tags, priority, due, idempotency };
        self.engine.insist(Command::Submit(submit)).await.expect("it is accepted");
    }

    async fn set_limit(&self, units: u32) {
        let value = Some(LimitValue::Units(units));
        let set = SetLimit { key: LimitKey::Runs, value, by: "ada".into(), until: None };
        self.engine.insist(Command::SetLimit(set)).await.expect("it is set");
    }
}

async fn next(subscription: &mut Subscription) -> Event {
    subscription.next().await.expect("something happens")
}

#[tokio::test]
async fn a_subscription_without_a_position_begins_with_what_happens_next() {
    let bench = Bench::new();
    bench.submit(1).await;
    let mut subscription = bench.subscribe(None);
    bench.submit(2).await;
    assert_eq!(next(&mut subscription).await.run, Some(RunId(2)));
    bench.engine.shut_down().await;
    assert!(matches!(subscription.next().await, Err(EventsError::Ended)));
}

#[tokio::test]
async fn a_subscription_goes_from_what_is_kept_to_what_is_live_without_gap_or_repetition() {
    let bench = Bench::new();
    for id in 1..=150 {
        bench.submit(id).await;
    }
    let mut subscription = bench.subscribe(Some(Position::START));
    let mut runs = vec![next(&mut subscription).await.run];
    for id in 151..=160 {
        bench.submit(id).await;
    }
    while runs.len() < 160 {
        runs.push(next(&mut subscription).await.run);
    }
    assert_eq!(runs, (1..=160).map(|id| Some(RunId(id))).collect::<Vec<_>>());

    let mut again = bench.subscribe(Some(Position { entry: 100, index: 1 }));
    assert_eq!(next(&mut again).await.run, Some(RunId(101)));
    let mut within = bench.subscribe(Some(Position { entry: 100, index: 0 }));
    assert_eq!(next(&mut within).await.position, Position { entry: 100, index: 1 });
}

#[tokio::test]
async fn what_is_not_kept_is_missed_and_what_follows_is_told() {
    let bench = Bench::new();
    for units in 1..=2_100 {
        bench.set_limit(units).await;
    }
    let mut old = bench.subscribe(Some(Position { entry: 3, index: 1 }));
    assert!(matches!(old.next().await, Err(EventsError::Missed { from: 2, to: 2_100 })));
    let mut unheard_of = bench.subscribe(Some(Position { entry: 9_999, index: 1 }));
    assert!(matches!(unheard_of.next().await, Err(EventsError::Missed { from: 9_998, to: 2_100 })));
    bench.submit(1).await;
    for subscription in [&mut old, &mut unheard_of] {
        let event = next(subscription).await;
        assert_eq!((event.position.entry, event.run), (2_101, Some(RunId(1))));
    }
}

#[tokio::test]
async fn who_is_too_slow_reads_on_from_the_store_or_is_told_what_it_missed() {
    let bench = Bench::new();
    bench.submit(1).await;
    let mut subscription = bench.subscribe(Some(Position::START));
    assert_eq!(next(&mut subscription).await.run, Some(RunId(1)));
    for units in 1..=5_000 {
        bench.set_limit(units).await;
    }
    let missed = loop {
        match subscription.next().await {
            Ok(event) => assert_eq!(event.what.kind(), "limit.changed"),
            Err(missed) => break missed,
        }
    };
    assert!(matches!(missed, EventsError::Missed { to: 5_001, .. }), "{missed}");
    bench.submit(2).await;
    assert_eq!(next(&mut subscription).await.run, Some(RunId(2)));
}
