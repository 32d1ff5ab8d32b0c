//! Submitting, waiting, cancelling, explaining: over every kind of store.

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use support::{Gate, on_every_store};
use tidegate::{Ctx, Error, Refusal, RunId, State, Tidegate};
use tokio::sync::mpsc;

async fn double(_: Ctx, number: i64) -> Result<i64, String> {
    number.checked_mul(2).ok_or("too large".to_owned())
}

/// An action that waits at a gate under the name it was given.
fn gated(tide: &Tidegate, action: &str) -> (&'static Gate, mpsc::UnboundedReceiver<String>) {
    let (gate, arrivals) = Gate::new();
    tide.action(action, move |_, name: String| async move {
        gate.pass(name).await;
        Ok::<_, String>(())
    });
    (gate, arrivals)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_submitted_runs_and_gives_its_result_to_all_who_wait() {
    on_every_store(async |tide| {
        tide.action("double", double);
        let _working = tide.work(2).start().await.unwrap();
        let run = tide.submit("double", &21).await.unwrap();
        let other = tide.run(run.id()).await.unwrap();
        let (first, second) = tokio::join!(run.result::<i64>(), other.result::<i64>());
        assert_eq!((first.unwrap(), second.unwrap()), (42, 42));
        assert_eq!(run.wait().await.unwrap().state(), State::Succeeded, "also long after");
        assert!(run.explain().await.unwrap().is_none());
        let wrong = run.result::<String>().await.unwrap_err();
        assert!(matches!(wrong, Error::Output { .. }), "{wrong}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_panics_and_wrong_inputs_are_told_apart_from_success() {
    on_every_store(async |tide| {
        tide.action("double", double);
        tide.action("panic", |_, ()| async { if true { panic!("oh no") } else { Ok::<(), String>(()) } });
        let _working = tide.work(2).start().await.unwrap();
        let error = async |run: Result<tidegate::Run, Error>| {
            run.unwrap().result::<i64>().await.unwrap_err().to_string().split_off(31)
        };
        assert_eq!(error(tide.submit("double", &i64::MAX).await).await, "failed: too large");
        assert_eq!(error(tide.submit("panic", &()).await).await, "failed: the function panicked: oh no");
        let unfit = error(tide.submit("double", &"x").await).await;
        assert!(unfit.starts_with("failed: the input does not fit the function: invalid type"), "{unfit}");
        let unwritable = tide.submit("double", &BTreeMap::from([((), ())])).await.unwrap_err();
        assert!(matches!(unwritable, Error::Inputs { .. }), "{unwritable}");
        let unheard = tide.submit("double", &1).priority(101).await.unwrap_err();
        assert_eq!(unheard.to_string(), "a priority must be between -100 and 100, not 101");
        assert!(matches!(tide.run(RunId(7)).await, Err(Error::UnknownRun(RunId(7)))));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_and_what_runs_can_be_cancelled() {
    on_every_store(async |tide| {
        let (_gate, mut arrivals) = gated(&tide, "wait");
        let waiting = tide.submit("wait", &"waiting").await.unwrap();
        waiting.cancel().await.unwrap();
        assert!(matches!(waiting.result::<()>().await, Err(Error::Cancelled(id)) if id == waiting.id()));
        waiting.cancel().await.unwrap();

        let _working = tide.work(1).start().await.unwrap();
        let running = tide.submit("wait", &"running").await.unwrap();
        assert_eq!(arrivals.recv().await.unwrap(), "running");
        running.cancel().await.unwrap();
        assert_eq!(running.wait().await.unwrap().state(), State::Cancelled);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_is_explained_also_for_an_action_that_no_worker_has() {
    on_every_store(async |tide| {
        let (gate, mut arrivals) = gated(&tide, "wait");
        let _working = tide.work(1).start().await.unwrap();
        let first = tide.submit("wait", &"first").await.unwrap();
        arrivals.recv().await.unwrap();
        let second = tide.submit("wait", &"second").await.unwrap();
        let why = second.explain().await.unwrap().unwrap().to_string();
        assert!(why.contains("all 1 fitting slots are taken"), "{why}");
        let by_name = tide.explain(&first.id().to_string()).await.unwrap().unwrap().to_string();
        assert!(by_name.contains("has been running"), "{by_name}");
        assert!(matches!(tide.explain("run_nobody").await, Err(Error::Lost(_))));

        let unknown = tide.submit("unheard-of", &()).await.unwrap();
        let why = unknown.explain().await.unwrap().unwrap().to_string();
        assert!(why.contains("no connected worker of queue default can run it"), "{why}");
        gate.open(2);
        second.wait().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_higher_priority_starts_first_and_may_be_given_later() {
    on_every_store(async |tide| {
        let (gate, mut arrivals) = gated(&tide, "wait");
        gate.open(4);
        let low = tide.submit("wait", &"low").priority(-5).await.unwrap();
        tide.submit("wait", &"usual").await.unwrap();
        tide.submit("wait", &"high").priority(5).await.unwrap();
        let raised = tide.submit("wait", &"raised").await.unwrap();
        raised.set_priority(100).await.unwrap();
        let _working = tide.work(1).start().await.unwrap();
        low.wait().await.unwrap();
        let mut order = Vec::new();
        for _ in 0..4 {
            order.push(arrivals.recv().await.unwrap());
        }
        assert_eq!(order, ["raised", "high", "usual", "low"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_is_accepted_once_whether_open_or_ended() {
    on_every_store(async |tide| {
        tide.action("double", double);
        let first = tide.submit("double", &4).key("order-4").await.unwrap();
        let again = tide.submit("double", &4).key("order-4").await.unwrap();
        assert_eq!((again.id(), again.task()), (first.id(), first.task()));
        let other = tide.submit("double", &5).key("order-4").await.unwrap_err();
        assert!(matches!(other, Error::Refused(Refusal::KeyConflict(_))), "{other}");
        let _working = tide.work(1).start().await.unwrap();
        assert_eq!(first.result::<i64>().await.unwrap(), 8);
        let ended = tide.submit("double", &4).key("order-4").await.unwrap();
        assert_eq!((ended.id(), ended.result::<i64>().await.unwrap()), (first.id(), 8));
        assert_ne!(tide.submit("double", &4).await.unwrap().id(), first.id(), "without a key it is another");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delayed_one_starts_when_its_time_has_come() {
    on_every_store(async |tide| {
        tide.action("when", |_, ()| async { Ok::<_, String>(SystemTime::now()) });
        let _working = tide.work(1).start().await.unwrap();
        let begin = SystemTime::now();
        let span = Duration::from_millis(60);
        let delayed = tide.submit("when", &()).delay(span).await.unwrap();
        let timed = tide.submit("when", &()).at(begin + span).await.unwrap();
        for run in [delayed, timed] {
            let started = run.result::<SystemTime>().await.unwrap();
            assert!(started.duration_since(begin).unwrap() >= span, "{run:?} came too early");
        }
        let later = tide.submit("when", &()).delay(Duration::from_secs(3600)).await.unwrap();
        let why = later.explain().await.unwrap().unwrap().to_string();
        assert!(why.contains("starts in 59m 59s"), "{why}");
        later.cancel().await.unwrap();
        assert_eq!(later.wait().await.unwrap().state(), State::Cancelled);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_are_submitted_at_once_and_each_is_judged_by_itself() {
    on_every_store(async |tide| {
        tide.action("double", double).line(2_000);
        let submits = (0..2_010).map(|number| tide.submit("double", &number));
        let mut entries = tide.engine().subscribe();
        let runs = tide.submit_many(submits).await;
        let refused = runs.iter().filter(|run| matches!(run, Err(Error::Refused(Refusal::LineFull { .. }))));
        assert_eq!(refused.count(), 10, "the line holds 2,000");
        let mut commits = 0;
        while entries.try_recv().is_ok() {
            commits += 1;
        }
        assert!(commits < 100, "{commits} commits for 2,000 submissions");
        let _working = tide.work(100).start().await.unwrap();
        for (number, run) in (0..2_000).zip(&runs) {
            let result = run.as_ref().unwrap().result::<i64>().await.unwrap();
            assert_eq!(result, 2 * number, "results are in the order of the submissions");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_try_is_followed_by_another_with_the_same_key_and_a_higher_epoch() {
    on_every_store(async |tide| {
        let tries = Arc::new(Mutex::new(Vec::new()));
        let seen = tries.clone();
        let flaky = tide.action("flaky", move |ctx: Ctx, ()| {
            seen.lock().unwrap().push((ctx.attempt(), ctx.epoch(), ctx.idempotency_key()));
            async move { if ctx.attempt() < 3 { Err("not yet") } else { Ok(ctx.attempt()) } }
        });
        flaky.retry(3, Duration::from_millis(1));
        let _working = tide.work(1).start().await.unwrap();
        let run = tide.submit("flaky", &()).await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 3);
        let tries = tries.lock().unwrap();
        assert_eq!(tries.iter().map(|(attempt, ..)| *attempt).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(tries.is_sorted_by(|(_, first, _), (_, second, _)| first < second));
        assert!(tries.iter().all(|(.., key)| *key == tries[0].2));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_that_nobody_understands_are_refused() {
    for address in ["", "sqlite:", "memory:x", "app.db", "redis://localhost"] {
        assert!(matches!(Tidegate::open(address).await, Err(Error::Address(_))), "{address}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_end_nobody_waits_for_ever() {
    on_every_store(async |tide| {
        let (_gate, _arrivals) = gated(&tide, "wait");
        let run = tide.submit("wait", &"never").await.unwrap();
        let waiting = tokio::spawn({
            let run = run.clone();
            async move { run.wait().await.map(|ending| ending.state()) }
        });
        tide.clone().close().await;
        assert!(matches!(waiting.await.unwrap(), Err(Error::Closed)));
        assert!(matches!(run.wait().await, Err(Error::Closed)));
        assert!(matches!(tide.submit("wait", &"x").await, Err(Error::Closed)));
    })
    .await;
}

/// A program may be deployed anew between a submission and its repetition.
#[tokio::test]
async fn a_key_means_what_was_asked_for_and_not_what_definitions_made_of_it() {
    let tide = Tidegate::open("memory:").await.unwrap();
    let flow = |default: u32| {
        format!(
            "flow: report\ninputs: {{ days: {{ default: {default} }} }}\nsteps: {{ a: {{ action: print }} }}\n"
        )
    };
    tide.flow(&flow(1)).unwrap();
    let submit = || tide.submit("report", &serde_json::json!({})).key("daily");
    let first = submit().await.unwrap();
    tide.flow(&flow(2)).unwrap();
    assert_eq!(submit().await.unwrap().id(), first.id());

    let print = || tide.action("print", |_, _: serde_json::Value| async { Ok::<_, String>(()) });
    let submit = |tenant: &str| tide.submit("print", &serde_json::json!({ "tenant": tenant })).key("once");
    print();
    let first = submit("acme").await.unwrap();
    print().key("{{ inputs.tenant }}");
    assert_eq!(submit("acme").await.unwrap().id(), first.id());
    assert!(matches!(submit("other").await.err(), Some(Error::Refused(Refusal::KeyConflict(_)))));
    tide.close().await;
}
