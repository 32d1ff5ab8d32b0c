//! What the shell does around the server: what it looks up before it takes something in, to whom it hands attempts,
//! and how it has questions answered.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use tidegate_core::admission::{Skills, SlotCounts};
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::{
    Answer, AuditRow, Command, Declare, DeclaredRow, Evaluation, Finish, Heartbeat, Join, Lease, NodeRow,
    Outcome, Payload, Rendered, Retry, Submission, Submit, TokenRow, Write,
};
use tidegate_core::state::State;
use tidegate_core::time::Moment;
use tidegate_core::{Asked, RESIDENT};
use tidegate_engine::{Definition, Delivery, Engine, EngineError, Evaluate, Prepared, Settings};
use tidegate_flow::Document;
use tidegate_store::{
    Before, Ended, Entry, Found, InState, Loaded, MemoryStore, Reads, Sought, StoreError, Wanted,
};

fn worker() -> Name {
    Name::new("worker")
}

fn job(id: u128, order: &str) -> Command {
    let what = Submission::Job { action: Name::new("mail"), key: None, order: Payload::new(order) };
    Command::Submit(Submit { id: RunId(id), what, tags: vec![], priority: 0, due: None, idempotency: None })
}

fn join(incarnation: u64) -> Command {
    let slots = SlotCounts { process: 1, io: 1 };
    let skills = Skills { functions: vec![Name::new("mail")], ..Skills::plain() };
    Command::Join(Join { worker: worker(), incarnation, skills, slots })
}

fn finish(lease: Lease, outcome: Outcome) -> Command {
    Command::Finish(Finish { worker: worker(), lease, outcome, offer: None })
}

fn node_of(answer: &Answer) -> NodeId {
    let Answer::Accepted { node, .. } = answer else { panic!("it was accepted: {answer:?}") };
    *node
}

fn lease_of(delivery: Option<Delivery>) -> Lease {
    let Some(Delivery::Attempt { attempt, .. }) = delivery else { panic!("an attempt: {delivery:?}") };
    attempt.lease
}

/// Answers as its list says, and then always as it says last.
struct Answers(AtomicU32, Vec<Result<Evaluation, StoreError>>);

impl Answers {
    fn new(answers: Vec<Result<Evaluation, StoreError>>) -> Arc<Answers> {
        Arc::new(Answers(AtomicU32::new(0), answers))
    }
}

impl Evaluate for Answers {
    fn evaluate(&self, _: &Asked, _: &mut dyn Reads) -> Result<Evaluation, StoreError> {
        let asked = self.0.fetch_add(1, Ordering::SeqCst) as usize;
        self.1[asked.min(self.1.len() - 1)].clone()
    }

    fn prepare(&self, name: &Name, _: &Definition, input: &Payload) -> Result<Prepared, String> {
        Ok(Prepared::job(name, None, input.clone()))
    }
}

fn wrong() -> Evaluation {
    Evaluation::Failed { error: "there is no such thing".to_owned() }
}

fn engine(store: &MemoryStore, reader: impl Reads + 'static) -> Engine {
    let evaluator = Answers::new(vec![Ok(wrong())]);
    Engine::start(Settings::new("engine"), Box::new(store.handle()), Box::new(reader), evaluator)
}

#[tokio::test]
async fn a_submission_that_has_ended_is_not_accepted_a_second_time() {
    let store = MemoryStore::new();
    let first = engine(&store, store.handle());
    let mut deliveries = first.attach(worker(), 1);
    first.insist(join(1)).await.unwrap();
    let node = node_of(&first.send(job(7, "1")).await.unwrap());
    let lease = lease_of(deliveries.recv().await);
    first.send(finish(lease, Outcome::Succeeded(Payload::null()))).await.unwrap();
    first.shut_down().await;
    // What has ended is not loaded, so only the store knows of it.
    let second = engine(&store, store.handle());
    let again = second.insist(job(7, "1")).await.unwrap();
    assert_eq!(again, Answer::Accepted { node, again: true });
    assert_eq!(second.read(|core, _| core.roots()).await.unwrap(), [], "nothing is open");
}

#[tokio::test]
async fn an_attempt_goes_to_the_start_of_the_worker_that_joined() {
    let store = MemoryStore::new();
    let engine = engine(&store, store.handle());
    let mut before = engine.attach(worker(), 1);
    engine.insist(join(2)).await.unwrap();
    engine.send(job(1, "1")).await.unwrap();
    // What was to be delivered has been, once something that came later is answered.
    engine.read(|_, _| ()).await.unwrap();
    assert!(before.try_recv().is_err(), "an earlier start must not get it");
    let mut after = engine.attach(worker(), 2);
    let lease = lease_of(after.recv().await);
    // It was lost on its way: what is missing from the worker's list is delivered again.
    let heartbeat = Heartbeat { worker: worker(), incarnation: 2, has: vec![] };
    for _ in 0..3 {
        engine.send(Command::Heartbeat(heartbeat.clone())).await.unwrap();
    }
    assert_eq!(lease_of(after.recv().await), lease);
}

