//! What was committed can be followed, entry by entry, and found by what it was submitted under.

use super::Backend;
use super::ledger::Ledger;
use super::samples::{JOB, RUN, STEP, add, ended, granted, job, run, step};
use std::time::Duration;
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::{Body, Idempotency, NodeRow, RunBody, StepKind, Write};
use tidegate_core::state::State;
use tidegate_store::{Commit, Contact, Entry, Found, KEPT_ENTRIES, Leader, Reads, Sought, Store};

pub fn entries_are_read_in_order<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    assert_eq!(ledger.store.entries(0, 9).unwrap(), Some(Vec::new()));
    let mut written = Vec::new();
    for node in 1..=5 {
        let entry = ledger.entry(vec![add(NodeRow { node: NodeId(node), ..job() })]);
        ledger.write(entry.writes.clone());
        written.push(entry);
    }
    let mut read = |after, most| {
        let entries = ledger.store.entries(after, most).unwrap().expect("all of them are kept");
        entries.iter().map(|entry| (**entry).clone()).collect::<Vec<_>>()
    };
    assert_eq!(read(0, 9), written);
    assert_eq!(read(2, 2), written[2..4]);
    assert_eq!(read(5, 9), []);
    assert_eq!(read(9, 9), []);
}

pub fn old_entries_are_kept_for_a_while<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let last = KEPT_ENTRIES + 200;
    for _ in 0..last {
        ledger.write([]);
    }
    assert!(ledger.store.reach(last, Duration::from_secs(10)).unwrap());
    ledger.store.load().unwrap();
    let kept = ledger.store.entries(last - KEPT_ENTRIES, usize::MAX).unwrap().expect("these are kept");
    assert_eq!(kept.len() as u64, KEPT_ENTRIES);
    assert_eq!(ledger.store.entries(0, 9).unwrap(), None, "a gap is said, not stepped over");
}

pub fn an_entry_is_reached_once_it_is_there<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    assert_eq!(ledger.store.last().unwrap(), 0);
    ledger.write([add(job())]);
    assert_eq!(ledger.store.last().unwrap(), 1);
    assert!(ledger.store.reach(0, Duration::ZERO).unwrap());
    assert!(ledger.store.reach(1, Duration::from_secs(10)).unwrap());
    assert!(!ledger.store.reach(2, Duration::from_millis(1)).unwrap());
}

pub fn the_last_digest_is_loaded<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    assert_eq!(ledger.store.load().unwrap().digest, None);
    for digest in [Some(u64::MAX), None] {
        let entry = Entry { digest, ..ledger.entry(Vec::new()) };
        assert_eq!(ledger.store.commit(&entry).unwrap(), Commit::Done);
        ledger.sequence += 1;
        assert_eq!(ledger.store.load().unwrap().digest, digest);
    }
}

fn with_key(node: u64, id: u128, key: &str, content: u64) -> Write {
    let Body::Job(mut body) = job().body else { panic!("a job has the body of one") };
    body.id = RunId(id);
    body.idempotency = Some(Idempotency { key: Name::new(key), content });
    add(NodeRow { node: NodeId(node), body: Body::Job(body), ..job() })
}

pub fn what_was_accepted_is_found_by_id_and_by_key<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let (of_job, of_run) = (RunId(u128::MAX - 5), RunId(1));
    ledger.write([add(job()), add(run()), add(step(StepKind::SubFlow)), with_key(20, 20, "o'hara", 5)]);
    let job = Found { node: JOB, id: of_job, content: Some(u64::MAX) };
    let run = Found { node: RUN, id: of_run, content: None };
    let third = Found { node: NodeId(20), id: RunId(20), content: Some(5) };
    let key = |key: &str| Sought::Key(Name::new(key));
    let sought =
        [key("o'hara"), Sought::Id(of_run), key("nobody"), Sought::Id(of_job), key("once"), key("o'hara")];
    let found = [Some(third), Some(run), None, Some(job), Some(job), Some(third)];
    assert_eq!(ledger.store.find(&sought).unwrap(), found);
    assert_eq!(ledger.store.find(&[]).unwrap(), []);

    let task = TaskId::node(JOB);
    ledger.write([granted(task, 1), ended(task, State::Succeeded, None)]);
    assert_eq!(ledger.store.find(&sought).unwrap(), found, "open or ended");
    ledger.write([with_key(30, 30, "once", 6)]);
    let latest = Found { node: NodeId(30), id: RunId(30), content: Some(6) };
    assert_eq!(ledger.store.find(&[key("once")]).unwrap(), [Some(latest)], "the latest of several");
}

pub fn what_was_accepted_is_found_by_its_parts<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let inner = match run().body {
        Body::Run(body) => Body::Run(RunBody { id: None, depth: 1, ..body }),
        other => other,
    };
    let inside = NodeRow { node: NodeId(20), parent: Some(STEP), body: inner, ..run() };
    ledger.write([add(job()), add(run()), add(step(StepKind::SubFlow)), add(inside)]);
    let of_job = Found { node: JOB, id: RunId(u128::MAX - 5), content: Some(u64::MAX) };
    let of_run = Found { node: RUN, id: RunId(1), content: None };
    let sought = [NodeId(20), JOB, NodeId(99), STEP, RUN].map(Sought::Part);
    let found = [Some(of_run), Some(of_job), None, Some(of_run), Some(of_run)];
    assert_eq!(ledger.store.find(&sought).unwrap(), found);
    ledger.write([20, 11, 10, 3].map(|node| ended(TaskId::node(NodeId(node)), State::Succeeded, None)));
    assert_eq!(ledger.store.find(&sought).unwrap(), found, "open or ended");
}

pub fn who_leads_is_known<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let server = Name::new("server");
    let contact = Contact { address: "10.0.0.7:99".to_owned(), token: "s\"t".to_owned() };
    ledger.store.announce(&server, &contact).unwrap();
    ledger.store.announce(&Name::new("other"), &contact).unwrap();
    let leader = ledger.store.leader().unwrap().expect("somebody leads");
    assert_eq!(leader.server, server);
    let expected = B::SHARED.then_some(contact);
    assert_eq!(leader, Leader { server, contact: expected });
    ledger.store.resign(ledger.term).unwrap();
    assert_eq!(ledger.store.leader().unwrap(), None);
}
