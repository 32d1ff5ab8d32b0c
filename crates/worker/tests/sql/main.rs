//! Statements, against the servers that `cargo xtask services` starts and against files.

#[path = "../support/mod.rs"]
mod support;

mod mariadb;
mod postgres;
mod sqlite;

use serde_json::{Value, json};
use support::engine::Heard;
use support::{Bench, bench, failure, output, until, within};
use tidegate_core::protocol::{Failure, Lease, Outcome, Payload};

/// A worker, and a database that it is asked to ask.
struct Asker {
    bench: Bench,
    /// The URL, or where it is found.
    url: Value,
    max: u32,
}

impl Asker {
    fn new(url: impl Into<Value>) -> Asker {
        Asker { bench: bench(|_| {}), url: url.into(), max: 4 }
    }

    fn order(&self, statements: &[(&str, Value)], transaction: bool) -> Payload {
        let statement =
            |(query, params): &(&str, Value)| json!({ "query": query, "params": params.to_string() });
        let statements: Vec<Value> = statements.iter().map(statement).collect();
        let connection = json!({ "name": "db", "url": self.url, "max": self.max });
        let order = json!({ "connection": connection, "statements": statements, "transaction": transaction });
        Payload::new(json!({ "sql": order }).to_string())
    }

    /// Hands out one statement, and does not wait.
    fn hand_out(&mut self, query: &str, params: Value) -> Lease {
        let order = self.order(&[(query, params)], false);
        self.bench.engine.hand_out(order)
    }

    async fn outcome(&mut self, query: &str, params: Value) -> Outcome {
        let lease = self.hand_out(query, params);
        within(self.bench.engine.outcome(lease)).await
    }

    async fn ask(&mut self, query: &str, params: Value) -> Value {
        output(self.outcome(query, params).await)
    }

    /// The only value of the only row, which is called `v`.
    async fn value(&mut self, query: &str, params: Value) -> Value {
        let answer = self.ask(query, params).await;
        assert_eq!(answer["count"], 1, "{query}: {answer}");
        answer["rows"][0]["v"].clone()
    }

    async fn failure(&mut self, query: &str, params: Value) -> Failure {
        failure(self.outcome(query, params).await)
    }

    async fn transaction(&mut self, statements: &[(&str, Value)]) -> Outcome {
        let order = self.order(statements, true);
        let lease = self.bench.engine.hand_out(order);
        within(self.bench.engine.outcome(lease)).await
    }

    /// How the next attempt ends, whichever it is.
    async fn next_end(&mut self) -> (Lease, Outcome) {
        loop {
            if let Heard::Reported(lease, outcome) = within(self.bench.engine.next()).await {
                return (lease, outcome);
            }
        }
    }
}

fn cause(failure: &Failure) -> Option<&str> {
    failure.cause.as_ref().map(|cause| cause.0.as_str())
}

/// A server that `cargo xtask services` started.
fn server(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: use `cargo xtask services`"))
}

/// A name that no other test uses.
fn fresh(what: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static MADE: AtomicU32 = AtomicU32::new(0);
    format!("{what}_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed))
}

/// The password in a URL.
fn password(url: &str) -> String {
    let (user, _) = url.rsplit_once('@').expect("there is a user");
    user.rsplit_once(':').expect("there is a password").1.to_owned()
}

/// A reference to a file that holds this.
fn secret(file: &tempfile::NamedTempFile, text: &str) -> Value {
    std::fs::write(file.path(), text).unwrap();
    json!({ "secret": format!("file:{}", file.path().display()) })
}

/// An address of this machine where nobody listens.
fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}