/// Lets an order be read only when it is told to.
struct Gate {
    store: MemoryStore,
    asked: mpsc::Sender<()>,
    open: Arc<Mutex<()>>,
}

impl Reads for Gate {
    fn load(&mut self) -> Result<Loaded, StoreError> {
        self.store.load()
    }

    fn find(&mut self, sought: &[Sought]) -> Result<Vec<Option<Found>>, StoreError> {
        self.store.find(sought)
    }

    fn payload(&mut self, task: TaskId) -> Result<Option<Payload>, StoreError> {
        self.asked.send(()).unwrap();
        drop(self.open.lock().unwrap());
        self.store.payload(task)
    }

    fn ended(&mut self, task: TaskId) -> Result<Option<Ended>, StoreError> {
        self.store.ended(task)
    }

    fn ended_items(&mut self, step: NodeId, from: u32, to: u32) -> Result<Vec<(u32, Ended)>, StoreError> {
        self.store.ended_items(step, from, to)
    }

    fn entries(&mut self, after: u64, most: usize) -> Result<Option<Vec<Arc<Entry>>>, StoreError> {
        self.store.entries(after, most)
    }

    fn submitted(&mut self, wanted: &Wanted, most: u32) -> Result<Vec<NodeRow>, StoreError> {
        self.store.submitted(wanted, most)
    }

    fn tree(&mut self, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
        self.store.tree(root)
    }

    fn outline(&mut self, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
        self.store.outline(root)
    }

    fn item_states(&mut self, step: NodeId) -> Result<Vec<InState>, StoreError> {
        self.store.item_states(step)
    }

    fn declared(&mut self) -> Result<Vec<DeclaredRow>, StoreError> {
        self.store.declared()
    }

    fn tokens(&mut self) -> Result<Vec<TokenRow>, StoreError> {
        self.store.tokens()
    }

    fn audit(&mut self, before: Option<u64>, most: u32) -> Result<Vec<AuditRow>, StoreError> {
        self.store.audit(before, most)
    }

    fn last(&mut self) -> Result<u64, StoreError> {
        self.store.last()
    }

