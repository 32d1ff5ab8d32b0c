//! A handle outlives its connections.

use crate::conformance::Backend;
use crate::conformance::ledger::{LEASE, lead};
use crate::database::{Database, Route};
use crate::place::{Place, ledger, other_job, until};
use crate::proxy::Proxy;
use std::time::{Duration, Instant};
use tidegate_core::ids::{Name, NodeId, TaskId};
use tidegate_store::{Commit, Entry, PostgresStore, Reads, Store, StoreError};

fn entry(term: u32, sequence: u64) -> Entry {
    let writes = vec![other_job(sequence)];
    Entry {
        sequence,
        term,
        batch: sequence.into(),
        now: Default::default(),
        next: sequence,
        letters: Vec::new(),
        digest: None,
        writes,
    }
}

#[test]
fn an_entry_whose_answer_was_lost_is_taken_once() {
    let place = Place::fresh();
    let proxy = Proxy::before(&place.0.url);
    let mut store = PostgresStore::open(&proxy.url).unwrap();
    let term = lead(&mut store);
    for sequence in 1..=10 {
        // Of those who talk to the database, the projector may be the one whose answer is lost; then it tries again.
        proxy.lose_the_next_answer();
        let entry = entry(term, sequence);
        until("it is taken", || match store.commit(&entry) {
            Ok(commit) => commit == Commit::Done,
            Err(error) => !error.may_pass(),
        });
        until("an answer was lost", || proxy.has_lost_it() || store.leader().is_err());
    }
    let loaded = store.load().unwrap();
    assert_eq!((loaded.sequence, loaded.snapshot.nodes.len()), (10, 10));
    let journal = "select count(*), max(sequence) from tidegate.journal";
    assert_eq!(place.admin().rows(journal), [[Some("10".to_owned()), Some("10".to_owned())]]);
}

#[test]
fn a_database_that_stops_and_starts_again_is_used_again() {
    let place = Place::fresh();
    let proxy = Proxy::before(&place.0.url);
    let mut store = PostgresStore::open(&proxy.url).unwrap();
    let mut reader = store.reader().unwrap();
    let term = lead(&mut store);
    assert_eq!(store.commit(&entry(term, 1)), Ok(Commit::Done));
    proxy.stop();
    assert!(matches!(store.commit(&entry(term, 2)), Err(StoreError::Unusable(_))));
    assert!(matches!(reader.entries(0, 9), Err(StoreError::Unusable(_))));
    proxy.pass();
    assert_eq!(store.commit(&entry(term, 2)), Ok(Commit::Done));
    assert_eq!(reader.entries(0, 9).unwrap().unwrap().len(), 2);
    assert_eq!(store.load().unwrap().snapshot.nodes.len(), 2);
}

#[test]
fn sessions_that_an_operator_ended_are_replaced() {
    let mut ledger = ledger();
    let kill = "select pg_terminate_backend(pid) from pg_stat_activity \
                where datname = current_database() and pid <> pg_backend_pid()";
    for node in 1..=5 {
        ledger.place.admin().run(kill);
        ledger.write([other_job(node)]);
    }
    ledger.place.admin().run(kill);
    assert_eq!(ledger.load().nodes.len(), 5);
}

#[test]
fn a_database_that_stalls_gives_an_unknown_outcome_and_no_hang() {
    let place = Place::fresh();
    let proxy = Proxy::before(&place.0.url);
    let mut store = PostgresStore::open(&proxy.url).unwrap();
    let term = lead(&mut store);
    proxy.stall();
    let begin = Instant::now();
    assert!(matches!(store.commit(&entry(term, 1)), Err(StoreError::Unknown(_))));
    assert!(begin.elapsed() < Duration::from_secs(20));
    proxy.pass();
    assert_eq!(store.commit(&entry(term, 1)), Ok(Commit::Done), "asked again with the same entry");
    assert_eq!(store.load().unwrap().sequence, 1);
}

/// What was given up must not stay behind: it would hold a session each, and would all be tried once the lock is gone.
fn given_up_is_ended(database: &Database) {
    let mut store = PostgresStore::open(&database.url).unwrap();
    let term = lead(&mut store);
    let (holder, admin) = (database.admin(), database.admin());
    holder.run("begin; lock table tidegate.journal in access exclusive mode");
    for _ in 0..2 {
        assert!(matches!(store.commit(&entry(term, 1)), Err(StoreError::Unknown(_))));
    }
    let waiting = "select count(*) from pg_stat_activity where datname = current_database() \
                   and wait_event_type = 'Lock' and query like '%insert into tidegate.journal%'";
    until("nobody waits any more", || store.leader().is_ok() && admin.value(waiting) == "0");
    holder.run("rollback");
    assert_eq!(store.commit(&entry(term, 1)), Ok(Commit::Done), "asked again with the same entry");
    assert_eq!(admin.value("select count(*) from tidegate.journal"), "1");
}

