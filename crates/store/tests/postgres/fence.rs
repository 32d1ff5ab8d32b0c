//! The fence is in the database: no order of events lets two leaders commit.

use crate::conformance::Backend;
use crate::conformance::ledger::{LEASE, lead};
use crate::place::{ledger, other_job, until};
use tidegate_core::ids::Name;
use tidegate_store::{Commit, Reads, Store};

const WAITING: &str = "select count(*) from pg_stat_activity where datname = current_database() \
                       and wait_event_type = 'Lock'";

#[test]
fn a_commit_that_waited_inside_the_database_for_a_take_over_is_refused() {
    let ledger = ledger();
    let entry = ledger.entry(vec![other_job(1)]);
    let (admin, watcher) = (ledger.place.admin(), ledger.place.admin());
    admin.run("begin; update tidegate.leader set term = term + 1, server = 'other'");
    let mut store = ledger.store;
    let committing = std::thread::spawn(move || (store.commit(&entry), store));
    until("the commit waits", || watcher.value(WAITING) == "1");
    admin.run("commit");
    let (commit, mut store) = committing.join().unwrap();
    assert_eq!(commit, Ok(Commit::Deposed));
    assert_eq!(store.load().unwrap().sequence, 0);
}

#[test]
fn a_take_over_waits_for_a_commit_under_way_and_a_renewal_does_not() {
    let mut ledger = ledger();
    let (admin, watcher) = (ledger.place.admin(), ledger.place.admin());
    // What the statement that commits holds while it runs.
    admin.run("begin; select from tidegate.leader for key share");
    let server = Name::new("server");
    let renewed = ledger.store.lead(&server, Some(ledger.term), LEASE).unwrap().unwrap();
    assert_eq!(renewed.term, ledger.term);
    let mut other = ledger.place.open();
    let taking = std::thread::spawn(move || other.lead(&server, None, LEASE));
    until("the take-over waits", || watcher.value(WAITING) == "1");
    ledger.write([other_job(1)]);
    admin.run("commit");
    assert_eq!(taking.join().unwrap().unwrap().unwrap().term, ledger.term + 1);
    let late = ledger.entry(vec![other_job(2)]);
    assert_eq!(ledger.store.commit(&late), Ok(Commit::Deposed));
}

#[test]
fn of_many_that_want_to_lead_one_does() {
    let ledger = ledger();
    ledger.place.admin().run("update tidegate.leader set lease_until = '-infinity'");
    let servers: Vec<_> = (0..6)
        .map(|number| {
            let mut store = ledger.place.open();
            std::thread::spawn(move || store.lead(&Name::new(format!("s{number}")), None, LEASE).unwrap())
        })
        .collect();
    let terms: Vec<u32> =
        servers.into_iter().filter_map(|server| server.join().unwrap()).map(|term| term.term).collect();
    assert_eq!(terms, [ledger.term + 1]);
}

#[test]
fn the_lease_is_judged_by_the_databases_clock() {
    let mut ledger = ledger();
    let mut other = ledger.place.open();
    let name = Name::new("other");
    assert_eq!(other.lead(&name, None, LEASE).unwrap(), None);
    assert_eq!(other.leader().unwrap().unwrap().server, Name::new("server"));
    let clock = ledger.store.lead(&Name::new("server"), Some(ledger.term), LEASE).unwrap().unwrap().clock;
    let theirs =
        ledger.place.admin().value("select (extract(epoch from clock_timestamp()) * 1000000)::bigint");
    assert!((theirs.parse::<i64>().unwrap() - clock.0).abs() < 20_000_000);
    ledger.place.admin().run("update tidegate.leader set lease_until = clock_timestamp()");
    assert_eq!(other.leader().unwrap(), None);
    ledger.write([other_job(1)]);
    assert_eq!(lead(&mut other), ledger.term + 1, "until then who led may go on");
}
