//! What other programs leave to be submitted: it stays until an entry takes it out.

use super::Backend;
use super::ledger::Ledger;
use super::samples::{add, job};
use tidegate_core::ids::RunId;
use tidegate_store::{Commit, Entry, LETTERS_BYTES, Letter, Store};

fn letters<B: Backend>(ledger: &mut Ledger<B>) -> Vec<Letter> {
    ledger.store.letters(0, 99).unwrap()
}

/// A ledger with three letters in its mailbox.
fn with_letters<B: Backend>() -> (Ledger<B>, Vec<Letter>) {
    let mut ledger = Ledger::<B>::open();
    for id in [7, u128::MAX, 9] {
        ledger.place.post(RunId(id), r#"{"name": "é"}"#);
    }
    let all = letters(&mut ledger);
    (ledger, all)
}

pub fn letters_come_in_the_order_of_their_numbers<B: Backend>() {
    let (mut ledger, all) = with_letters::<B>();
    assert_eq!(
        all.iter().map(|letter| letter.id).collect::<Vec<_>>(),
        [RunId(7), RunId(u128::MAX), RunId(9)]
    );
    assert!(all.is_sorted_by_key(|letter| letter.number) && all[0].number > 0);
    let content: serde_json::Value = serde_json::from_slice(&all[0].content).unwrap();
    assert_eq!(content["name"], "é");
    assert_eq!(letters(&mut ledger), all, "they stay");
    assert_eq!(ledger.store.letters(all[0].number, 1).unwrap(), all[1..2]);
    assert_eq!(ledger.store.letters(all[2].number, 9).unwrap(), []);
}

pub fn large_letters_come_a_few_at_a_time<B: Backend>() {
    let mut ledger = Ledger::<B>::open();
    let large = |bytes: usize| format!(r#"{{"name": "{}"}}"#, "x".repeat(bytes));
    for (id, bytes) in
        [(1, 2 * LETTERS_BYTES), (2, LETTERS_BYTES / 2), (3, LETTERS_BYTES / 4), (4, LETTERS_BYTES / 2)]
    {
        ledger.place.post(RunId(id), &large(bytes));
    }
    let mut last = 0;
    let mut next = || -> Vec<u128> {
        let letters = ledger.store.letters(last, 99).unwrap();
        last = letters.last().map_or(last, |letter| letter.number);
        letters.into_iter().map(|letter| letter.id.0).collect()
    };
    assert_eq!([next(), next(), next(), next()], [vec![1], vec![2, 3], vec![4], vec![]]);
}

pub fn an_entry_takes_letters_out<B: Backend>() {
    let (mut ledger, all) = with_letters::<B>();
    let taken = vec![all[0].number, all[2].number, 999];
    let entry = Entry { letters: taken, ..ledger.entry(vec![add(job())]) };
    assert_eq!(ledger.store.commit(&entry).unwrap(), Commit::Done);
    assert_eq!(letters(&mut ledger), all[1..2]);
    assert_eq!(ledger.store.commit(&entry).unwrap(), Commit::Done);
    assert_eq!(letters(&mut ledger), all[1..2]);
    ledger.place.post(RunId(10), "{}");
    assert!(letters(&mut ledger)[1].number > all[2].number, "a number is never given twice");
}

pub fn an_entry_that_is_not_taken_leaves_the_letters<B: Backend>() {
    let (mut ledger, all) = with_letters::<B>();
    let entry = Entry { letters: vec![all[0].number], ..ledger.entry(Vec::new()) };
    let foreign = Entry { sequence: 5, ..entry.clone() };
    assert_eq!(ledger.store.commit(&foreign).unwrap(), Commit::Foreign);
    ledger.store.resign(ledger.term).unwrap();
    assert_eq!(ledger.store.commit(&entry).unwrap(), Commit::Deposed);
    assert_eq!(letters(&mut ledger), all);
}

pub fn what_cannot_be_read_is_set_aside<B: Backend>() {
    let (mut ledger, all) = with_letters::<B>();
    ledger.store.set_aside(all[1].number, "no name").unwrap();
    ledger.store.set_aside(999, "nobody's").unwrap();
    assert_eq!(letters(&mut ledger), [all[0].clone(), all[2].clone()]);
    ledger.store.reopen().unwrap();
    assert_eq!(letters(&mut ledger), [all[0].clone(), all[2].clone()]);
}
