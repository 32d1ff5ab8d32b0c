//! What the tests share. None of them sleeps: they wait for pipes to close and for messages.

// Each test binary uses a part of this.
#![allow(dead_code)]

pub mod engine;
pub mod server;

use engine::Engine;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tidegate_core::protocol::{Failure, Outcome, Payload};
use tidegate_core::time::Span;
use tidegate_worker::{Control, GuardianCommand, Settings, Worker, WorkerError};
use tokio::task::JoinHandle;

/// Long enough for a crowded machine; a test that passes never waits for it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The example `fixture`, which `cargo test` builds beside the tests.
pub fn fixture() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let fixture = tests.ancestors().nth(2).unwrap().join("examples/fixture");
    assert!(fixture.exists(), "{} is missing: cargo build -p tidegate-worker --examples", fixture.display());
    fixture
}

pub fn guardian() -> GuardianCommand {
    GuardianCommand { program: fixture(), args: vec!["guardian".into()] }
}

/// A worker in a process (and group) of its own, with one order under a lease of so many milliseconds.
pub fn worker_process(lease: &str, order: &Payload) -> Child {
    Command::new(fixture())
        .args(["worker", lease, std::str::from_utf8(order.bytes()).unwrap()])
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap()
}

pub struct Bench {
    pub engine: Engine,
    pub control: Control,
    pub worker: JoinHandle<Result<(), WorkerError>>,
}

/// A worker in this process, with an engine that hands out what the test says.
pub fn bench(change: impl FnOnce(&mut Settings)) -> Bench {
    let mut settings = Settings::new("bench", 1, Some(guardian()));
    settings.grace = Span::millis(200);
    change(&mut settings);
    let (engine, link) = Engine::new();
    let worker = Worker::new(settings);
    let control = worker.control();
    Bench { engine, control, worker: tokio::spawn(worker.run(link)) }
}

impl Bench {
    /// Runs one process to its end.
    pub async fn run(&mut self, order: Value) -> Outcome {
        self.carry_out(run(order)).await
    }

    /// Sends one request and waits for what becomes of it.
    pub async fn ask(&mut self, order: Value) -> Outcome {
        self.carry_out(http(order)).await
    }

    async fn carry_out(&mut self, order: Payload) -> Outcome {
        let lease = self.engine.hand_out(order);
        within(self.engine.outcome(lease)).await
    }
}

/// The order `run`, from its fields.
pub fn run(fields: Value) -> Payload {
    Payload::new(json!({ "run": fields }).to_string())
}

/// The order for a request, from what differs from the usual.
pub fn http(fields: Value) -> Payload {
    let mut order = json!({ "method": "GET", "redirects": 5, "max_size": 1024 });
    order.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    Payload::new(json!({ "http": order }).to_string())
}

/// The order to run a shell script with `$FIFO` set.
pub fn script(text: &str, witness: &Witness) -> Payload {
    run(json!({ "argv": ["sh", "-c", text], "env": { "FIFO": witness.path() } }))
}

pub fn output(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Succeeded(payload) => serde_json::from_slice(payload.bytes()).unwrap(),
        other => panic!("expected success, got {other:?}"),
    }
}

pub fn failure(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("expected a failure, got {other:?}"),
    }
}

pub fn error(outcome: Outcome) -> String {
    failure(outcome).error
}

pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// Looks until it is so. Every look asks a server, so this is no idle loop.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let begin = Instant::now();
    while !is_so().await {
        assert!(begin.elapsed() < PATIENCE, "it never happens that {what}");
    }
}

fn make_fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

/// A named pipe that processes hold open: it shows what they write to it, and when the last of them is gone.
pub struct Witness {
    directory: tempfile::TempDir,
    lines: mpsc::Receiver<String>,
}

impl Witness {
    pub fn new() -> Witness {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fifo");
        make_fifo(&path);
        make_fifo(&directory.path().join("fifo.back"));
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || {
            // Opens when the first process does, ends when the last one is gone.
            let fifo = std::fs::File::open(path).unwrap();
            for line in BufReader::new(fifo).lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        Witness { directory, lines }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("fifo")
    }

    /// Lets a script go on that reads from `$FIFO.back`.
    pub fn answer(&self, text: &str) {
        std::fs::write(self.directory.path().join("fifo.back"), text).unwrap();
    }

    /// The next line somebody wrote.
    pub fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("somebody writes a line")
    }

    /// Waits until nobody holds the pipe any more, and gives what was written until then.
    pub fn gone(&self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => lines.push(line),
                Err(mpsc::RecvTimeoutError::Disconnected) => return lines,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("somebody still lives; wrote {lines:?}"),
            }
        }
    }
}
