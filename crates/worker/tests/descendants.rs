//! Whoever descends from an attempt ends with it, wherever it has moved to.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::time::Instant;
use support::{Bench, PATIENCE, Witness, bench, error, output, script, within, worker_process};
use tidegate_core::protocol::{Lease, Outcome};
use tidegate_core::time::Span;

/// Holds the witness open in a session of its own, whatever it is asked.
const IN_A_SESSION: &str =
    "setsid sh -c 'exec 9>$FIFO; trap \"\" TERM HUP; echo up >&9; while :; do sleep 1000; done' &";

/// The same, without a parent.
const DOUBLE_FORKED: &str =
    "(setsid sh -c 'exec 9>$FIFO; trap \"\" TERM HUP; (echo up >&9; while :; do sleep 1000; done) &' &);";

/// The same, and nothing in its environment says where it came from.
const ANONYMOUS: &str =
    "(setsid env -i FIFO=$FIFO sh -c 'exec 9>$FIFO; (echo up >&9; exec sleep 1000) &' &);";

/// Each lives only until it has started its successor, in yet another session. The last resort against a failing
/// test: they end when the witness is removed.
const FLEEING: &str = "export FLEE='test -e $FIFO && setsid sh -c \"$FLEE\" &'; exec 9>$FIFO; \
    sh -c \"$FLEE\"; sh -c \"$FLEE\"; echo up >&9;";

/// Ends when the test says so.
const UNTIL_TOLD: &str = "read x <$FIFO.back; echo done";

fn hand_out(bench: &mut Bench, text: &str, then: &str, witness: &Witness) -> Lease {
    let lease = bench.engine.hand_out(script(&format!("{text} {then}"), witness));
    assert_eq!(witness.line(), "up");
    lease
}

async fn nobody_is_left_after_a_normal_end(text: &str) {
    let mut bench = bench(|_| {});
    let witness = Witness::new();
    let lease = hand_out(&mut bench, text, UNTIL_TOLD, &witness);
    witness.answer("\n");
    assert_eq!(output(within(bench.engine.outcome(lease)).await)["stdout"], "done\n");
    witness.gone();
}

async fn nobody_is_left_after_a_stop(text: &str) {
    let mut bench = bench(|_| {});
    let witness = Witness::new();
    let lease = hand_out(&mut bench, text, "exec sleep 1000", &witness);
    bench.engine.stop(lease);
    assert_eq!(within(bench.engine.outcome(lease)).await, Outcome::Stopped);
    witness.gone();
}

