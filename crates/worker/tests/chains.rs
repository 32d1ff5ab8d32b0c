//! Chains, with real processes, servers and databases: what they give, and that nothing of them outlives them.

mod support;

use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use support::engine::Heard;
use support::server::{Reply, Server};
use support::{Bench, Witness, bench, failure, output, until, within, worker_process};
use tidegate_core::protocol::{Evaluation, Failure, Outcome, Payload};
use tidegate_core::time::Span;
use tidegate_flow::evaluate::{Scope, evaluate_step};
use tidegate_worker::Settings;

/// Ignores SIGTERM, and so does its child. It says who it is, and is gone when nobody holds the pipe any more.
const STUBBORN: &str = "exec 9>$FIFO; trap '' TERM; echo $$ >&9; sh -c 'trap \"\" TERM; while :; do sleep 1000; done' & wait; wait";

/// What the engine hands out for a step `it` with these fields, which may refer to any of these inputs.
fn order(step: &str, inputs: &Value) -> Payload {
    let step = step.replace('\n', "\n    ");
    let names: String =
        inputs.as_object().unwrap().keys().map(|name| format!("  {name}: {{ type: any }}\n")).collect();
    let connections = "---\nconnections: { db: { url: \"sqlite:data.db\" } }\n";
    let file = format!(
        "flow: demo\ninputs:\n  unused: {{ type: any }}\n{names}steps:\n  it:\n    {step}\n{connections}"
    );
    let flow = match tidegate_flow::parse("demo.yaml", file) {
        Ok(mut document) => document.flows.remove(0),
        Err(errors) => panic!("{}", errors.render(false)),
    };
    match evaluate_step(&flow, 0, &Scope { inputs: inputs.clone(), ..Scope::default() }) {
        Evaluation::Order(rendered) => rendered.order,
        other => panic!("{other:?}"),
    }
}

async fn carry_out(bench: &mut Bench, step: &str, inputs: Value) -> Outcome {
    let lease = bench.engine.hand_out(order(step, &inputs));
    within(bench.engine.outcome(lease)).await
}

async fn done(step: &str, inputs: Value) -> Value {
    output(carry_out(&mut bench(|_| {}), step, inputs).await)
}

async fn failed(step: &str, inputs: Value) -> Failure {
    failure(carry_out(&mut bench(|_| {}), step, inputs).await)
}

