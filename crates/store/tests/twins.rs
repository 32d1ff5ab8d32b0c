//! Stores that were told the same hold the same and say the same, and an entry survives being bytes.

mod database;
mod drive;
mod dump;

use database::{Admin, Database, Route};
use drive::laws::Laws;
use drive::{Drive, moves};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tempfile::TempDir;
use tidegate_core::ids::{Name, NodeId, RunId};
use tidegate_core::time::Span;
use tidegate_store::{
    Commit, Entry, MemoryStore, PostgresStore, Reads, Retention, Sought, SqliteStore, Store, codec,
};

/// Commands whose writes become one entry.
const BATCH: usize = 3;
/// Sequences of commands unless PROPTEST_CASES says how many, and the commands of one at most.
const SEQUENCES: u32 = 200;
const MOVES: usize = 120;

/// The reference, and those that are compared with it.
struct Stores {
    memory: MemoryStore,
    sqlite: SqliteStore,
    postgres: PostgresStore,
    term: u32,
}

impl Stores {
    fn open(folder: &Path, database: &Database) -> Self {
        let (mut memory, sqlite) = (MemoryStore::new(), SqliteStore::open(folder.join("store.db")).unwrap());
        let postgres = PostgresStore::open(&database.url).unwrap();
        let term = lead(&mut memory);
        let mut stores = Stores { memory, sqlite, postgres, term };
        stores.others().into_iter().for_each(|store| assert_eq!(lead(store), term));
        stores
    }

    fn others(&mut self) -> [&mut dyn Store; 2] {
        [&mut self.sqlite, &mut self.postgres]
    }

    fn commit(&mut self, entry: &Entry) {
        assert_eq!(&codec::decode(&codec::encode(entry).unwrap()).unwrap(), entry);
        assert_eq!(self.memory.commit(entry).unwrap(), Commit::Done);
        for store in self.others() {
            assert_eq!(store.commit(entry).unwrap(), Commit::Done);
        }
    }

    fn compare_open(&mut self) {
        let expected = self.memory.load().unwrap();
        for store in self.others() {
            let found = store.load().unwrap();
            for (found, expected) in found.snapshot.nodes.iter().zip(&expected.snapshot.nodes) {
                assert_eq!(found, expected, "said first, because all of a load is hard to read");
            }
            assert_eq!(found, expected);
        }
    }

    /// Whether or not the tables have followed yet.
    fn compare_history(&mut self, drive: &Drive) {
        let nodes: BTreeSet<NodeId> = drive.tasks.iter().map(|task| task.node).collect();
        let ids = (1..=drive.ids()).map(|id| Sought::Id(RunId(id)));
        let keys = (0..4).map(|key| Sought::Key(Name::new(format!("once {key}"))));
        let sought: Vec<Sought> = ids.chain(keys).collect();
        let Stores { memory, sqlite, postgres, .. } = self;
        for store in [sqlite as &mut dyn Store, postgres] {
            for &task in &drive.tasks {
                assert_eq!(store.payload(task).unwrap(), memory.payload(task).unwrap(), "{task:?}");
                assert_eq!(store.ended(task).unwrap(), memory.ended(task).unwrap(), "{task:?}");
            }
            for &node in &nodes {
                let expected = memory.ended_items(node, 1, 6).unwrap();
                assert_eq!(store.ended_items(node, 1, 6).unwrap(), expected, "{node:?}");
            }
            assert_eq!(store.find(&sought).unwrap(), memory.find(&sought).unwrap());
            assert_eq!(store.entries(0, 9).unwrap(), memory.entries(0, 9).unwrap());
        }
    }

    /// Every row of every table. What is open was compared before, so that the tables have followed.
    fn compare_rows(&mut self, folder: &Path, admin: &Admin) {
        let expected = self.memory.look(dump::of_memory);
        dump::compare(&dump::of_sqlite(&folder.join("store.db")), &expected);
        dump::compare(&dump::of_postgres(admin), &expected);
    }

