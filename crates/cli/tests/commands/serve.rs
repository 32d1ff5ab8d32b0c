//! `tidegate serve` and `tidegate dev`, asked over HTTP.

use crate::support::{Test, golden};
use rustix::process::Signal;
use serde_json::{Value as Json, json};
use std::io::{Read, Write};
use std::net::TcpStream;

const GREET: &str = r#"
flow: greet
inputs: { name: { type: string, default: world } }
steps: { hello: { run: [echo, "hello {{ inputs.name }}"] } }
outputs: { said: "{{ steps.hello.output.stdout | trim }}" }
"#;

/// A server, as its first line says where it is.
struct Address(String);

impl Address {
    fn heard(line: &str) -> Address {
        let (_, rest) = line.split_once("http://").expect("it says where it listens");
        Address(rest.split(',').next().expect("there is an address").to_owned())
    }

    /// The status, and the body as JSON.
    fn ask(&self, method: &str, path: &str, body: Option<Json>) -> (u16, Json) {
        let mut stream = TcpStream::connect(&self.0).expect("it listens");
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.0);
        let kind = format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + &kind + &body).as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers with text");
        let (head, body) = answer.split_once("\r\n\r\n").expect("there is a head");
        let status =
            head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("there is a status");
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    fn submit(&self, body: Json) -> String {
        let (status, accepted) = self.ask("POST", "/api/v1/runs", Some(body));
        assert_eq!(status, 201, "{accepted}");
        accepted["id"].as_str().expect("it has an id").to_owned()
    }

    /// As it ended.
    fn ended(&self, id: &str) -> Json {
        self.ask("GET", &format!("/api/v1/runs/{id}?wait=30s"), None).1
    }
}

#[test]
fn a_directory_is_served_and_its_files_are_read_again() {
    let test = Test::new().file("flows/greet.yaml", GREET);
    let test = test.args(["dev", "flows", "--listen", "127.0.0.1:0"]);
    let mut dev = test.start();
    let address = Address::heard(&dev.until("listens at"));
    dev.until("1 of 1 files are declared");
    let run = address.ended(&address.submit(json!({ "name": "greet", "inputs": { "name": "Ada" } })));
    assert_eq!((&run["state"], &run["output"]["said"]), (&json!("succeeded"), &json!("hello Ada")), "{run}");

    let test = test.file("flows/other.yaml", &GREET.replace("flow: greet", "flow: other"));
    dev.until("2 of 2 files are declared");
    assert_eq!(address.ended(&address.submit(json!({ "name": "other" })))["state"], "succeeded");
    let test = test.file("flows/broken.yaml", "flow: [");
    dev.until("error[");
    dev.until("2 of 3 files are declared");
    let (status, flows) = address.ask("GET", "/api/v1/flows", None);
    assert_eq!((status, flows.as_array().map(Vec::len)), (200, Some(2)));
    dev.signal(Signal::INT);
    dev.finish();
    let test = test.args(["runs", "list", "--state", "succeeded"]);
    assert_eq!(test.run().stdout.lines().count(), 2);
}

#[test]
fn a_server_and_a_run_in_its_folder_share_a_store() {
    let test = Test::new().file("greet.yaml", GREET).args(["serve", "--listen", "127.0.0.1:0"]);
    let mut server = test.start();
    let address = Address::heard(&server.until("listens at"));
    let test = test.args(["run", "-q", "greet.yaml", "-o", "json"]);
    assert_eq!(test.run().stdout, "{\"said\":\"hello world\"}\n");
    let (_, runs) = address.ask("GET", "/api/v1/runs", None);
    assert_eq!(
        (&runs["items"][0]["name"], &runs["items"][0]["state"]),
        (&json!("greet"), &json!("succeeded"))
    );
    server.signal(Signal::TERM);
    server.finish();
}

#[test]
fn nobody_else_is_served_without_a_token() {
    let test = Test::new().args(["serve", "--listen", "0.0.0.0:0"]).status(4);
    golden("serve-without-token", &test.run().stderr);
    let test = test.status(2);
    let mut command = test.command();
    command.env("TIDEGATE_TOKEN", "short");
    golden("serve-short-token", &test.run_as(command).stderr);
    assert!(!test.path(".tidegate").exists(), "nothing was begun");
}

