//! The one rule a store knows: who may commit, and what may follow what.

use super::Backend;
use super::ledger::{LEASE, Ledger, lead};
use super::samples::{add, job};
use tidegate_core::ids::Name;
use tidegate_core::protocol::Write;
use tidegate_core::time::Moment;
use tidegate_store::{Commit, Entry, Reads, Store};

fn server() -> Name {
    Name::new("server")
}

/// Somebody else leads, under a higher term.
fn depose<B: Backend>(ledger: &mut Ledger<B>) -> u32 {
    ledger.store.resign(ledger.term).unwrap();
    lead(&mut ledger.store)
}

pub fn a_term_is_higher_than_any_before<B: Backend>() {
    let place = B::fresh();
    let mut terms = Vec::new();
    for _ in 0..3 {
        let mut store = place.open();
        terms.push(lead(&mut store));
        store.resign(terms[terms.len() - 1]).unwrap();
    }
    assert!(terms[0] > 0 && terms.is_sorted_by(|a, b| a < b), "{terms:?}");
}

pub fn who_leads_may_extend<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let extended = ledger.store.lead(&server(), Some(ledger.term), LEASE).unwrap().unwrap();
    assert_eq!(extended.term, ledger.term);
    ledger.write([add(job())]);
}

pub fn without_the_lead_nothing_is_taken<B: Backend>() {
    let entry = Entry { term: 0, ..Ledger::<B>::open().entry(Vec::new()) };
    let place = B::fresh();
    let mut store = place.open();
    assert_eq!(store.commit(&entry).unwrap(), Commit::Deposed);
    assert_eq!(store.commit(&Entry { term: 1, ..entry }).unwrap(), Commit::Deposed);
}

pub fn an_older_term_is_fenced_off<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let entry = ledger.entry(vec![add(job())]);
    let newer = depose(&mut ledger);
    assert_eq!(ledger.store.commit(&entry).unwrap(), Commit::Deposed);
    ledger.term = newer;
    ledger.write([add(job())]);
}

pub fn who_resigned_commits_no_more<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    ledger.store.resign(ledger.term).unwrap();
    let entry = ledger.entry(vec![add(job())]);
    assert_eq!(ledger.store.commit(&entry).unwrap(), Commit::Deposed);
    let again = ledger.store.lead(&server(), Some(ledger.term), LEASE).unwrap().unwrap();
    assert!(again.term > ledger.term, "what was given up is not extended");
}

pub fn an_old_resignation_is_not_the_leaders<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let old = ledger.term;
    ledger.term = depose(&mut ledger);
    ledger.store.resign(old).unwrap();
    ledger.write([add(job())]);
}

pub fn entries_follow_each_other<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    ledger.write([add(job())]);
    let next = ledger.entry(Vec::new());
    for sequence in [0, 1, 3] {
        let entry = Entry { sequence, ..next.clone() };
        assert_eq!(ledger.store.commit(&entry).unwrap(), Commit::Foreign, "{sequence}");
    }
    ledger.write([]);
}

pub fn the_same_entry_again_is_done<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let entry = ledger.entry(vec![add(job())]);
    for _ in 0..3 {
        assert_eq!(ledger.store.commit(&entry).unwrap(), Commit::Done);
    }
    ledger.sequence = 1;
    assert_eq!(ledger.load().nodes, [job()]);
}

pub fn the_same_entry_is_done_even_for_the_deposed<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let entry = ledger.entry(vec![add(job())]);
    assert_eq!(ledger.store.commit(&entry).unwrap(), Commit::Done);
    depose(&mut ledger);
    assert_eq!(ledger.store.commit(&entry).unwrap(), Commit::Done, "it is durable, whoever leads");
}

pub fn what_is_not_taken_changes_nothing<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    ledger.write([add(job())]);
    let before = ledger.store.load().unwrap();
    let paused = ledger.entry(vec![Write::Paused { node: job().node, paused: true }]);
    let foreign = Entry { sequence: 9, ..paused.clone() };
    assert_eq!(ledger.store.commit(&foreign).unwrap(), Commit::Foreign);
    depose(&mut ledger);
    assert_eq!(ledger.store.commit(&paused).unwrap(), Commit::Deposed);
    assert_eq!(ledger.store.load().unwrap(), before);
}

pub fn the_last_entry_is_loaded<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    assert_eq!(ledger.load(), Default::default(), "a fresh store holds nothing");
    let entry = Entry { next: u64::MAX, now: Moment(-5), ..ledger.entry(Vec::new()) };
    assert_eq!(ledger.store.commit(&entry).unwrap(), Commit::Done);
    ledger.sequence = 1;
    let snapshot = ledger.load();
    assert_eq!((snapshot.next, snapshot.now), (u64::MAX, Moment(-5)));
}
