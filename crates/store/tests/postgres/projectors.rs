//! The tables follow the journal, whoever projects and however often it is killed.

use crate::conformance::Backend;
use crate::conformance::ledger::lead;
use crate::conformance::samples::{ended, granted};
use crate::place::{Place, ledger, other_job, until};
use std::time::Duration;
use tidegate_core::ids::{NodeId, TaskId};
use tidegate_core::protocol::Write;
use tidegate_core::state::State;
use tidegate_store::{Commit, MemoryStore, PostgresStore, Reads, Store};

/// Four servers project and one of them leads, while an operator ends sessions at random.
#[test]
fn many_projectors_that_are_killed_at_any_point_do_everything_once() {
    let mut ledger = ledger();
    let others: Vec<PostgresStore> = (0..3).map(|_| ledger.place.open()).collect();
    let mut memory = MemoryStore::new();
    assert_eq!(lead(&mut memory), ledger.term);
    let killer = ledger.place.admin();
    for node in 0..120 {
        if node % 3 == 0 {
            killer.run(KILL_ONE);
        }
        let entry = ledger.entry(life_of(node));
        until("it is taken", || match ledger.store.commit(&entry) {
            Ok(commit) => commit == Commit::Done,
            Err(error) => {
                assert!(error.may_pass(), "{error}");
                false
            }
        });
        assert_eq!(memory.commit(&entry), Ok(Commit::Done));
        ledger.sequence = entry.sequence;
    }
    drop(others);
    assert_eq!(ledger.store.load().unwrap(), memory.load().unwrap());
    for node in 0..120 {
        let task = TaskId::node(NodeId(node));
        assert_eq!(ledger.store.ended(task).unwrap(), memory.ended(task).unwrap(), "{node}");
    }
}

const KILL_ONE: &str = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() \
                        and pid <> pg_backend_pid() order by random() limit 1";

/// A job begins, every third ends at once, and one that began earlier and has not ended is paused or not.
fn life_of(node: u64) -> Vec<Write> {
    let (task, earlier) = (TaskId::node(NodeId(node)), NodeId(node / 2));
    let end = ended(task, State::Failed, Some("1"));
    let pause = Write::Paused { node: earlier, paused: node.is_multiple_of(4) };
    let mut writes = vec![other_job(node), granted(task, 1)];
    writes.extend(node.is_multiple_of(3).then_some(end));
    writes.extend((!earlier.0.is_multiple_of(3)).then_some(pause));
    writes
}

#[test]
fn what_came_and_went_in_between_is_one_row_of_history() {
    let mut ledger = ledger();
    let task = TaskId::node(NodeId(1));
    let admin = ledger.place.admin();
    admin.run("begin; select from tidegate.position for update");
    ledger.write([other_job(1)]);
    ledger.write([granted(task, 1)]);
    ledger.write([ended(task, State::Succeeded, Some("1"))]);
    admin.run("rollback");
    assert!(ledger.store.reach(3, Duration::from_secs(20)).unwrap());
    ledger.load();
    let written =
        "select n_tup_ins, n_tup_upd, n_tup_del from pg_stat_xact_user_tables where relname = 'open_task'";
    assert_eq!(admin.rows(written).len(), 1);
    assert_eq!(admin.value("select count(*) from tidegate.ended_task"), "1");
    assert_eq!(
        admin.value("select xmin = (select xmin from tidegate.position) from tidegate.ended_task"),
        "t"
    );
    assert_eq!(admin.value("select count(*) from tidegate.open_task"), "0");
}

/// Nobody projects for a while: the writer waits, but not for long, and goes on as soon as somebody does.
#[test]
fn the_tables_never_fall_far_behind() {
    let mut ledger = ledger();
    let admin = ledger.place.admin();
    admin.run("begin; select from tidegate.position for update");
    let many: Vec<Write> =
        (0..10_000).map(|node| Write::Paused { node: NodeId(node), paused: true }).collect();
    for _ in 0..6 {
        ledger.write(many.clone());
    }
    let next = ledger.entry(many);
    assert_eq!(ledger.store.commit(&next), Ok(Commit::Later));
    admin.run("rollback");
    until("it is taken", || ledger.store.commit(&next) == Ok(Commit::Done));
    ledger.sequence += 1;
    ledger.load();
}

#[test]
fn a_server_that_never_led_projects_what_others_left() {
    let mut ledger = ledger();
    let admin = ledger.place.admin();
    admin.run("begin; select from tidegate.position for update");
    ledger.write([other_job(1)]);
    let Place(database) = ledger.place;
    drop(ledger.store);
    admin.run("rollback");
    let mut other = PostgresStore::open(&database.url).unwrap();
    assert!(other.reach(1, Duration::from_secs(20)).unwrap());
    assert_eq!(admin.value("select node from tidegate.open_task"), "1");
}
