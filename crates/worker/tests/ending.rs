//! How attempts end before their time: told to stop, out of time, or because the worker leaves.

mod support;

use serde_json::json;
use std::time::{Duration, Instant};
use support::engine::Heard;
use support::{Bench, Witness, bench, error, output, run, script, within};
use tidegate_core::ids::{Name, RunId};
use tidegate_core::protocol::{LARGEST_OUTPUT, Lease, Outcome, Payload};
use tidegate_core::time::Span;
use tidegate_worker::functions::BoxFuture;
use tidegate_worker::{Ctx, Settings, WorkerError, order};
use tokio::sync::mpsc;

/// A leader and a grandchild that both ignore SIGTERM and hold the witness open.
const STUBBORN: &str = "exec 9>$FIFO; trap '' TERM; sh -c 'trap \"\" TERM; echo up >&9; while :; do sleep 1000; done' & wait; wait";

async fn next_report(bench: &mut Bench) -> (Lease, Outcome) {
    loop {
        if let Heard::Reported(lease, outcome) = within(bench.engine.next()).await {
            return (lease, outcome);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_asks_first() {
    let mut bench = bench(|settings| settings.grace = Span::seconds(600));
    let witness = Witness::new();
    let text =
        "exec 9>$FIFO; trap 'echo asked >&9; exit 0' TERM; echo up >&9; while :; do sleep 1000 & wait; done";
    let lease = bench.engine.hand_out(script(text, &witness));
    assert_eq!(witness.line(), "up");
    bench.engine.stop(lease);
    assert_eq!(within(bench.engine.outcome(lease)).await, Outcome::Stopped);
    assert_eq!(witness.gone(), ["asked"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_ignores_being_asked_is_killed_with_all_its_children() {
    let mut bench = bench(|_| {});
    let witness = Witness::new();
    let lease = bench.engine.hand_out(script(STUBBORN, &witness));
    assert_eq!(witness.line(), "up");
    bench.engine.stop(lease);
    assert_eq!(within(bench.engine.outcome(lease)).await, Outcome::Stopped);
    witness.gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn five_seconds_pass_between_being_asked_and_being_killed_unless_told_otherwise() {
    let usual = Settings::new("usual", 1, None).grace;
    let mut bench = bench(|settings| settings.grace = usual);
    let witness = Witness::new();
    let lease = bench.engine.hand_out(script(STUBBORN, &witness));
    assert_eq!(witness.line(), "up");
    let asked = Instant::now();
    bench.engine.stop(lease);
    assert_eq!(within(bench.engine.outcome(lease)).await, Outcome::Stopped);
    let took = asked.elapsed();
    assert!((Duration::from_secs(5)..Duration::from_secs(10)).contains(&took), "{took:?}");
    witness.gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn renewals_let_an_attempt_outlive_its_first_lease() {
    let mut bench = bench(|_| {});
    bench.engine.lease = Span::seconds(1);
    let outcome = bench.run(json!({ "argv": ["sleep", "2.5"] })).await;
    assert_eq!(output(outcome)["exit_code"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_renewals_it_is_gone_before_the_lease_ends_and_nothing_is_reported() {
    let mut bench = bench(|_| {});
    bench.engine.lease = Span::seconds(1);
    bench.engine.stop_renewing();
    let witness = Witness::new();
    let given_up = bench.engine.hand_out(script(STUBBORN, &witness));
    witness.gone();
    // The first report is that of the next attempt: the one given up is never mentioned.
    bench.engine.lease = Span::seconds(30);
    let next = bench.engine.hand_out(run(json!({ "argv": ["true"] })));
    let (reported, outcome) = next_report(&mut bench).await;
    assert!(reported == next && reported != given_up);
    output(outcome);
}

#[tokio::test(flavor = "multi_thread")]
async fn shutting_down_hands_back_what_it_stopped_and_leaves() {
    let mut bench = bench(|settings| {
        settings.functions.register("wait", |_, _| std::future::pending());
    });
    let witness = Witness::new();
    let process = bench.engine.hand_out(script(STUBBORN, &witness));
    let call = bench.engine.hand_out(order::call(&Name::new("wait"), &Payload::null()));
    assert_eq!(witness.line(), "up");
    bench.control.shut_down();
    let mut reports = [next_report(&mut bench).await, next_report(&mut bench).await];
    reports.sort_by_key(|(lease, _)| *lease);
    assert_eq!(reports, [(process, Outcome::HandedBack), (call, Outcome::HandedBack)]);
    assert_eq!(within(bench.engine.next()).await, Heard::Left);
    witness.gone();
    within(bench.worker).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_worker_finishes_what_it_has_and_hands_back_the_rest() {
    let mut bench = bench(|_| {});
    let witness = Witness::new();
    let first = bench.engine.hand_out(script("echo up >$FIFO; read x <$FIFO.back; echo $x", &witness));
    assert_eq!(witness.line(), "up");
    bench.control.drain();
    while within(bench.engine.next()).await != Heard::Draining {}
    let second = bench.engine.hand_out(run(json!({ "argv": ["true"] })));
    assert_eq!(next_report(&mut bench).await, (second, Outcome::HandedBack));
    witness.answer("done\n");
    let (lease, outcome) = next_report(&mut bench).await;
    assert_eq!((lease, &output(outcome)["stdout"]), (first, &json!("done\n")));
    assert_eq!(within(bench.engine.next()).await, Heard::Left);
    within(bench.worker).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_goes_away_takes_everything_with_it() {
    let (mut engine, link) = support::engine::Engine::new();
    let settings = tidegate_worker::Settings::new("w", 1, Some(support::guardian()));
    let worker = tokio::spawn(tidegate_worker::Worker::new(settings).run(link));
    let witness = Witness::new();
    engine.hand_out(script(STUBBORN, &witness));
    assert_eq!(witness.line(), "up");
    engine.go_away();
    assert!(matches!(within(worker).await.unwrap(), Err(WorkerError::EngineGone)));
    witness.gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_succeed_fail_panic_and_stop() {
    let mut bench = bench(|settings| {
        settings.functions.register("echo", async |_, input| Outcome::Succeeded(input));
        settings.functions.register("panic", |_, _| -> std::future::Ready<Outcome> { panic!("oh no") });
        settings.functions.register("wait", |_, _| std::future::pending());
        let large = Payload::new(vec![b'1'; LARGEST_OUTPUT + 1]);
        settings
            .functions
            .register("swell", move |_, _| std::future::ready(Outcome::Succeeded(large.clone())));
    });
    let call = |name: &str| order::call(&Name::new(name), &Payload::new("[1]"));
    let lease = bench.engine.hand_out(call("echo"));
    assert_eq!(within(bench.engine.outcome(lease)).await, Outcome::Succeeded(Payload::new("[1]")));
    let lease = bench.engine.hand_out(call("panic"));
    assert_eq!(error(within(bench.engine.outcome(lease)).await), "the function panicked: oh no");
    let lease = bench.engine.hand_out(call("none"));
    let message = "no function `none` is registered on this worker";
    assert_eq!(error(within(bench.engine.outcome(lease)).await), message);
    let lease = bench.engine.hand_out(call("swell"));
    let message = "its output: it is too large, it has 64.1 MiB and 64 MiB are allowed";
    assert_eq!(error(within(bench.engine.outcome(lease)).await), message);
    let lease = bench.engine.hand_out(call("wait"));
    bench.engine.stop(lease);
    assert_eq!(within(bench.engine.outcome(lease)).await, Outcome::Stopped);
}

/// Says when it would hear that it is to stop, waits for that, and then does as it likes.
fn heeding<R>(
    listens: &mpsc::UnboundedSender<()>,
    then: fn() -> R,
) -> impl Fn(Ctx, Payload) -> BoxFuture<Outcome> + use<R>
where
    R: Future<Output = Outcome> + Send + 'static,
{
    let listens = listens.clone();
    move |ctx, _| {
        let listens = listens.clone();
        Box::pin(async move {
            assert!(!ctx.is_cancelled());
            listens.send(()).unwrap();
            ctx.cancelled().await;
            then().await
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_listens_may_end_by_itself_and_is_dropped_if_it_does_not() {
    let (tell, mut listens) = mpsc::unbounded_channel();
    let mut bench = bench(|settings| {
        let orderly = || std::future::ready(Outcome::Succeeded(Payload::new("1")));
        settings.functions.register("orderly", heeding(&tell, orderly));
        settings.functions.register("stubborn", heeding(&tell, std::future::pending));
    });
    for (name, outcome) in
        [("orderly", Outcome::Succeeded(Payload::new("1"))), ("stubborn", Outcome::Stopped)]
    {
        let lease = bench.engine.hand_out(order::call(&Name::new(name), &Payload::null()));
        within(listens.recv()).await.unwrap();
        bench.engine.stop(lease);
        assert_eq!(within(bench.engine.outcome(lease)).await, outcome, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_knows_its_attempt() {
    let mut bench = bench(|settings| {
        settings.functions.register("tell", async |ctx: Ctx, _| {
            let key = ctx.idempotency_key();
            let told = json!([ctx.run(), ctx.task(), ctx.attempt(), ctx.epoch(), key, ctx.is_cancelled()]);
            Outcome::Succeeded(Payload::new(told.to_string()))
        });
    });
    let lease = bench.engine.hand_out(order::call(&Name::new("tell"), &Payload::null()));
    let told = output(within(bench.engine.outcome(lease)).await);
    let key = "run_00000000000000000000000001/1";
    assert_eq!(told, json!([RunId(1), lease.task, 1, lease.epoch, key, false]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_knows_until_when_it_may_run_and_that_this_is_later_with_each_renewal() {
    let mut bench = bench(|settings| {
        settings.functions.register("renewed", async |ctx: Ctx, _| {
            let first = ctx.lease_ends();
            let most = first.saturating_duration_since(Instant::now()).as_millis();
            while ctx.lease_ends() < first + Duration::from_millis(100) {
                tokio::task::yield_now().await;
            }
            Outcome::Succeeded(Payload::new(most.to_string()))
        });
    });
    bench.engine.lease = Span::seconds(1);
    let lease = bench.engine.hand_out(order::call(&Name::new("renewed"), &Payload::null()));
    let first = output(within(bench.engine.outcome(lease)).await);
    // A grace of 200 ms, 50 ms for messages under way and 10 ms for clocks that differ are not its own.
    assert!(first.as_u64().is_some_and(|millis| millis <= 740), "{first} ms of a second");
}