#[test]
fn the_first_token_is_made_where_the_store_is() {
    let test =
        Test::new().args(["token", "create", "root", "--scope", "admin", "--store", ".tidegate/state.db"]);
    let token = test.run().stdout.trim().to_owned();
    assert!(token.starts_with("tide_"), "{token}");
    let test = test.args(["serve", "--listen", "0.0.0.0:0"]);
    let mut server = test.start();
    server.until("tidegate listens at");
    let with_token = |test: &Test| {
        let mut command = test.command();
        command.env("TIDEGATE_TOKEN", &token);
        test.run_as(command)
    };
    let test = test.args(["token", "list"]);
    let rows = with_token(&test).stdout;
    let cells: Vec<&str> = rows.lines().nth(1).expect("there is one").split('\t').collect();
    assert_eq!((cells[1], cells[2], cells[4], cells[5]), ("root", "admin", "command line", ""));
    let id = cells[0].to_owned();
    let test = test.args(["token", "create", "ci", "--scope", "read", "--scope", "run", "--for", "90d"]);
    assert!(with_token(&test).stdout.starts_with("tide_"));
    let test = test.args(["audit"]);
    let changes = with_token(&test).stdout;
    let told: Vec<Vec<&str>> =
        changes.lines().map(|line| line.split('\t').skip(1).take(2).collect()).collect();
    assert_eq!(told, [["BY", "WHAT"], ["root", "token.create"], ["command line", "token.create"]]);
    let test = test.status(4);
    golden("token-needed", &test.run().stderr);
    let test = test.args(["token", "revoke", id.as_str()]).status(0);
    golden("token-revoke", &with_token(&test).stderr.replace(&id, "ID"));
    server.signal(Signal::TERM);
    server.finish();
}

fn heard(test: &Test) -> String {
    let outcome = test.run();
    format!("{}--\n{}", outcome.stdout, outcome.stderr)
}

#[test]
fn a_worker_elsewhere_carries_out_what_a_server_hands_out() {
    let test = Test::new().file("greet.yaml", GREET).args(["serve", "--listen", "127.0.0.1:0"]);
    let mut server = test.start();
    let address = Address::heard(&server.until("listens at"));
    let url = format!("http://{}", address.0);
    let other = Test::new().args(["worker", "--server", &url, "--name", "far"]);
    let mut worker = other.start();
    worker.until("worker far works for");
    let test = test.args(["apply", ".", "--server", &url, "--dry-run"]);
    golden("apply-dry-run", &heard(&test));
    let test = test.args(["apply", ".", "--server", &url]);
    golden("apply", &heard(&test));
    golden("apply-again", &heard(&test));
    let submit = ["submit", "greet", "--server", &url, "--wait", "-q"];
    let test = test.args(submit.into_iter().chain(["-i", "name=Ada"]));
    assert_eq!(test.run().stdout, "said  hello Ada\n");
    let test = test.args(["submit", "great", "--server", &url]).status(3);
    golden("submit-unknown", &test.run().stderr);
    let test =
        test.file("greet.yaml", "flow: greet\nstep: {}\n").args(["apply", ".", "--server", &url]).status(2);
    golden("apply-broken", &test.run().stderr);
    let (_, workers) = address.ask("GET", "/api/v1/workers", None);
    let far = workers.as_array().and_then(|all| all.iter().find(|worker| worker["name"] == "far"));
    assert_eq!(far.map(|far| &far["connected"]), Some(&json!(true)), "{workers}");
    worker.signal(Signal::TERM);
    worker.finish();
    server.signal(Signal::TERM);
    server.finish();
}

#[test]
fn a_worker_with_a_wrong_address_is_told() {
    let test = Test::new().args(["worker", "--server", "nowhere"]).status(2);
    golden("worker-wrong-address", &test.run().stderr);
}

/// The example: a flow whose action is a function of a worker in Python.
#[test]
fn a_worker_in_python_has_functions_for_a_flow() {
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/python");
    let read = |name: &str| std::fs::read_to_string(example.join(name)).expect("it is there");
    let test =
        Test::new().file("flows/squares.yaml", &read("squares.yaml")).file("worker.py", &read("worker.py"));
    let test = test.args(["dev", "flows", "--listen", "127.0.0.1:0"]);
    let mut dev = test.start();
    let address = Address::heard(&dev.until("listens at"));
    let mut python = std::process::Command::new("python3");
    python.arg(test.path("worker.py")).env("TIDEGATE_SERVER", format!("http://{}", address.0));
    python.env_remove("TIDEGATE_TOKEN").env("WORKER_NAME", "far");
    let worker = test.start_as(python, -1);
    let run =
        address.ended(&address.submit(json!({ "name": "squares", "inputs": { "numbers": [2, 3, 4] } })));
    assert_eq!(run["output"]["squares"], json!([4, 9, 16]), "{run}");
    let run = address.ended(&address.submit(json!({ "name": "squares", "inputs": { "numbers": ["x"] } })));
    assert_eq!(run["state"], "failed", "{run}");
    worker.signal(Signal::KILL);
    worker.finish();
    dev.signal(Signal::TERM);
    dev.finish();
}
