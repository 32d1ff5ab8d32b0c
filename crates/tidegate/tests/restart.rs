//! What survives the end of a process, and how a worker goes.

mod support;

use std::sync::Arc;
use support::{Gate, on_every_store, within};
use tidegate::{Ctx, Error, State, StoreError, Tidegate};
use tokio::sync::{mpsc, oneshot};

fn gated(tide: &Tidegate) -> (&'static Gate, mpsc::UnboundedReceiver<String>) {
    let (gate, arrivals) = Gate::new();
    tide.action("wait", move |ctx: Ctx, ()| async move {
        gate.pass(ctx.attempt().to_string()).await;
        Ok::<_, String>(ctx.attempt())
    });
    (gate, arrivals)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_goes_hands_back_what_it_has_and_another_goes_on_with_it() {
    on_every_store(async |tide| {
        let (gate, mut arrivals) = gated(&tide);
        let (tell, told) = oneshot::channel::<()>();
        let working = tokio::spawn(tide.work(1).run_until(told));
        let run = tide.submit("wait", &()).await.unwrap();
        assert_eq!(arrivals.recv().await.unwrap(), "1");
        tell.send(()).unwrap();
        working.await.unwrap().unwrap();
        let why = run.explain().await.unwrap().unwrap().to_string();
        assert!(why.contains("no connected worker"), "it was handed back: {why}");
        gate.open(1);
        let mut working = tide.work(1).start().await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 2);
        working.stop().await.unwrap();
        working.stop().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_drains_ends_what_it_has() {
    on_every_store(async |tide| {
        let (gate, mut arrivals) = gated(&tide);
        let mut working = tide.work(1).start().await.unwrap();
        let run = tide.submit("wait", &()).await.unwrap();
        arrivals.recv().await.unwrap();
        let (drained, ()) = tokio::join!(working.drain(), async { gate.open(1) });
        drained.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_goes_on_with_what_was_open_and_remembers_what_has_ended() {
    let directory = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", directory.path().join("test.db").display());
    let tide = Tidegate::open(&address).await.unwrap();
    let (gate, mut arrivals) = gated(&tide);
    let mut working = tide.work(1).start().await.unwrap();
    gate.open(1);
    let ended = tide.submit("wait", &()).key("first").await.unwrap();
    assert_eq!(within(ended.result::<u32>()).await.unwrap(), 1);
    let open = tide.submit("wait", &()).await.unwrap();
    for _ in [ended.id(), open.id()] {
        within(arrivals.recv()).await.unwrap();
    }
    let taken = Tidegate::open(&address).await.err().unwrap();
    assert!(matches!(taken, Error::Store(StoreError::InUse(_))), "{taken}");
    let (ended, open) = (ended.id(), open.id());
    within(working.stop()).await.unwrap();
    drop(working);
    within(tide.close()).await;

    let tide = Tidegate::open(&address).await.unwrap();
    let (gate, _arrivals) = gated(&tide);
    gate.open(1);
    let mut working = tide.work(1).start().await.unwrap();
    let ended_run = tide.run(ended).await.unwrap();
    assert_eq!(within(ended_run.result::<u32>()).await.unwrap(), 1);
    assert_eq!(tide.submit("wait", &()).key("first").await.unwrap().id(), ended, "it was done before");
    let open = tide.run(open).await.unwrap();
    assert_eq!(within(open.result::<u32>()).await.unwrap(), 2, "its first try was handed back");
    within(working.stop()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_that_change_while_somebody_works_count_at_once() {
    on_every_store(async |tide| {
        let (gate, mut arrivals) = Gate::new();
        let action = |concurrency| {
            tide.action("wait", move |_, ()| async move {
                gate.pass(String::new()).await;
                Ok::<_, String>(())
            })
            .concurrency(concurrency);
        };
        action(1);
        let (tell, told) = oneshot::channel::<()>();
        let working = tokio::spawn(tide.work(5).run_until(told));
        let first = tide.submit("wait", &()).await.unwrap();
        let second = tide.submit("wait", &()).await.unwrap();
        arrivals.recv().await.unwrap();
        action(2);
        arrivals.recv().await.unwrap();
        gate.open(2);
        first.result::<()>().await.unwrap();
        second.result::<()>().await.unwrap();
        tell.send(()).unwrap();
        working.await.unwrap().unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_hears_that_it_is_to_stop() {
    on_every_store(async |tide| {
        let (tell, mut told) = mpsc::unbounded_channel();
        let tell = Arc::new(tell);
        tide.action("heed", move |ctx: Ctx, ()| {
            let tell = tell.clone();
            async move {
                assert!(!ctx.is_cancelled());
                tell.send("listens").unwrap();
                ctx.cancelled().await;
                tell.send("put away").unwrap();
                Err::<(), _>("stopped")
            }
        });
        let _working = tide.work(1).start().await.unwrap();
        let run = tide.submit("heed", &()).await.unwrap();
        assert_eq!(told.recv().await.unwrap(), "listens");
        run.cancel().await.unwrap();
        assert_eq!(told.recv().await.unwrap(), "put away");
        assert_eq!(run.wait().await.unwrap().state(), State::Cancelled);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whichever_thread_drops_the_last_handle_the_store_is_free_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", directory.path().join("test.db").display());
    let tide = Tidegate::open(&address).await.unwrap();
    let engine = tide.engine().clone();
    std::thread::spawn(move || drop(tide)).join().unwrap();
    within(engine.ended()).await;
    within(Tidegate::open(&address)).await.unwrap();
}

#[tokio::test]
async fn nobody_works_for_an_engine_that_has_ended() {
    let tide = Tidegate::open("memory:").await.unwrap();
    within(tide.clone().close()).await;
    assert!(matches!(within(tide.work(1).start()).await.err(), Some(Error::Closed)));
}

#[tokio::test]
async fn a_store_has_one_address_and_one_owner() {
    let directory = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", directory.path().join("state.db").display());
    let tide = Tidegate::open(&address).await.unwrap();
    let twice = Tidegate::open(&address).await.err().unwrap().to_string();
    assert_eq!(twice, "this store is in use (by this very process)");
    within(tide.close()).await;
    assert!(matches!(Tidegate::open("sqlite::memory:").await.err(), Some(Error::Address(_))));
}