#[test]
fn a_commit_that_was_given_up_does_not_go_on_waiting() {
    given_up_is_ended(&Database::fresh(Route::Direct));
}

#[test]
fn a_commit_that_was_given_up_through_a_pool_does_not_go_on_waiting() {
    let database = Database::fresh(Route::Pooled);
    // As the guide says.
    database.set("lock_timeout = '6s'");
    given_up_is_ended(&database);
}

#[test]
fn nobody_there_is_said_at_once() {
    let place = Place::fresh();
    let proxy = Proxy::before(&place.0.url);
    proxy.stop();
    let refused = PostgresStore::open(&proxy.url).err();
    assert!(matches!(refused, Some(StoreError::Unusable(_))), "{refused:?}");
    let strange = PostgresStore::open("postgres://nobody@127.0.0.1:1/none?sslmode=sometimes").err();
    assert!(matches!(strange, Some(StoreError::Broken(_))), "{strange:?}");
}

/// What a process does that is stopped (SIGSTOP) while it projects: its session stays, and what it has locked.
#[test]
fn a_projector_that_is_stopped_in_the_middle_lets_go_of_the_tables() {
    let place = Place::fresh();
    let proxy = Proxy::before(&place.0.url);
    let mut store = PostgresStore::open(&proxy.url).unwrap();
    let term = lead(&mut store);
    let (holder, admin) = (place.admin(), place.admin());
    holder.run("begin; lock table tidegate.open_task in access exclusive mode");
    assert_eq!(store.commit(&entry(term, 1)), Ok(Commit::Done));
    let projects = "select count(*) from pg_locks join pg_class on pg_class.oid = relation \
                    where relname = 'open_task' and not granted";
    until("it waits for a table", || admin.value(projects) == "1");
    proxy.stall();
    holder.run("rollback");
    let stands_still = "select count(*) from pg_stat_activity \
                        where datname = current_database() and state = 'idle in transaction'";
    until("it has what it waited for", || admin.value(stands_still) == "1");
    let mut successor = PostgresStore::open(&place.0.url).unwrap();
    let begin = Instant::now();
    assert_eq!(successor.load().unwrap().sequence, 1);
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    proxy.pass();
    until("it goes on", || store.commit(&entry(term, 2)) == Ok(Commit::Done));
}

#[test]
fn a_connection_is_encrypted_if_its_url_asks_for_it() {
    let place = Place::fresh();
    let certificate = std::env::var("TIDEGATE_TEST_CERTIFICATE").expect("it is set with the URLs");
    let encrypted = format!("{}?sslmode=require&sslrootcert={certificate}", place.0.url);
    let mut store = PostgresStore::open(&encrypted).unwrap();
    let term = lead(&mut store);
    assert_eq!(store.commit(&entry(term, 1)), Ok(Commit::Done));
    let sessions = "select bool_and(ssl) from pg_stat_ssl join pg_stat_activity using (pid) \
                    where datname = current_database() and pid <> pg_backend_pid()";
    assert_eq!(place.admin().value(sessions), "t");
    let strange = PostgresStore::open(&format!("{}?sslmode=require", place.0.url)).err();
    assert!(matches!(strange, Some(StoreError::Unusable(_))), "nobody vouches for it: {strange:?}");
}

#[test]
fn a_reader_reads_what_its_process_has_just_written() {
    let mut ledger = ledger();
    let mut reader = ledger.store.reader().unwrap();
    // The tables cannot follow.
    let admin = ledger.place.admin();
    admin.run("begin; select from tidegate.position for update");
    ledger.write([other_job(1)]);
    let task = TaskId::node(NodeId(1));
    assert!(reader.payload(task).unwrap().is_some());
    assert_eq!(reader.ended(task).unwrap(), None);
    assert!(reader.reach(1, Duration::ZERO).unwrap());
    let mut stranger = PostgresStore::open_reader(&ledger.place.0.url).unwrap();
    assert_eq!(stranger.payload(task).unwrap(), None);
    assert!(!stranger.reach(1, Duration::ZERO).unwrap());
    admin.run("rollback");
    assert!(stranger.reach(1, Duration::from_secs(20)).unwrap());
    assert!(stranger.payload(task).unwrap().is_some());
    assert_eq!(
        ledger.store.lead(&Name::new("server"), Some(ledger.term), LEASE).unwrap().unwrap().term,
        ledger.term
    );
}
