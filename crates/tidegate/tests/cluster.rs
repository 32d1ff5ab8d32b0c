//! Several processes, each with its engine, over one PostgreSQL: here they are handles in one process.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use support::{Gate, database, drop_database, within};
use tidegate::{Error, Event, Events, Happening, Position, RunId, State, Tidegate};
use tidegate_store::{PostgresStore, Reads};
use tokio_postgres::NoTls;

async fn open(url: &str, name: &str) -> Tidegate {
    let tide = Tidegate::builder(url).name(name).open().await.unwrap();
    tide.action("double", |_, number: i64| async move { Ok::<_, String>(2 * number) });
    tide
}

#[tokio::test]
async fn any_process_submits_works_and_waits() {
    let database = database().await;
    let (first, second) = (open(&database.url, "first").await, open(&database.url, "second").await);
    let mut working = second.work(4).start().await.unwrap();
    for tide in [&first, &second] {
        let run = within(async { tide.submit("double", &21).await.unwrap() }).await;
        assert_eq!(within(run.result::<i64>()).await.unwrap(), 42);
        for other in [&first, &second] {
            let same = within(other.run(run.id())).await.unwrap();
            assert_eq!(within(same.wait()).await.unwrap().state(), State::Succeeded);
        }
    }
    let once = || second.submit("double", &1).key("once");
    let (run, again) = (once().await.unwrap(), once().await.unwrap());
    assert_eq!(run.id(), again.id());
    let waits = second.submit("unheard-of", &()).await.unwrap();
    let named = within(second.explain(&waits.id().to_string())).await.unwrap().unwrap();
    assert_eq!(named.name, within(first.explain(&waits.id().to_string())).await.unwrap().unwrap().name);
    within(working.stop()).await.unwrap();
    within(second.close()).await;
    within(first.close()).await;
    drop_database(database).await;
}

#[tokio::test]
async fn when_the_one_that_leads_goes_another_goes_on_with_everything() {
    let database = database().await;
    let (first, second) = (open(&database.url, "first").await, open(&database.url, "second").await);
    let (gate, mut arrivals) = Gate::new();
    second
        .action("slow", move |_, name: String| async move {
            gate.pass(name.clone()).await;
            Ok::<_, String>(name)
        })
        .concurrency(1);
    let mut working = second.work(4).start().await.unwrap();
    let runs = [second.submit("slow", &"a").await.unwrap(), second.submit("slow", &"b").await.unwrap()];
    assert_eq!(within(arrivals.recv()).await.as_deref(), Some("a"));
    within(first.close()).await;
    gate.open(2);
    for (run, name) in runs.iter().zip(["a", "b"]) {
        assert_eq!(within(run.result::<String>()).await.unwrap(), name);
    }
    assert_eq!(gate.most(), 1, "the limit held through the change");
    within(working.stop()).await.unwrap();
    within(second.close()).await;
    drop_database(database).await;
}

/// Everything that is told up to the end of a run.
async fn told(events: &mut Events, last: RunId) -> Vec<Event> {
    let mut told = Vec::new();
    loop {
        told.push(within(events.next()).await.unwrap());
        let event = &told[told.len() - 1];
        if event.run == Some(last) && matches!(event.what, Happening::RunFinished { .. }) {
            return told;
        }
    }
}

