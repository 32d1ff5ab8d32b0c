//! Events: everything a run goes through is told, live and again later.

mod support;

use std::time::Duration;
use support::{on_every_store, within};
use tidegate::{Ctx, Error, Events, Happening, Position, Run, Tidegate};

/// The kinds of events of a run, up to its end.
async fn told(events: &mut Events, run: &Run) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    loop {
        let event = events.next().await.unwrap();
        if event.run != Some(run.id()) {
            continue;
        }
        kinds.push(event.what.kind());
        if let Happening::RunFinished { .. } = event.what {
            return kinds;
        }
    }
}

const FLAKY: [&str; 7] = [
    "run.queued",
    "run.started",
    "task.granted",
    "task.retrying",
    "task.granted",
    "task.finished",
    "run.finished",
];

fn define_flaky(tide: &Tidegate) {
    let flaky = |ctx: Ctx, ()| async move { if ctx.attempt() < 2 { Err("not yet") } else { Ok(()) } };
    tide.action("flaky", flaky).retry(2, Duration::from_millis(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_goes_through_is_told_live_and_again_from_any_position() {
    on_every_store(async |tide| {
        define_flaky(&tide);
        let _working = tide.work(1).start().await.unwrap();
        let mut live = tide.events();
        let run = tide.submit("flaky", &()).await.unwrap();
        assert_eq!(told(&mut live, &run).await, FLAKY);
        let mut again = tide.events().after(Position::START);
        assert_eq!(told(&mut again, &run).await, FLAKY);

        let mut all = tide.events().after(Position::START);
        let mut positions = Vec::new();
        while positions.len() < FLAKY.len() {
            positions.push(all.next().await.unwrap().position);
        }
        assert!(positions.is_sorted_by(|first, second| first < second));
        for (index, &position) in positions.iter().enumerate().take(FLAKY.len() - 1) {
            let mut rest = tide.events().after(position);
            assert_eq!(rest.next().await.unwrap().position, positions[index + 1]);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_limits_and_workers_are_told_too() {
    on_every_store(async |tide| {
        tide.action("add", |_, _: serde_json::Value| async { Ok::<_, String>(1) });
        tide.flow("flow: sum\nsteps: { one: { action: add }, two: { after: [one], action: add } }\n")
            .unwrap();
        let mut events = tide.events();
        let mut working = tide.work(1).name("adder").start().await.unwrap();
        let joined = events.next().await.unwrap();
        assert!(matches!(joined.what, Happening::WorkerJoined { worker, .. } if worker.as_str() == "adder"));
        tide.limits().set("runs", 3).by("ada").await.unwrap();
        let limited = events.next().await.unwrap();
        assert!(matches!(limited.what, Happening::LimitChanged { by: Some(by), .. } if by.as_str() == "ada"));
        let run = tide.submit("sum", &()).await.unwrap();
        let (begin, step) = (["run.queued", "run.started"], ["task.granted", "task.finished"]);
        let expected = [&begin[..], &step, &step, &["task.finished", "run.finished"]].concat();
        assert_eq!(told(&mut events, &run).await, expected);
        working.stop().await.unwrap();
        // One that has nothing may leave without saying before that it takes nothing more.
        let gone = match events.next().await.unwrap().what {
            Happening::WorkerDrained { .. } => events.next().await.unwrap().what,
            other => other,
        };
        assert!(matches!(gone, Happening::WorkerLost { worker } if worker.as_str() == "adder"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_events_go_on_where_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", directory.path().join("test.db").display());
    let tide = Tidegate::open(&address).await.unwrap();
    define_flaky(&tide);
    let mut events = tide.events();
    let run = tide.submit("flaky", &()).await.unwrap();
    let queued = within(events.next()).await.unwrap();
    assert_eq!((queued.run, queued.what.kind()), (Some(run.id()), "run.queued"));
    within(tide.close()).await;
    assert!(matches!(within(events.next()).await, Err(Error::Closed)));

    let tide = Tidegate::open(&address).await.unwrap();
    define_flaky(&tide);
    let mut events = tide.events().after(queued.position);
    let mut working = tide.work(1).start().await.unwrap();
    let run = tide.run(run.id()).await.unwrap();
    assert_eq!(within(told(&mut events, &run)).await, FLAKY[1..]);
    within(working.stop()).await.unwrap();
}
