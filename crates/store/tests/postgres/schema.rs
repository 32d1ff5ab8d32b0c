//! The schema: made once, whoever comes first, and legible.

use crate::conformance::Backend;
use crate::conformance::samples::granted;
use crate::place::{Place, ledger, other_job};
use std::time::Duration;
use tidegate_core::ids::{NodeId, TaskId};
use tidegate_store::{PostgresStore, Reads};

#[test]
fn servers_that_start_together_do_not_collide() {
    let place = Place::fresh();
    let url = place.0.url.as_str();
    std::thread::scope(|scope| {
        let servers: Vec<_> =
            (0..8).map(|_| scope.spawn(move || PostgresStore::open(url).map(drop))).collect();
        for server in servers {
            assert_eq!(server.join().unwrap(), Ok(()));
        }
    });
    assert_eq!(place.admin().value("select count(*) from tidegate.migration"), "1");
}

#[test]
fn rows_can_be_read_without_us() {
    let mut ledger = ledger();
    ledger.write([other_job(1), granted(TaskId::node(NodeId(1)), 1)]);
    assert!(ledger.store.reach(1, Duration::ZERO).unwrap());
    ledger.load();
    let row = "select kind, name, state, worker, payload::json ->> 'to', tags ->> 'team' from tidegate.task";
    let words = ["job", "mail.send", "running", "w1", "a", "ü"].map(|word| Some(word.to_owned()));
    assert_eq!(ledger.place.admin().rows(row), [words]);
}
