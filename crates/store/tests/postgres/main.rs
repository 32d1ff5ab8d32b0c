//! The PostgreSQL store keeps the contract, straight and through a pool that gives every transaction another session,
//! and what it promises besides: whatever happens to connections, projectors and servers, entries are taken once and
//! the tables follow.

#[path = "../conformance/mod.rs"]
mod conformance;
#[path = "../database/mod.rs"]
mod database;
#[path = "../golden/mod.rs"]
mod golden;

mod fence;
mod letters;
mod outages;
mod place;
mod plans;
mod projectors;
mod proxy;
mod refusals;
mod schema;

use conformance::{Backend, conformance};
use database::{Database, Route};
use place::{Place, post};
use tidegate_core::ids::RunId;
use tidegate_store::PostgresStore;

struct Pooled(Database);

impl Backend for Pooled {
    type Store = PostgresStore;
    const SHARED: bool = true;

    fn fresh() -> Self {
        Pooled(Database::fresh(Route::Pooled))
    }

    fn open(&self) -> PostgresStore {
        PostgresStore::open(&self.0.url).unwrap()
    }

    fn post(&self, id: RunId, content: &str) {
        post(&self.0, id, content);
    }
}

mod direct {
    use super::{Place, conformance};
    conformance!(Place);
}

mod pooled {
    use super::{Pooled, conformance};
    conformance!(Pooled);
}
