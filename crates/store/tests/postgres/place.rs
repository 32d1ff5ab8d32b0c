//! A store of its own for a test, reached straight.

use crate::conformance::Backend;
use crate::conformance::ledger::Ledger;
use crate::conformance::samples::{add, job};
use crate::database::{Admin, Database, Route};
use std::time::{Duration, Instant};
use tidegate_core::ids::{NodeId, RunId};
use tidegate_core::protocol::{Body, NodeRow, Write};
use tidegate_store::PostgresStore;

pub struct Place(pub Database);

impl Backend for Place {
    type Store = PostgresStore;
    const SHARED: bool = true;

    fn fresh() -> Self {
        Place(Database::fresh(Route::Direct))
    }

    fn open(&self) -> PostgresStore {
        PostgresStore::open(&self.0.url).unwrap()
    }

    fn post(&self, id: RunId, content: &str) {
        post(&self.0, id, content);
    }
}

/// Leaves a letter under an id of one's own.
pub fn post(database: &Database, id: RunId, content: &str) {
    let id = format!("{:032x}", id.0);
    database.admin().run(&format!("insert into tidegate.mailbox (id, content) values ('{id}', '{content}')"));
}

impl Place {
    pub fn admin(&self) -> Admin {
        self.0.admin()
    }
}

pub fn ledger() -> Ledger<Place> {
    Ledger::open()
}

/// A job that differs from others by its number.
pub fn other_job(node: u64) -> Write {
    let mut row = NodeRow { node: NodeId(node), ..job() };
    if let Body::Job(body) = &mut row.body {
        (body.id, body.idempotency) = (RunId(node.into()), None);
    }
    add(row)
}

/// Looks again and again until it is so. Nobody tells a test what another session of the database is doing.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: not within 20 s");
        std::thread::yield_now();
    }
}
