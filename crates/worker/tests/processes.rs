//! Real processes: what they are given, what they give back.

mod support;

use serde_json::json;
use std::sync::{Arc, mpsc};
use std::time::{SystemTime, UNIX_EPOCH};
use support::{PATIENCE, Witness, bench, error, output, run, script, within};
use tidegate_core::protocol::{Failure, Outcome};
use tidegate_core::time::Moment;
use tidegate_worker::Stream;
use tidegate_worker::output::KEPT;

#[tokio::test(flavor = "multi_thread")]
async fn a_process_succeeds_with_its_output() {
    let outcome = bench(|_| {}).run(json!({ "argv": ["sh", "-c", "echo '{\"n\": 1}'; echo hm >&2"] })).await;
    assert_eq!(
        output(outcome),
        json!({ "exit_code": 0, "stdout": "{\"n\": 1}\n", "stderr": "hm\n", "json": { "n": 1 } })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_names_the_code_or_the_signal_and_the_last_words() {
    let mut bench = bench(|_| {});
    let outcome = bench.run(json!({ "argv": ["sh", "-c", "echo out; echo no table >&2; exit 3"] })).await;
    let Outcome::Failed(Failure { error: message, output: Some(output), .. }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(message, "exit code 3: no table");
    let output: serde_json::Value = serde_json::from_slice(output.bytes()).unwrap();
    assert_eq!(output, json!({ "exit_code": 3, "stdout": "out\n", "stderr": "no table\n" }));
    let outcome = bench.run(json!({ "argv": ["sh", "-c", "kill -SEGV $$"] })).await;
    assert_eq!(error(outcome), "killed by SIGSEGV");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_started_fails_with_a_sentence() {
    let mut bench = bench(|_| {});
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().display();
    std::fs::write(directory.path().join("plain"), "no program").unwrap();
    let cases = [
        (json!({ "argv": ["tidegate-none"] }), "`tidegate-none`: no such program in PATH".into()),
        (json!({ "argv": ["./none"], "cwd": directory.path() }), "`./none`: no such file".into()),
        (json!({ "argv": ["./plain"], "cwd": directory.path() }), "`./plain`: it may not be executed".into()),
        (
            json!({ "argv": ["true"], "cwd": directory.path().join("none") }),
            format!("`true`: its working directory `{place}/none` is not there or is not a directory"),
        ),
    ];
    for (order, message) in cases {
        assert_eq!(error(bench.run(order).await), format!("cannot start {message}"));
    }
    assert_eq!(error(bench.run(json!({ "argv": [] })).await), "cannot start: `run` names no program");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_knows_who_it_is_and_nothing_of_the_workers_secrets() {
    // `cargo test` sets CARGO for the test and so for the guardian.
    assert!(std::env::var_os("CARGO").is_some());
    let order = json!({ "argv": ["env"], "env": { "MINE": "1", "TIDEGATE_EPOCH": "forged" } });
    let seen = output(bench(|_| {}).run(order).await);
    let names: Vec<&str> = seen["stdout"].as_str().unwrap().lines().collect();
    assert!(names.contains(&"MINE=1") && names.contains(&"TIDEGATE_EPOCH=1.1"), "{names:?}");
    assert!(names.contains(&"TIDEGATE_TASK=1") && names.contains(&"TIDEGATE_ATTEMPT=1"), "{names:?}");
    assert!(names.iter().any(|name| name.starts_with("TIDEGATE_RUN=run_")), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_reads_nothing() {
    assert_eq!(output(bench(|_| {}).run(json!({ "argv": ["cat"] })).await)["stdout"], "");
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_output_keeps_its_end_and_says_how_much_is_missing() {
    let order = json!({ "argv": ["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end"] });
    let output = output(bench(|_| {}).run(order).await);
    let kept = output["stdout"].as_str().unwrap();
    assert!(kept.len() <= KEPT && kept.ends_with("x\nend\n"));
    assert_eq!(kept.len() as u64 + output["stdout_cut"].as_u64().unwrap(), 3_000_005);
}

fn wall_clock() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Moment(since.as_micros() as i64)
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_arrive_while_the_process_runs() {
    let (tell, lines) = mpsc::channel();
    let mut bench = bench(|settings| {
        settings.logs = Arc::new(move |line| {
            let _ = tell.send(line);
        });
    });
    let gate = Witness::new();
    let text = "echo first; echo bad >&2; read answer < $FIFO.back; echo $answer";
    let lease = bench.engine.hand_out(script(text, &gate));
    let mut seen = [lines.recv_timeout(PATIENCE).unwrap(), lines.recv_timeout(PATIENCE).unwrap()];
    seen.sort_by_key(|line| line.stream == Stream::Stderr);
    assert_eq!(seen.clone().map(|line| line.text), ["first", "bad"]);
    assert!(seen.iter().all(|line| line.lease == lease && line.newline));
    let between = wall_clock();
    assert!(seen.iter().all(|line| line.at <= between), "stamped when they were read");
    gate.answer("second\n");
    let second = lines.recv_timeout(PATIENCE).unwrap();
    assert_eq!(second.text, "second");
    assert!(second.at >= between, "not before it was written");
    assert_eq!(output(within(bench.engine.outcome(lease)).await)["stdout"], "first\nsecond\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_leader_leaves_behind_is_killed_with_its_group() {
    let mut bench = bench(|_| {});
    let witness = Witness::new();
    let text = "exec 9>$FIFO; (trap '' TERM HUP; sleep 1000) & echo started";
    let lease = bench.engine.hand_out(script(text, &witness));
    assert_eq!(output(within(bench.engine.outcome(lease)).await)["stdout"], "started\n");
    witness.gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_processes_run_at_once() {
    let mut bench = bench(|_| {});
    let leases: Vec<_> =
        (0..50).map(|n| bench.engine.hand_out(run(json!({ "argv": ["echo", n.to_string()] })))).collect();
    for _ in &leases {
        match within(bench.engine.next()).await {
            support::engine::Heard::Reported(lease, outcome) => {
                let place = leases.iter().position(|known| *known == lease).unwrap();
                assert_eq!(output(outcome)["json"], place);
            }
            support::engine::Heard::Joined(_) => {}
            other => panic!("{other:?}"),
        }
    }
}