fn is_alive(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

fn json_of(payload: Option<&Payload>) -> Value {
    serde_json::from_slice(payload.expect("there is an output").bytes()).unwrap()
}

/// Where the paths of orders, which are relative, do not matter: SQLite's file is named in full.
fn in_folder(order: &Payload, folder: &Path) -> Payload {
    let text = String::from_utf8(order.bytes().to_vec()).unwrap();
    Payload::new(text.replace("sqlite:data.db", &format!("sqlite:{}", folder.join("data.db").display())))
}

const PAGES: &str = r#"do:
  - name: make
    sql: { connection: db, query: "create table page (n integer, body text)" }
  - name: pages
    repeat: { while: "{{ page.output.body.more }}", max: 10 }
    do:
      - { name: page, http: { url: "{{ inputs.api }}/p", query: { n: "{{ repeat.index }}" } } }
      - name: save
        sql:
          connection: db
          query: insert into page values ($1, $2)
          params: ["{{ repeat.index }}", "{{ page.output.body.text }}"]
  - name: count
    sql: { connection: db, query: "select n, body from page order by n" }"#;

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_fetched_until_there_are_no_more() {
    let (mut bench, folder) = (bench(|_| {}), tempfile::tempdir().unwrap());
    let server = Server::start(|asked| {
        let number: u32 = asked.target.rsplit_once('=').unwrap().1.parse().unwrap();
        Reply::json(&json!({ "text": format!("page {number}"), "more": number < 3 }))
    })
    .await;
    let order = order(PAGES, &json!({ "api": server.url("") }));
    let lease = bench.engine.hand_out(in_folder(&order, folder.path()));
    let output = output(within(bench.engine.outcome(lease)).await);
    let rows: Vec<Value> = (1..4).map(|n| json!({ "n": n, "body": format!("page {n}") })).collect();
    assert_eq!(output["count"]["output"]["rows"], json!(rows));
    let pages = &output["pages"]["output"];
    assert_eq!((&pages["rounds"], &pages["page"]["output"]["body"]["text"]), (&json!(3), &json!("page 3")));
    assert_eq!(pages["save"], json!({ "state": "succeeded", "output": { "rows": [], "count": 1 } }));
}

#[tokio::test(flavor = "multi_thread")]
async fn members_see_those_before_them_and_may_be_skipped() {
    let step = r#"do:
  - { name: one, run: [echo, "{{ inputs.n }}"] }
  - name: two
    do:
      - { name: inner, shell: 'echo "$A$TIDEGATE_ATTEMPT"', env: { A: "{{ one.output.json + 1 }}." } }
  - { name: skipped, run: ["false"], when: "{{ two.output.inner.output.stdout | trim != '8.1' }}" }
  - { name: pause, wait: 10ms }
  - { name: last, run: [echo, "{{ skipped.state }} {{ skipped.output }}"] }"#;
    let output = done(step, json!({ "n": 7 })).await;
    assert_eq!(output["two"]["output"]["inner"]["output"]["stdout"], "8.1\n");
    assert_eq!(output["skipped"], json!({ "state": "skipped", "output": null }));
    assert_eq!(output["pause"], json!({ "state": "succeeded", "output": null }));
    assert_eq!(output["last"]["output"]["stdout"], "skipped null\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_repeated_by_itself_gives_its_last_output() {
    let step =
        "run: [echo, \"{{ repeat.index }}\"]\nrepeat: { while: \"{{ it.output.json < 3 }}\", delay: 1ms }";
    let output = done(step, json!({})).await;
    assert_eq!(output, json!({ "exit_code": 0, "stdout": "3\n", "stderr": "", "json": 3, "rounds": 3 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_says_which_member_and_which_round() {
    let step = r#"do:
  - { name: first, run: [echo, hello] }
  - name: pages
    repeat: { while: "{{ true }}" }
    do:
      - { name: page, shell: 'echo "no $N" >&2; test $N -lt 3 || exit 75', env: { N: "{{ repeat.index }}" } }
  - { name: never, run: ["true"] }"#;
    let failed = failed(step, json!({})).await;
    assert_eq!(failed.error, "member `pages`: round 3: member `page`: exit code 75: no 3");
    assert_eq!(failed.cause.as_ref().map(|cause| cause.0.as_str()), Some("exit:75"));
    let output = json_of(failed.output.as_ref());
    assert_eq!(
        (&output["first"]["state"], &output["pages"]["state"]),
        (&json!("succeeded"), &json!("failed"))
    );
    let pages = &output["pages"]["output"];
    assert_eq!((&pages["rounds"], &pages["page"]["output"]["exit_code"]), (&json!(3), &json!(75)));
    assert_eq!(output.get("never"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn templates_that_fail_and_repetitions_without_end_are_failures() {
    for (step, expected) in [
        (
            "do: [{ name: a, do: [{ name: b, run: [echo] }], repeat: { while: \"{{ true }}\", max: 2 } }]",
            "member `a`: `repeat`: `while` is still true after 2 rounds, which is its `max`",
        ),
        (
            "run: [echo]\nrepeat: { while: \"{{ it.output.json }}\" }",
            "round 1: `while`: `it.output.json` is undefined",
        ),
        (
            "do: [{ name: a, run: [echo] }, { name: b, run: [echo, \"{{ a.output.json.y }}\"] }]",
            "member `b`: `run[1]`: `a.output.json` is undefined",
        ),
        (
            "do: [{ name: a, run: [echo], when: \"{{ inputs.n }}\" }]",
            "member `a`: `when` must be `true` or `false`, not an integer",
        ),
        (
            "do: [{ name: a, wait: \"{{ inputs.n }}\" }]",
            "member `a`: `wait`: 61 is longer than the minute that a chain may pause",
        ),
        ("do: [{ name: a, run: [/no/such/program] }]", "member `a`: "),
    ] {
        let error = failed(step, json!({ "n": 61 })).await.error;
        assert!(error.starts_with(expected), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_is_tried_again_within_the_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let step = r#"do:
  - name: flaky
    shell: 'echo x >>tries; test "$(wc -l <tries)" -ge 3 || exit 75'
    cwd: "{{ inputs.folder }}"
    retry: { attempts: 5, delay: 1ms, on: "exit:75" }
  - { name: tries, run: [cat, "{{ inputs.folder }}/tries"] }"#;
    let output = done(step, json!({ "folder": folder.path() })).await;
    assert_eq!(output["tries"]["output"]["stdout"], "x\nx\nx\n");
    let hopeless = "do: [{ name: a, run: [\"false\"], retry: { attempts: 2, delay: 1ms, on: \"exit:75\" } }]";
    assert_eq!(failed(hopeless, json!({})).await.error, "member `a`: exit code 1");
}

/// Whoever asks for more patience than a chain has is asked again by the next attempt of the step.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_for_time_is_given_it_here_or_by_the_engine() {
    let server = Server::start(|asked| {
        let wait = if asked.target == "/short" { "0" } else { "3600" };
        Reply::new(503, &[("retry-after", wait)], "busy")
    })
    .await;
    let step = "do: [{ name: a, http: { url: \"{{ inputs.url }}\" }, retry: { attempts: 3, delay: 1ms } }]";
    for (path, asked, wait) in [("/short", 3, Span::ZERO), ("/long", 4, Span::hours(1))] {
        let failed = failed(step, json!({ "url": server.url(path) })).await;
        assert_eq!(failed.retry_after, Some(wait));
        assert!(failed.error.starts_with("member `a`: GET http://"), "{}", failed.error);
        assert_eq!(failed.cause.unwrap().0.as_str(), "status:503");
        assert_eq!(server.count(), asked);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_runs_out_of_time_is_gone_before_the_next_begins() {
    let folder = tempfile::tempdir().unwrap();
    // Whoever is first stays; the next one looks whether it is still there, and if so, that is final.
    let script =
        format!("if test -e pid; then ! test -e /proc/$(cat pid); else echo $$ >pid; {STUBBORN}; fi");
    let step = "do:
  - name: a
    do:
      - { name: b, run: [sh, -c, \"{{ inputs.script }}\"], env: { FIFO: /dev/null }, cwd: \"{{ inputs.cwd }}\" }
    timeout: 500ms
    retry: { attempts: 20, delay: 1ms, on: timeout }";
    let output = done(step, json!({ "script": script, "cwd": folder.path() })).await;
    assert_eq!(output["a"]["state"], "succeeded");
    assert!(folder.path().join("pid").exists());
    let failed = failed("do: [{ name: a, run: [sleep, \"1000\"], timeout: 50ms }]", json!({})).await;
    assert_eq!(failed.error, "member `a`: it ran longer than its timeout of 50ms");
    assert_eq!(failed.cause.unwrap().0.as_str(), "timeout");
}

/// A chain in whose second member a stubborn process runs.
fn stubborn(witness: &Witness, after: &Path) -> Payload {
    let step = "do:
  - { name: first, run: [echo, hello] }
  - { name: second, run: [sh, -c, \"{{ inputs.script }}\"], env: { FIFO: \"{{ inputs.fifo }}\" } }
  - { name: third, run: [touch, \"{{ inputs.after }}\"] }";
    order(step, &json!({ "script": STUBBORN, "fifo": witness.path(), "after": after }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_is_stopped_has_stopped_when_its_process_is_gone() {
    let (mut bench, folder) = (bench(|_| {}), tempfile::tempdir().unwrap());
    let (witness, after) = (Witness::new(), folder.path().join("after"));
    let lease = bench.engine.hand_out(stubborn(&witness, &after));
    let pid = witness.line();
    assert!(is_alive(&pid));
    bench.engine.stop(lease);
    assert_eq!(within(bench.engine.outcome(lease)).await, Outcome::Stopped);
    assert!(!is_alive(&pid));
    witness.gone();
    assert!(!after.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_renewals_its_process_is_gone_before_the_lease_ends() {
    let (mut bench, folder) = (bench(|_| {}), tempfile::tempdir().unwrap());
    bench.engine.lease = Span::seconds(3);
    bench.engine.stop_renewing();
    let (witness, after) = (Witness::new(), folder.path().join("after"));
    let given_up = bench.engine.hand_out(stubborn(&witness, &after));
    witness.gone();
    assert!(!after.exists());
    bench.engine.lease = Span::seconds(30);
    let next = bench.engine.hand_out(order("do: [{ name: a, run: [echo, hi] }]", &json!({})));
    assert!(next != given_up);
    output(within(bench.engine.outcome(next)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn renewals_let_later_members_outlive_the_first_lease() {
    let mut bench = bench(|_| {});
    bench.engine.lease = Span::seconds(1);
    let step = "do: [{ name: a, run: [sleep, \"1.2\"] }, { name: b, wait: 500ms }, { name: c, run: [sleep, \"1.2\"] }]";
    let output = output(carry_out(&mut bench, step, json!({})).await);
    assert_eq!(output["c"]["output"]["exit_code"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_processes_of_a_killed_worker_go_with_it() {
    let (witness, folder) = (Witness::new(), tempfile::tempdir().unwrap());
    let mut worker = worker_process("30000", &stubborn(&witness, &folder.path().join("after")));
    witness.line();
    worker.kill().unwrap();
    assert_eq!(witness.gone(), [""; 0], "nobody writes any more");
    worker.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_or_a_pause_is_stopped_at_once() {
    let mut bench = bench(|settings: &mut Settings| settings.grace = Span::seconds(600));
    let mut server = Server::start(|_| Reply::unfinished("HTTP/1.1 200 OK\r\n")).await;
    let step = "do: [{ name: a, do: [{ name: b, http: { url: \"{{ inputs.url }}\" } }] }]";
    let lease = bench.engine.hand_out(order(step, &json!({ "url": server.url("/") })));
    server.asked().await;
    bench.engine.stop(lease);
    assert_eq!(within(bench.engine.outcome(lease)).await, Outcome::Stopped);
    server.closed().await;
    let pausing = "do: [{ name: a, run: [sh, -c, \"echo up >$FIFO\"], env: { FIFO: \"{{ inputs.fifo }}\" } }, { name: b, wait: 1m }]";
    let endless = "do: [{ name: a, do: [{ name: b, run: [\"false\"], when: \"{{ inputs.no }}\" }], repeat: { while: \"{{ true }}\", max: 100000 } }]";
    let witness = Witness::new();
    let lease = bench.engine.hand_out(order(pausing, &json!({ "fifo": witness.path() })));
    assert_eq!(witness.line(), "up");
    bench.engine.stop(lease);
    assert_eq!(within(bench.engine.outcome(lease)).await, Outcome::Stopped);
    let lease = bench.engine.hand_out(order(endless, &json!({ "no": false })));
    bench.engine.stop(lease);
    assert_eq!(within(bench.engine.outcome(lease)).await, Outcome::Stopped);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_has_let_go_when_its_chain_has_stopped() {
    let (mut bench, folder) = (bench(|_| {}), tempfile::tempdir().unwrap());
    let other = rusqlite::Connection::open(folder.path().join("data.db")).unwrap();
    other.execute_batch("create table t (n integer)").unwrap();
    other.busy_timeout(std::time::Duration::ZERO).unwrap();
    let step = "do:
  - { name: first, run: [echo, hello] }
  - name: fill
    sql:
      connection: db
      query: insert into t with recursive c(n) as (select 1 union all select n + 1 from c) select n from c";
    let lease = bench.engine.hand_out(in_folder(&order(step, &json!({})), folder.path()));
    until("it writes", async || other.execute_batch("begin immediate; rollback").is_err()).await;
    bench.engine.stop(lease);
    assert_eq!(within(bench.engine.outcome(lease)).await, Outcome::Stopped);
    assert_eq!(other.execute_batch("begin immediate; rollback"), Ok(()), "the file is free");
}

#[tokio::test(flavor = "multi_thread")]
async fn shutting_down_hands_chains_back() {
    let (mut bench, folder) = (bench(|_| {}), tempfile::tempdir().unwrap());
    let witness = Witness::new();
    let lease = bench.engine.hand_out(stubborn(&witness, &folder.path().join("after")));
    witness.line();
    bench.control.shut_down();
    while within(bench.engine.next()).await != Heard::Reported(lease, Outcome::HandedBack) {}
    assert_eq!(within(bench.engine.next()).await, Heard::Left);
    witness.gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_looked_up_by_the_member_that_needs_them_and_hidden_everywhere() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let lines: Arc<Mutex<String>> = Arc::default();
    let kept = lines.clone();
    let mut bench = bench(|settings| {
        settings.logs = Arc::new(move |line| kept.lock().unwrap().push_str(&line.text));
    });
    let mut server = Server::start(Reply::echo).await;
    // The first member makes the secret that the others use: nobody looked for it before.
    let step = "do:
  - { name: make, shell: 'printf \"open sesame\" >\"$FILE\"', env: { FILE: \"{{ inputs.file }}\" } }
  - { name: say, shell: 'echo \"it is $TOKEN\"', env: { TOKEN: { secret: \"file:PATH\" } } }
  - { name: ask, http: { url: \"{{ inputs.url }}\", auth: { bearer: { secret: \"file:PATH\" } } } }
  - { name: fail, shell: 'echo \"wrong: $TOKEN\" >&2; exit 1', env: { TOKEN: { secret: \"file:PATH\" } } }";
    let step = step.replace("PATH", &file.path().display().to_string());
    let inputs = json!({ "file": file.path(), "url": server.url("/") });
    let failed = failure(carry_out(&mut bench, &step, inputs).await);
    assert_eq!(failed.error, "member `fail`: exit code 1: wrong: ***");
    assert_eq!(server.asked().await.header("authorization"), Some("Bearer open sesame"));
    let output = json_of(failed.output.as_ref());
    assert_eq!(output["say"]["output"]["stdout"], "it is ***\n");
    assert_eq!(output["ask"]["output"]["body"]["headers"]["authorization"], "Bearer ***");
    let lines = lines.lock().unwrap().clone();
    assert!(lines.contains("it is ***"), "{lines}");
    for text in [output.to_string(), lines] {
        assert!(!text.contains("sesame"), "{text}");
    }
}