fn nobody_is_left_of_a_killed_worker(text: &str) {
    let witness = Witness::new();
    let mut worker = worker_process("30000", &script(&format!("{text} exec sleep 1000"), &witness));
    assert_eq!(witness.line(), "up");
    worker.kill().unwrap();
    witness.gone();
    worker.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_in_a_session_of_its_own_ends_with_the_attempt() {
    nobody_is_left_after_a_normal_end(IN_A_SESSION).await;
    nobody_is_left_after_a_stop(IN_A_SESSION).await;
    nobody_is_left_of_a_killed_worker(IN_A_SESSION);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_without_a_parent_ends_with_the_attempt() {
    nobody_is_left_after_a_normal_end(DOUBLE_FORKED).await;
    nobody_is_left_after_a_stop(DOUBLE_FORKED).await;
    nobody_is_left_of_a_killed_worker(DOUBLE_FORKED);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_hides_where_it_came_from_ends_with_the_only_attempt() {
    nobody_is_left_after_a_normal_end(ANONYMOUS).await;
    nobody_is_left_after_a_stop(ANONYMOUS).await;
    nobody_is_left_of_a_killed_worker(ANONYMOUS);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_escapes_by_forking_all_the_time() {
    nobody_is_left_after_a_normal_end(FLEEING).await;
    nobody_is_left_after_a_stop(FLEEING).await;
    nobody_is_left_of_a_killed_worker(FLEEING);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_asks_those_in_other_sessions_once_and_lets_them_finish() {
    let mut bench = bench(|settings| settings.grace = Span::seconds(600));
    let witness = Witness::new();
    // It counts how often it is asked, and the test decides when it has finished.
    let text = "setsid sh -c 'exec 9>$FIFO; trap \"echo asked >&9\" TERM; echo up >&9; \
        until read x <$FIFO.back; do :; done; echo finished >&9' &";
    let lease = hand_out(&mut bench, text, "exec sleep 1000", &witness);
    bench.engine.stop(lease);
    assert_eq!(witness.line(), "asked");
    witness.answer("\n");
    assert_eq!(within(bench.engine.outcome(lease)).await, Outcome::Stopped);
    assert_eq!(witness.gone(), ["finished"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_one_attempt_leaves_the_orphans_of_others_alone() {
    let mut bench = bench(|_| {});
    let orphan = "(setsid sh -c 'exec 9>$FIFO; (echo up >&9; \
        while :; do read x <$FIFO.back && echo alive >&9; done) &' &);";
    let witnesses: Vec<Witness> = (0..10).map(|_| Witness::new()).collect();
    let leases: Vec<Lease> =
        witnesses.iter().map(|witness| hand_out(&mut bench, orphan, "exec sleep 1000", witness)).collect();
    for (place, lease) in leases.into_iter().enumerate() {
        bench.engine.stop(lease);
        assert_eq!(within(bench.engine.outcome(lease)).await, Outcome::Stopped);
        assert!(witnesses[place].gone().is_empty());
        for other in &witnesses[place + 1..] {
            other.answer("\n");
            assert_eq!(other.line(), "alive");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_hides_where_it_came_from_ends_with_the_last_attempt_it_may_belong_to() {
    let mut bench = bench(|_| {});
    let [hidden, contemporary, successor] = [(); 3].map(|()| Witness::new());
    let first = hand_out(&mut bench, ANONYMOUS, UNTIL_TOLD, &hidden);
    let second = hand_out(&mut bench, "echo up >$FIFO;", UNTIL_TOLD, &contemporary);
    hidden.answer("\n");
    output(within(bench.engine.outcome(first)).await);
    // Still running when the hidden one is ended.
    hand_out(&mut bench, "echo up >$FIFO;", UNTIL_TOLD, &successor);
    contemporary.answer("\n");
    output(within(bench.engine.outcome(second)).await);
    hidden.gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_guardian_is_killed_its_worker_ends_those_in_other_sessions() {
    let mut bench = bench(|_| {});
    let witness = Witness::new();
    let text = format!("exec 8>$FIFO; echo $PPID >&8; {DOUBLE_FORKED} exec sleep 1000");
    let lease = bench.engine.hand_out(script(&text, &witness));
    let guardian = Pid::from_raw(witness.line().parse().unwrap()).unwrap();
    assert_eq!(witness.line(), "up");
    kill_process(guardian, Signal::KILL).unwrap();
    let message = "the guardian of its process died, so the process was killed";
    assert_eq!(error(within(bench.engine.outcome(lease)).await), message);
    witness.gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orphan_that_ends_is_not_kept_as_a_zombie_while_its_attempt_goes_on() {
    let mut bench = bench(|_| {});
    let witness = Witness::new();
    let text = format!("exec 9>$FIFO; (sh -c 'echo $$ >&9' &); {UNTIL_TOLD}");
    let lease = bench.engine.hand_out(script(&text, &witness));
    let place = format!("/proc/{}", witness.line());
    // Nobody is told when somebody else's zombie goes.
    let began = Instant::now();
    while Path::new(&place).exists() {
        assert!(began.elapsed() < PATIENCE, "{place} is still there");
        tokio::task::yield_now().await;
    }
    witness.answer("\n");
    output(within(bench.engine.outcome(lease)).await);
}
