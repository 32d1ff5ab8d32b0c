//! Several processes, each with its engine, over one PostgreSQL: here they are handles in one process.

mod support;

use support::{Gate, Route, database, database_by, drop_database, within};
use tidegate::{Error, Event, Events, Happening, Position, Refusal, RunId, State, Tidegate};
use tidegate_store::{PostgresStore, Reads};

async fn open(url: &str, name: &str) -> Tidegate {
    let tide = Tidegate::builder(url).name(name).open().await.unwrap();
    tide.action("double", |_, number: i64| async move { Ok::<_, String>(2 * number) });
    tide
}

#[tokio::test]
async fn any_process_submits_works_and_waits() {
    submits_works_and_waits(Route::Direct).await;
}

#[tokio::test]
async fn any_process_submits_works_and_waits_behind_pgbouncer() {
    submits_works_and_waits(Route::Pooled).await;
}

async fn submits_works_and_waits(route: Route) {
    let database = database_by(route).await;
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
async fn who_does_not_get_through_to_the_one_that_leads_is_told_so() {
    let database = database().await;
    // It listens elsewhere than it says.
    let first = Tidegate::builder(&database.url).name("first").host("127.0.0.2").open().await.unwrap();
    let second = within(open(&database.url, "second")).await;
    let error = within(async { second.submit("double", &1).await }).await.map(drop).unwrap_err();
    let told = "another process leads, and it cannot be reached at 127.0.0.2:";
    assert!(error.to_string().starts_with(told) && error.may_pass(), "{error}");
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
async fn processes_of_one_name_do_not_take_the_lead_from_each_other() {
    let database = database().await;
    let (first, second) = (open(&database.url, "same").await, open(&database.url, "same").await);
    let displaced = tokio::spawn(first.work(1).run_until(std::future::pending::<()>()));
    for turn in 0..50 {
        let run = within(async { second.submit("double", &turn).await.unwrap() }).await;
        assert_eq!(within(run.result::<i64>()).await.unwrap(), 2 * turn);
    }
    let leads = "select term || ' ' || (select count(*) from tidegate.server) from tidegate.leader";
    let admin = database.clone();
    let terms = tokio::task::spawn_blocking(move || admin.admin().value(leads)).await.unwrap();
    assert_eq!(terms, "1 2", "the first leads all the time, and either has an address of its own");
    let mut successor = second.work(1).start().await.unwrap();
    let refused = within(displaced).await.unwrap();
    assert!(matches!(refused, Err(Error::Refused(Refusal::WorkerReplaced(_)))), "{refused:?}");
    within(successor.stop()).await.unwrap();
    within(second.close()).await;
    within(first.close()).await;
    drop_database(database).await;
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
