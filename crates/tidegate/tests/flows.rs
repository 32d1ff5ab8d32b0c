//! Flows that call functions of this program.

mod support;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use support::{on_every_store, within};
use tidegate::{Error, State, Tidegate};

const SQUARES: &str = "
flow: squares
inputs: { upto: { type: integer, required: true } }
steps:
  each:
    with_items: '{{ range(inputs.upto) | list }}'
    concurrency: 2
    action: square
    inputs: { number: '{{ item }}' }
outputs: { squares: \"{{ steps.each.output['items'] | map(attribute='output') | list }}\" }
";

fn square(tide: &Tidegate) {
    tide.action("square", |_, input: Value| async move {
        input["number"].as_i64().map(|number| number * number).ok_or("not a number")
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_is_submitted_by_name_and_its_inputs_are_checked() {
    on_every_store(async |tide| {
        square(&tide);
        tide.flow(SQUARES).unwrap();
        let _working = tide.work(4).start().await.unwrap();
        let run = tide.submit("squares", &json!({ "upto": 4 })).await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap(), json!({ "squares": [0, 1, 4, 9] }));
        let wrong = tide.submit("squares", &json!({ "upTo": "x" })).await.unwrap_err().to_string();
        let says = "`squares` cannot be submitted: input `upto` is required; \
                    there is no input `upTo`; did you mean `upto`?";
        assert_eq!(wrong, says);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_earlier_process_declared_is_known_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", directory.path().join("test.db").display());
    let tide = Tidegate::open(&address).await.unwrap();
    square(&tide);
    tide.flow(SQUARES).unwrap();
    tide.submit("squares", &json!({ "upto": 0 })).await.unwrap();
    within(tide.close()).await;

    let tide = Tidegate::open(&address).await.unwrap();
    let wrong = tide.submit("squares", &json!({})).await.unwrap_err();
    assert!(matches!(wrong, Error::Inputs { .. }), "{wrong}");
    let run = tide.submit("squares", &json!({ "upto": 1 })).await.unwrap();
    square(&tide);
    let _working = tide.work(1).start().await.unwrap();
    assert_eq!(within(run.result::<Value>()).await.unwrap(), json!({ "squares": [0] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_step_fails_the_run_and_a_process_waits_for_who_can_run_it() {
    on_every_store(async |tide| {
        square(&tide);
        tide.flow("flow: bad\nsteps: { it: { action: square, inputs: { number: x } } }\n").unwrap();
        tide.flow("flow: shell\nsteps: { it: { run: [ls] } }\n").unwrap();
        let _working = tide.work(1).start().await.unwrap();
        let bad = tide.submit("bad", &()).await.unwrap();
        let ending = bad.wait().await.unwrap();
        assert_eq!(ending.state(), State::Failed);
        assert!(ending.error().is_some_and(|error| error.contains("not a number")), "{ending:?}");
        let mut entries = tide.engine().subscribe();
        let shell = tide.submit("shell", &()).await.unwrap();
        let step = format!("{}/it", shell.id());
        let why = loop {
            let explained = tide.explain(&step).await.unwrap().unwrap().to_string();
            if !explained.contains("about to ask") {
                break explained;
            }
            entries.recv().await.unwrap();
        };
        assert!(why.contains("no connected worker of queue default can run it"), "{why}");
    })
    .await;
}

/// Answers every request with what it asked for.
fn server() -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let first = lines.next().unwrap_or_default();
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let length = first.len();
            let answer =
                format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{first}");
            // Who does not wait for the answer gets none.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_for_functions_serve_requests_too() {
    let server = server();
    on_every_store(async |tide| {
        let ask = "flow: ask\ninputs: { url: { type: string } }\nsteps:\n  ask: { http: { url: '{{ inputs.url }}' } }\n\
                   outputs: { said: '{{ steps.ask.output.body }}' }\n";
        tide.flow(ask).unwrap();
        let mut nobody = tide.work(0).start().await.unwrap();
        let run = tide.submit("ask", &json!({ "url": format!("http://{server}/here") })).await.unwrap();
        let _working = tide.work(1).start().await.unwrap();
        assert_eq!(within(run.result::<Value>()).await.unwrap(), json!({ "said": "GET /here HTTP/1.1" }));
        within(nobody.stop()).await.unwrap();
    })
    .await;
}