    fn prune(&mut self, drive: &Drive) {
        let retention = Retention { succeeded: Span::seconds(20), failed: Span::seconds(10) };
        let before = retention.before(drive.now());
        // The drive's time is long ago, for those that look at a clock.
        self.memory.set_clock(drive.now() + Span::hours(10_000));
        loop {
            let gone = self.memory.prune(before, 7).unwrap();
            for store in self.others() {
                assert_eq!(store.prune(before, 7).unwrap(), gone);
            }
            if gone.rows == 0 {
                return;
            }
        }
    }
}

fn lead(store: &mut dyn Store) -> u32 {
    store.lead(&Name::new("server"), None, Span::hours(1)).unwrap().expect("nobody leads").term
}

/// A drive that never gets anywhere would prove nothing.
#[test]
fn the_drive_meets_every_kind_of_write() {
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeMap::<String, u32>::new();
    let mut reused = 0;
    for _ in 0..48 {
        let (mut drive, mut laws) = (Drive::new(), Laws::default());
        for one in moves(250).new_tree(&mut runner).unwrap().current() {
            drive.make(one);
            for write in drive.take_writes() {
                laws.check(&write);
                let text = format!("{write:?}");
                *seen.entry(text.split(['(', ' ']).next().unwrap_or_default().to_owned()).or_default() += 1;
                reused += u32::from(text.contains("Reused"));
            }
        }
    }
    let all = "Audited Declared Ended Entered Granted ItemEntered ItemsAdded ItemsEnded LimitSet Moved NodeAdded PaceTaken Paused \
               Ranked Renewed Stopping TokenGone TokenSet WorkerGone WorkerJoined";
    assert_eq!(seen.into_keys().collect::<Vec<_>>().join(" "), all);
    assert!(reused > 0, "no run went on where another ended");
}

#[test]
fn stores_agree_about_everything_a_core_writes() {
    let database = Database::fresh(Route::Direct);
    database.hurry();
    drop(PostgresStore::open(&database.url).unwrap());
    let admin = database.admin();
    let told = std::env::var("PROPTEST_CASES").ok();
    let cases = told.map_or(SEQUENCES, |told| told.parse().expect("PROPTEST_CASES is a number"));
    let config = ProptestConfig { cases, ..ProptestConfig::default() };
    let sequences = (moves(MOVES), prop::collection::vec(0..12u8, MOVES));
    let result = TestRunner::new(config).run(&sequences, |(moves, looks)| {
        database.empty();
        let folder = TempDir::new().unwrap();
        let mut stores = Stores::open(folder.path(), &database);
        let mut drive = Drive::new();
        for ((sequence, batch), look) in (1..).zip(moves.chunks(BATCH)).zip(looks) {
            let mut writes = drive.take_writes();
            for &one in batch {
                drive.make(one);
                writes.extend(drive.take_writes());
            }
            let (term, now, next) = (stores.term, drive.now(), drive.next());
            let (batch, letters, digest) = (u128::from(sequence), Vec::new(), Some(sequence * 7));
            stores.commit(&Entry { sequence, term, batch, now, next, letters, digest, writes });
            if look == 0 {
                stores.compare_open();
            }
        }
        stores.compare_history(&drive);
        stores.compare_open();
        stores.compare_rows(folder.path(), &admin);
        stores.prune(&drive);
        stores.compare_history(&drive);
        stores.compare_rows(folder.path(), &admin);
        let Stores { mut memory, sqlite, postgres, .. } = stores;
        drop((sqlite, postgres));
        let mut sqlite = SqliteStore::open(folder.path().join("store.db")).unwrap();
        let mut postgres = PostgresStore::open_reader(&database.url).unwrap();
        prop_assert_eq!(memory.load().unwrap(), sqlite.load().unwrap());
        prop_assert_eq!(memory.load().unwrap(), postgres.load().unwrap());
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
}