#[tokio::test]
async fn what_happens_is_told_live_by_every_process_through_a_change_of_who_leads() {
    let database = database().await;
    let (first, second) = (open(&database.url, "first").await, open(&database.url, "second").await);
    let third = open(&database.url, "third").await;
    let before = third.submit("double", &0).await.unwrap();
    let mut from_now_on = third.events();
    let mut from_the_start = third.events().after(Position::START);
    let mut working = third.work(4).start().await.unwrap();
    let one = first.submit("double", &1).await.unwrap();
    let kinds = |told: &[Event], run: RunId| -> Vec<&str> {
        told.iter().filter(|event| event.run == Some(run)).map(|event| event.what.kind()).collect()
    };
    let whole = ["run.queued", "run.started", "task.granted", "task.finished", "run.finished"];
    within(before.wait()).await.unwrap();
    let mut live = told(&mut from_now_on, one.id()).await;
    assert_eq!(kinds(&live, one.id()), whole);
    let mut all = told(&mut from_the_start, one.id()).await;

    within(first.close()).await;
    let two = within(async { second.submit("double", &2).await.unwrap() }).await;
    within(two.wait()).await.unwrap();
    within(second.close()).await;
    let three = within(async { third.submit("double", &3).await.unwrap() }).await;
    live.extend(told(&mut from_now_on, three.id()).await);
    all.extend(told(&mut from_the_start, three.id()).await);
    assert_eq!(kinds(&live, before.id()), whole[1..], "it was queued before");
    for run in [&one, &two, &three] {
        assert_eq!(kinds(&live, run.id()), whole);
    }
    let again = told(&mut third.events().after(Position::START), three.id()).await;
    assert_eq!(all, again, "nothing is missing and nothing comes twice");
    assert_eq!(live, again[again.len() - live.len()..]);
    within(working.stop()).await.unwrap();
    within(third.close()).await;
    drop_database(database).await;
}

#[tokio::test]
async fn what_is_submitted_in_a_transaction_is_there_if_the_transaction_is() {
    let database = database().await;
    let tide = open(&database.url, "first").await;
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    tide.action("count", move |_, by: u32| {
        let counted = counted.clone();
        async move { Ok::<_, String>(counted.fetch_add(by, Ordering::SeqCst)) }
    });
    let mut working = tide.work(4).start().await.unwrap();
    let (mut client, connection) = tokio_postgres::connect(&database.direct_url, NoTls).await.unwrap();
    tokio::spawn(connection);

    let transaction = client.transaction().await.unwrap();
    let lost = tide.submit("count", &100).in_transaction(&transaction).await.unwrap();
    transaction.rollback().await.unwrap();
    let transaction = client.transaction().await.unwrap();
    let kept =
        tide.submit("count", &1).tag("team", "x").priority(3).in_transaction(&transaction).await.unwrap();
    let wrong = tide.submit("count", &1).priority(120).in_transaction(&transaction).await;
    assert!(matches!(wrong, Err(Error::Priority(120))));
    tide.submit("count", &1_000).delay(Duration::MAX).in_transaction(&transaction).await.unwrap();
    let again = tide.submit("count", &1).key("k").in_transaction(&transaction).await.unwrap();
    let twice = tide.submit("count", &1).key("k").in_transaction(&transaction).await.unwrap();
    assert!(tide.run(kept).await.is_err(), "nothing is visible before the commit");
    transaction.commit().await.unwrap();

    let kept = within(accepted(&tide, kept)).await;
    assert_eq!(within(kept.wait()).await.unwrap().state(), State::Succeeded);
    within(within(accepted(&tide, again)).await.wait()).await.unwrap();
    assert!(tide.run(twice).await.is_err(), "the key was used before");
    assert!(tide.run(lost).await.is_err());
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    within(working.stop()).await.unwrap();
    within(tide.close()).await;
    drop_database(database).await;
}

/// Letters are taken in soon, and nobody is told when.
async fn accepted(tide: &Tidegate, id: RunId) -> tidegate::Run {
    loop {
        match tide.run(id).await {
            Ok(run) => return run,
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

#[tokio::test]
async fn an_engine_that_loads_something_else_than_was_written_ends() {
    let database = database().await;
    let open = || Tidegate::builder(&database.url).keep_digests().open();
    for turn in 0..2 {
        let tide = open().await.unwrap();
        tide.submit("unheard-of", &turn).await.unwrap();
        within(tide.close()).await;
    }
    let tampered = database.clone();
    let tamper = move || {
        // The tables have to hold everything first, or the journal would be asked.
        PostgresStore::open(&tampered.url).unwrap().load().unwrap();
        tampered.admin().run("update tidegate.position set digest = digest + 1");
    };
    tokio::task::spawn_blocking(tamper).await.unwrap();
    assert!(matches!(within(open()).await, Err(Error::Closed)));
    drop_database(database).await;
}
