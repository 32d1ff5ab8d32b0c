//! A SQLite store that several processes share keeps the contract, and there is one owner at a time among them.

mod conformance;

use conformance::ledger::Ledger;
use conformance::{Backend, conformance};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tempfile::TempDir;
use tidegate_core::ids::{Name, RunId};
use tidegate_core::time::Span;
use tidegate_store::{Commit, Contact, Reads, SharedSqliteStore, SqliteStore, Store, StoreError};

struct Shared(TempDir);

impl Shared {
    fn path(&self) -> PathBuf {
        self.0.path().join("store.db")
    }

    fn address(&self) -> PathBuf {
        self.0.path().join("store.db.address")
    }
}

impl Backend for Shared {
    type Store = SharedSqliteStore;
    const SHARED: bool = true;

    fn fresh() -> Self {
        Shared(TempDir::new().unwrap())
    }

    fn open(&self) -> SharedSqliteStore {
        SharedSqliteStore::open(self.path()).unwrap()
    }

    fn post(&self, id: RunId, content: &str) {
        SqliteStore::post(self.path(), id, content.as_bytes()).unwrap();
    }
}

conformance!(Shared);

fn contact(port: u16) -> Contact {
    Contact { address: format!("127.0.0.1:{port}"), token: "token".to_owned() }
}

/// Opens it as a server of this name would, and asks for the lead.
fn served(place: &Shared, name: &str, port: u16) -> (SharedSqliteStore, Option<u32>) {
    let mut store = place.open();
    store.announce(&Name::new(name), &contact(port)).unwrap();
    let term = store.lead(&Name::new(name), None, Span::ZERO).unwrap();
    assert!(term.as_ref().is_none_or(|term| !term.alone), "others may be there");
    (store, term.map(|term| term.term))
}

#[test]
fn one_leads_and_the_next_takes_over_when_it_resigns_or_goes() {
    let place = Shared::fresh();
    let (mut first, term) = served(&place, "first", 1);
    let first_term = term.unwrap();
    let (mut second, none) = served(&place, "second", 2);
    assert_eq!(none, None);
    let leader = second.leader().unwrap().unwrap();
    assert_eq!((leader.server, leader.contact), (Name::new("first"), Some(contact(1))));

    first.resign(first_term).unwrap();
    assert!(!place.address().exists());
    let second_term = second.lead(&Name::new("second"), None, Span::ZERO).unwrap().unwrap().term;
    assert!(second_term > first_term);
    assert_eq!(first.leader().unwrap().unwrap().contact, Some(contact(2)));
    assert_eq!(first.lead(&Name::new("first"), Some(first_term), Span::ZERO), Ok(None));

    drop(second);
    assert!(!place.address().exists());
    let third = first.lead(&Name::new("first"), None, Span::ZERO).unwrap().unwrap();
    assert!(third.term > second_term && !third.clean);
}

#[test]
fn who_follows_reads_and_commits_nothing() {
    let place = Shared::fresh();
    let (store, term) = served(&place, "first", 1);
    let mut first = Ledger { place, store, term: term.unwrap(), sequence: 0 };
    let (mut second, _) = served(&first.place, "second", 2);
    assert_eq!(second.commit(&first.entry(Vec::new())), Ok(Commit::Deposed));
    first.write(Vec::new());
    assert_eq!(second.last(), Ok(1));
    assert_eq!(second.load().unwrap().snapshot, first.load());
}

#[test]
fn an_owner_that_does_not_share_has_it_for_itself() {
    let place = Shared::fresh();
    let mut owner = SqliteStore::open(place.path()).unwrap();
    owner.lead(&Name::new("local"), None, Span::ZERO).unwrap();
    // What an earlier process left says nothing about this one.
    fs::write(place.address(), r#"{"server":"first","address":"127.0.0.1:1","token":"t"}"#).unwrap();
    fs::set_permissions(place.address(), Permissions::from_mode(0o600)).unwrap();
    let refused = SharedSqliteStore::open(place.path()).err();
    assert_eq!(refused, Some(StoreError::InUse("by this very process".to_owned())));
    drop(owner);
    let (_first, term) = served(&place, "second", 2);
    assert!(term.is_some());
    let refused = SqliteStore::open(place.path()).err();
    assert_eq!(refused, Some(StoreError::InUse("by this very process".to_owned())), "nor while it is shared");
}

#[test]
fn an_address_that_others_could_have_written_is_not_believed() {
    let place = Shared::fresh();
    let _first = served(&place, "first", 1);
    fs::set_permissions(place.address(), Permissions::from_mode(0o666)).unwrap();
    let Err(StoreError::InUse(why)) = SharedSqliteStore::open(place.path()) else { panic!("it is believed") };
    assert!(why.ends_with("store.db.address can be read or written by other users"), "{why}");
}
