//! A flood of submissions, from whichever server: workers of a server that follows are heard all the same.

mod support;

use std::sync::Arc;
use std::time::Duration;
use support::disk::{Disk, Gate};
use support::{attempt, join, server, submit, worker};
use tidegate_core::protocol::{Answer, Command, Heartbeat, Lease, Submit};
use tidegate_engine::{Engine, EngineError};
use tidegate_store::MemoryStore;
use tokio::task::JoinSet;

/// Long enough for a crowded machine; a test that passes never waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// More than are applied and wait to be applied together, and then more callers than may wait for that.
const MANY: u128 = 16_000;
const AT_ONCE: u128 = 1_000;
const ONE_BY_ONE: u128 = 600;

/// A leader over a disk that takes commits when the test says so, a follower, and an attempt of the follower's worker.
struct Scene {
    leads: Engine,
    follows: Engine,
    gate: Arc<Gate>,
    lease: Lease,
}

impl Scene {
    async fn new() -> Scene {
        let store = MemoryStore::new();
        let disk = Disk::over(store.handle());
        let gate = disk.gate.clone();
        let leads = server("leads", disk, &store).await;
        leads.insist(Command::Wake).await.unwrap();
        let follows = server("follows", store.handle(), &store).await;
        let mut deliveries = follows.attach(worker(), 1);
        follows.insist(join(1)).await.unwrap();
        follows.insist(Command::Submit(submit(0))).await.unwrap();
        let lease = attempt(&mut deliveries).await;
        Scene { leads, follows, gate, lease }
    }

    async fn renews(&self) {
        let heartbeat = Heartbeat { worker: worker(), incarnation: 1, has: vec![self.lease] };
        let answer = self.follows.send(Command::Heartbeat(heartbeat)).await.unwrap();
        let Answer::Renewal(renewal) = answer else { panic!("{answer:?}") };
        assert_eq!(renewal.renewed, [self.lease]);
    }
}

type Flood = JoinSet<Result<Vec<Answer>, EngineError>>;

fn flood(engine: &Engine) -> Flood {
    let mut errands: Vec<Vec<Submit>> = Vec::new();
    let mut ids = 1..=MANY + ONE_BY_ONE;
    errands.extend((0..MANY / AT_ONCE).map(|_| ids.by_ref().take(AT_ONCE as usize).map(submit).collect()));
    errands.extend(ids.map(|id| vec![submit(id)]));
    let send = |errand| {
        let engine = engine.clone();
        async move { engine.submit_new(errand).await }
    };
    errands.into_iter().map(send).collect()
}

async fn a_worker_renews_while(flood: impl FnOnce(&Scene) -> Flood) {
    let scene = Scene::new().await;
    scene.gate.allow(0);
    let mut flood = flood(&scene);
    let own = scene.follows.clone();
    let submission = tokio::spawn(async move { own.submit_new(vec![submit(1 << 64)]).await });
    let heard = async {
        // Nothing is committed, and the leader takes in what it can of the flood; what asks for no commit is answered.
        for _ in 0..200 {
            scene.follows.now().await.unwrap();
        }
        let released = async {
            // Said after the heartbeat over the same connection: so the leader has heard both.
            scene.follows.now().await.unwrap();
            // What is under way, what was applied meanwhile, and what comes next: that is the worker.
            scene.gate.allow(3);
        };
        tokio::join!(scene.renews(), released);
    };
    tokio::time::timeout(PATIENCE, heard).await.expect("the worker is heard");
    let count = |answers: Result<Result<Vec<Answer>, EngineError>, _>| answers.unwrap().unwrap().len();
    let mut answered: usize = std::iter::from_fn(|| flood.try_join_next()).map(count).sum();
    assert!(answered < (MANY / 2) as usize, "the flood is not over");

    scene.gate.open();
    while let Some(answers) = tokio::time::timeout(PATIENCE, flood.join_next()).await.expect("they end") {
        answered += count(answers);
    }
    assert_eq!(answered, (MANY + ONE_BY_ONE) as usize, "everybody is answered");
    assert_eq!(submission.await.unwrap().unwrap().len(), 1);
}

#[tokio::test]
async fn a_worker_renews_while_its_server_submits_without_end() {
    a_worker_renews_while(|scene| flood(&scene.follows)).await;
}

#[tokio::test]
async fn a_worker_renews_while_the_leader_has_more_to_do_than_it_can() {
    a_worker_renews_while(|scene| flood(&scene.leads)).await;
}