    fn reach(&mut self, sequence: u64, patience: Duration) -> Result<bool, StoreError> {
        self.store.reach(sequence, patience)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_ended_while_its_order_was_read_is_not_delivered() {
    let store = MemoryStore::new();
    let open = Arc::new(Mutex::new(()));
    let (asked, is_asked) = mpsc::channel();
    let engine = engine(&store, Gate { store: store.handle(), asked, open: open.clone() });
    let mut deliveries = engine.attach(worker(), 1);
    let mut entries = engine.subscribe();
    let closed = open.lock().unwrap();
    let large = format!("\"{}\"", "x".repeat(RESIDENT));
    tokio::task::block_in_place(|| {
        let handle = tokio::runtime::Handle::current();
        handle.block_on(async {
            engine.insist(join(1)).await.unwrap();
            engine.send(job(1, &large)).await.unwrap();
        });
        is_asked.recv().unwrap();
        let lease = loop {
            let entry = handle.block_on(entries.recv()).unwrap();
            let granted = entry.writes.iter().find_map(|write| match write {
                Write::Granted { task, grant, .. } => Some(Lease { task: *task, epoch: grant.epoch }),
                _ => None,
            });
            if let Some(lease) = granted {
                break lease;
            }
        };
        let ended = Outcome::Succeeded(Payload::null());
        handle.block_on(engine.send(finish(lease, ended))).unwrap();
    });
    drop(closed);
    // The second order is read after the first, so its delivery would follow that of the first.
    engine.send(job(2, &large)).await.unwrap();
    let second = lease_of(deliveries.recv().await);
    let root = engine.read(move |core, _| core.root_id(second.task.node)).await.unwrap();
    assert_eq!(root, Some(RunId(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_pruned_while_a_retry_may_need_it() {
    let store = MemoryStore::new();
    let open = Arc::new(Mutex::new(()));
    let (asked, is_asked) = mpsc::channel();
    let engine = engine(&store, Gate { store: store.handle(), asked, open: open.clone() });
    let mut deliveries = engine.attach(worker(), 1);
    engine.insist(join(1)).await.unwrap();
    engine.send(job(1, "1")).await.unwrap();
    let lease = lease_of(deliveries.recv().await);
    engine.send(finish(lease, Outcome::failed("boom"))).await.unwrap();
    let retry = Retry { id: RunId(2), of: RunId(1), from_start: false, queue: None, past: None };
    let closed = open.lock().unwrap();
    let retries = engine.clone();
    let retrying = tokio::spawn(async move { retries.retry(retry).await });
    tokio::task::block_in_place(|| {
        is_asked.recv().unwrap();
        let pruned = tokio::runtime::Handle::current().block_on(engine.prune(Before::all(Moment(i64::MAX))));
        assert!(matches!(pruned, Err(EngineError::Unavailable)), "{pruned:?}");
    });
    drop(closed);
    let node = node_of(&retrying.await.unwrap().unwrap());
    assert_eq!(lease_of(deliveries.recv().await).task, TaskId::node(node));
    assert_eq!(
        engine.prune(Before::all(Moment(i64::MAX))).await.unwrap().roots,
        1,
        "nothing of it is reused"
    );
}

async fn declare(engine: &Engine, text: &str) {
    let Document { flows, actions, limits, files } = tidegate_flow::parse("a.yaml", text).unwrap();
    engine.insist(Command::Declare(Declare { flows, actions, limits, files })).await.unwrap();
}

fn run_of_a() -> Command {
    let what = Submission::Run { flow: Name::new("a"), key: None, inputs: Payload::new("{}") };
    Command::Submit(Submit { id: RunId(1), what, tags: vec![], priority: 0, due: None, idempotency: None })
}

/// How a run of a flow ends whose only template is answered like this, and how often it was asked for.
async fn run_with(answers: Vec<Result<Evaluation, StoreError>>) -> (Ended, u32) {
    let mut store = MemoryStore::new();
    let evaluator = Answers::new(answers);
    let engine = Engine::start(
        Settings::new("engine"),
        Box::new(store.handle()),
        Box::new(store.handle()),
        evaluator.clone(),
    );
    let mut entries = engine.subscribe();
    declare(&engine, "flow: a\nsteps: { b: { run: [echo] } }\n").await;
    let root = TaskId::node(node_of(&engine.send(run_of_a()).await.unwrap()));
    let is_end = |write: &Write| matches!(write, Write::Ended { task, .. } if *task == root);
    while !entries.recv().await.unwrap().writes.iter().any(is_end) {}
    (store.ended(root).unwrap().unwrap(), evaluator.0.load(Ordering::SeqCst))
}

/// Answers the question about the first step last.
struct Backwards(AtomicU32);

const STEPS: u32 = 4;

impl Evaluate for Backwards {
    fn evaluate(&self, asked: &Asked, _: &mut dyn Reads) -> Result<Evaluation, StoreError> {
        let later = STEPS - 1 - asked.step.expect("it is about a step");
        while self.0.load(Ordering::SeqCst) < later {
            std::thread::yield_now();
        }
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Evaluation::Order(Rendered { order: Payload::null(), key: None }))
    }

    fn prepare(&self, name: &Name, _: &Definition, input: &Payload) -> Result<Prepared, String> {
        Ok(Prepared::job(name, None, input.clone()))
    }
}

#[tokio::test]
async fn steps_that_are_ready_together_start_in_their_order_whichever_is_rendered_first() {
    let store = MemoryStore::new();
    let handles = (0..STEPS).map(|_| Box::new(store.handle()) as Box<dyn Reads>).collect::<Vec<_>>();
    let evaluator = Arc::new(Backwards(AtomicU32::new(0)));
    let engine = Engine::start(Settings::new("engine"), Box::new(store.handle()), handles, evaluator);
    let mut deliveries = engine.attach(worker(), 1);
    engine.insist(join(1)).await.unwrap();
    declare(&engine, "flow: a\nsteps: { b: &s { run: [echo] }, c: *s, d: *s, e: *s }\n").await;
    let run = node_of(&engine.send(run_of_a()).await.unwrap());
    for index in 0..STEPS {
        let lease = lease_of(deliveries.recv().await);
        assert_eq!(lease.task, TaskId::node(run.step(index as usize)));
        engine.send(finish(lease, Outcome::Succeeded(Payload::null()))).await.unwrap();
    }
}

#[tokio::test]
async fn a_store_that_cannot_be_read_for_a_moment_fails_no_step() {
    let busy = || Err(StoreError::Unknown("busy".to_owned()));
    let full = Err(StoreError::Unusable("disk I/O error".to_owned()));
    let (ended, asked) = run_with(vec![busy(), full, busy(), Ok(wrong())]).await;
    assert_eq!((ended.state, asked), (State::Failed, 4));
    assert!(ended.error.unwrap().contains("there is no such thing"), "what the template said in the end");
}

#[tokio::test]
async fn a_store_that_never_can_be_read_fails_the_step_at_once() {
    let (ended, asked) = run_with(vec![Err(StoreError::Broken("malformed".to_owned()))]).await;
    assert_eq!((ended.state, asked), (State::Failed, 1));
    assert!(ended.error.unwrap().contains("malformed"));
}
