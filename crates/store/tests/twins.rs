//! Two stores that were told the same hold the same, and an entry survives being bytes.

mod drive;

use drive::laws::Laws;
use drive::{Drive, moves};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::ids::{Name, NodeId};
use tidegate_core::time::Span;
use tidegate_store::{Commit, Entry, MemoryStore, Reads, SqliteStore, Store, codec};

/// Commands whose writes become one entry.
const BATCH: usize = 3;

fn lead(store: &mut impl Store) -> u32 {
    store.lead(&Name::new("server"), None, Span::hours(1)).unwrap().expect("nobody leads").term
}

fn compare_history(drive: &Drive, memory: &mut MemoryStore, sqlite: &mut SqliteStore) {
    for &task in &drive.tasks {
        assert_eq!(memory.payload(task).unwrap(), sqlite.payload(task).unwrap(), "{task:?}");
        assert_eq!(memory.ended(task).unwrap(), sqlite.ended(task).unwrap(), "{task:?}");
    }
    let nodes: BTreeSet<NodeId> = drive.tasks.iter().map(|task| task.node).collect();
    for node in nodes {
        let slice = (memory.ended_items(node, 1, 6).unwrap(), sqlite.ended_items(node, 1, 6).unwrap());
        assert_eq!(slice.0, slice.1, "{node:?}");
    }
}

/// A drive that never gets anywhere would prove nothing.
#[test]
fn the_drive_meets_every_kind_of_write() {
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeMap::<String, u32>::new();
    for _ in 0..48 {
        let (mut drive, mut laws) = (Drive::new(), Laws::default());
        for one in moves(250).new_tree(&mut runner).unwrap().current() {
            drive.make(one);
            for write in drive.take_writes() {
                laws.check(&write);
                let text = format!("{write:?}");
                *seen.entry(text.split(['(', ' ']).next().unwrap_or_default().to_owned()).or_default() += 1;
            }
        }
    }
    let all = "Declared Ended Entered Granted ItemsAdded ItemsEnded LimitSet Moved NodeAdded PaceTaken Paused \
               Ranked Renewed Stopping WorkerGone WorkerJoined";
    assert_eq!(seen.into_keys().collect::<Vec<_>>().join(" "), all);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn stores_agree_about_everything_a_core_writes(moves in moves(250)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let (mut memory, mut sqlite) = (MemoryStore::new(), SqliteStore::open(&path).unwrap());
        let term = lead(&mut memory);
        assert_eq!(lead(&mut sqlite), term);
        let mut drive = Drive::new();
        for (sequence, batch) in (1..).zip(moves.chunks(BATCH)) {
            let mut writes = drive.take_writes();
            for &one in batch {
                drive.make(one);
                writes.extend(drive.take_writes());
            }
            let (now, next) = (drive.now(), drive.next());
            let (batch, letters, digest) = (u128::from(sequence), Vec::new(), Some(sequence * 7));
            let entry = Entry { sequence, term, batch, now, next, letters, digest, writes };
            prop_assert_eq!(&codec::decode(&codec::encode(&entry).unwrap()).unwrap(), &entry);
            prop_assert_eq!(memory.commit(&entry).unwrap(), Commit::Done);
            prop_assert_eq!(sqlite.commit(&entry).unwrap(), Commit::Done);
            prop_assert_eq!(memory.load().unwrap(), sqlite.load().unwrap());
        }
        compare_history(&drive, &mut memory, &mut sqlite);
        drop(sqlite);
        let mut sqlite = SqliteStore::open(&path).unwrap();
        prop_assert_eq!(memory.load().unwrap(), sqlite.load().unwrap());
    }
}
