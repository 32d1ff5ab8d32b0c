//! What the tests share. None of them sleeps: they wait for ends, for messages and for gates.

// Each test binary uses a part of this.
#![allow(dead_code)]

#[path = "../../../store/tests/database/mod.rs"]
pub mod database;

pub use database::{Database, Route};

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tidegate::{Run, RunId, Tidegate};
use tokio::sync::{Semaphore, mpsc};

/// Long enough for a crowded machine; a test that passes never waits for it.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// An example, which `cargo test` builds beside the tests.
pub fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let example = tests.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(example.exists(), "{} is missing: cargo build -p tidegate --examples", example.display());
    example
}

/// A database of its own. Whoever makes it waits for the server.
pub async fn database() -> Arc<Database> {
    database_by(Route::Direct).await
}

/// The same, reached in a certain way.
pub async fn database_by(route: Route) -> Arc<Database> {
    tokio::task::spawn_blocking(move || Arc::new(Database::fresh(route))).await.unwrap()
}

/// Drops it, which waits for the server too.
pub async fn drop_database(database: Arc<Database>) {
    tokio::task::spawn_blocking(move || drop(database)).await.unwrap();
}

/// Letters are taken in soon, and nobody is told when.
pub async fn accepted(tide: &Tidegate, id: RunId) -> Run {
    loop {
        match tide.run(id).await {
            Ok(run) => return run,
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Runs a test over every kind of store.
pub async fn on_every_store<R: Future<Output = ()>>(test: impl Fn(Tidegate) -> R) {
    let directory = tempfile::tempdir().unwrap();
    let sqlite = format!("sqlite:{}", directory.path().join("test.db").display());
    let database = database().await;
    for address in ["memory:", &sqlite, &database.url] {
        let tide = Tidegate::open(address).await.unwrap();
        within(test(tide.clone())).await;
        within(tide.close()).await;
    }
    drop_database(database).await;
}

/// A door that functions stand before until the test lets them through, one by one. It counts them.
pub struct Gate {
    doors: Semaphore,
    inside: AtomicUsize,
    most: AtomicUsize,
    arrived: mpsc::UnboundedSender<String>,
}

impl Gate {
    pub fn new() -> (&'static Gate, mpsc::UnboundedReceiver<String>) {
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let gate = Gate { doors: Semaphore::new(0), inside, most, arrived };
        (Box::leak(Box::new(gate)), arrivals)
    }

    pub async fn pass(&self, name: String) {
        let now = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        // A test that has ended does not listen any more.
        let _ = self.arrived.send(name);
        let _inside = Inside(self);
        self.doors.acquire().await.unwrap().forget();
    }

    pub fn open(&self, times: usize) {
        self.doors.add_permits(times);
    }

    /// How many stood inside at once, at most.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

/// Counts down also when the function is dropped.
struct Inside<'a>(&'a Gate);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}
