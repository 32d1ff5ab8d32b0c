//! What the guardian is for: workers that are killed or stopped, and guardians that die.

mod support;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::json;
use std::process::Child;
use support::{Witness, bench, error, output, run, script, within, worker_process};
use tidegate_worker::GuardianCommand;

/// Says who its guardian is, then holds the witness open together with a child of its own, whatever it is asked.
const STUBBORN: &str = "exec 9>$FIFO; trap '' TERM INT HUP; \
    sh -c 'trap \"\" TERM INT HUP; echo up >&9; while :; do sleep 1000; done' & echo $PPID >&9; wait; wait";

/// A worker that is busy with one stubborn process under a lease of this length.
fn worker(lease: &str, witness: &Witness) -> Child {
    worker_process(lease, &script(STUBBORN, witness))
}

/// Both lines of the stubborn script, in whichever order they come: the guardian's number.
fn wait_until_up(witness: &Witness) -> Pid {
    let lines = [witness.line(), witness.line()];
    let guardian = lines.iter().find_map(|line| line.parse().ok()).expect("a number");
    Pid::from_raw(guardian).unwrap()
}

#[test]
fn a_worker_that_is_killed_leaves_nothing_running() {
    let witness = Witness::new();
    let mut worker = worker("30000", &witness);
    wait_until_up(&witness);
    worker.kill().unwrap();
    witness.gone();
    worker.wait().unwrap();
}

#[test]
fn a_worker_that_is_stopped_leaves_nothing_running_past_its_lease() {
    let witness = Witness::new();
    let mut worker = worker("1500", &witness);
    wait_until_up(&witness);
    kill_process(Pid::from_child(&worker), Signal::STOP).unwrap();
    witness.gone();
    worker.kill().unwrap();
    worker.wait().unwrap();
}

#[test]
fn ctrl_c_and_a_stop_of_the_whole_service_reach_the_worker_and_not_what_it_runs() {
    let witness = Witness::new();
    let mut worker = worker("30000", &witness);
    let guardian = wait_until_up(&witness);
    // As systemd does to a whole service; the guardian outlives it.
    kill_process(guardian, Signal::TERM).unwrap();
    kill_process(guardian, Signal::INT).unwrap();
    // As a terminal does on Ctrl-C: the worker of this test ends, and only then does the rest.
    kill_process_group(Pid::from_child(&worker), Signal::INT).unwrap();
    worker.wait().unwrap();
    witness.gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guardian_that_dies_fails_its_attempts_and_is_replaced() {
    let mut bench = bench(|_| {});
    let witness = Witness::new();
    let lease = bench.engine.hand_out(script(STUBBORN, &witness));
    let guardian = wait_until_up(&witness);
    kill_process(guardian, Signal::KILL).unwrap();
    let message = "the guardian of its process died, so the process was killed";
    assert_eq!(error(within(bench.engine.outcome(lease)).await), message);
    witness.gone();
    assert_eq!(output(bench.run(json!({ "argv": ["echo", "1"] })).await)["json"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guardian_that_cannot_be_started_or_is_something_else_fails_the_attempt() {
    let guardian = |program: &str| Some(GuardianCommand { program: program.into(), args: Vec::new() });
    let mut nothing = bench(|settings| settings.guardian = guardian("/nowhere/tidegate"));
    let message = error(nothing.run(json!({ "argv": ["true"] })).await);
    assert!(message.starts_with("this worker cannot start its guardian `/nowhere/tidegate`: "), "{message}");
    let mut echo = bench(|settings| settings.guardian = guardian("/bin/echo"));
    let lease = echo.engine.hand_out(run(json!({ "argv": ["true"] })));
    let message = error(within(echo.engine.outcome(lease)).await);
    assert_eq!(message, "the guardian of its process died, so the process was killed");
}
