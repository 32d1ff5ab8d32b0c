//! What cannot be understood is refused, and nothing is guessed.

use crate::conformance::Backend;
use crate::place::{Place, ledger, other_job};
use tidegate_store::{PostgresStore, Reads, StoreError};

/// Puts an entry of somebody's making after the first, and loads.
fn load_after(sequence: u64, bytes: &str) -> StoreError {
    let mut ledger = ledger();
    ledger.write([other_job(1)]);
    assert_eq!(ledger.load().nodes.len(), 1);
    let admin = ledger.place.admin();
    admin.run(&format!(
        "insert into tidegate.journal values ({sequence}, 1, gen_random_uuid(), 1, '{bytes}')"
    ));
    let error = ledger.store.load().expect_err("it cannot be understood");
    assert_eq!(admin.value("select sequence from tidegate.position"), "1", "nothing is stepped over");
    admin.run("delete from tidegate.journal where sequence > 1");
    assert_eq!(ledger.load().nodes.len(), 1);
    error
}

#[test]
fn a_torn_entry_is_damage() {
    assert_eq!(load_after(2, r"\x0202"), StoreError::Broken("the entry is damaged".to_owned()));
    assert_eq!(load_after(2, r"\x"), StoreError::Broken("an entry is never empty".to_owned()));
}

#[test]
fn an_entry_of_a_newer_version_is_left_to_it() {
    assert_eq!(load_after(2, r"\x63"), StoreError::Newer { found: 99, known: 2 });
}

#[test]
fn a_gap_is_damage() {
    let missing = || StoreError::Broken("entry 2 is missing in the journal".to_owned());
    let elsewhere = r"\x020301000000000000";
    assert_eq!(load_after(3, elsewhere), missing());
    assert_eq!(load_after(5_000, elsewhere), missing());
}

#[test]
fn a_newer_schema_is_refused_by_servers_and_readers() {
    let place = Place::fresh();
    drop(place.open());
    place.admin().run("insert into tidegate.migration values (99, 'from tomorrow', '')");
    let newer = |error| matches!(error, StoreError::Newer { found: 99, known: 7 });
    assert!(PostgresStore::open(&place.0.url).is_err_and(newer));
    assert!(PostgresStore::open_reader(&place.0.url).is_err_and(newer));
}

#[test]
fn what_is_not_a_store_is_left_alone() {
    let place = Place::fresh();
    let broken = |error| matches!(error, StoreError::Broken(_));
    assert!(PostgresStore::open_reader(&place.0.url).is_err_and(broken));
    place.admin().run("create schema tidegate; create table tidegate.song (title text)");
    assert!(PostgresStore::open(&place.0.url).is_err_and(broken));
    assert_eq!(place.admin().value("select count(*) from tidegate.song"), "0");
}
