//! The SQLite store keeps the contract, and what it promises besides: one owner, many readers, no half of an entry.

mod conformance;
mod golden;

use conformance::ledger::Ledger;
use conformance::samples::{JOB, add, ended, granted, job};
use conformance::{Backend, conformance};
use rusqlite::Connection;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tidegate_core::ids::{NodeId, RunId, TaskId};
use tidegate_core::protocol::{NodeRow, Payload, Write};
use tidegate_core::state::State;
use tidegate_core::time::Moment;
use tidegate_store::{BackupError, Before, ENTRIES_BYTES, Reads, SqliteStore, Store, StoreError};

struct Sqlite(TempDir);

impl Sqlite {
    fn path(&self) -> PathBuf {
        self.0.path().join("store.db")
    }
}

impl Backend for Sqlite {
    type Store = SqliteStore;
    const SHARED: bool = false;

    fn fresh() -> Self {
        Sqlite(TempDir::new().unwrap())
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(self.path()).unwrap()
    }

    fn post(&self, id: RunId, content: &str) {
        SqliteStore::post(self.path(), id, content.as_bytes()).unwrap();
    }
}

conformance!(Sqlite);

fn other_job(node: u64) -> Write {
    add(NodeRow { node: NodeId(node), ..job() })
}

#[test]
fn a_second_owner_is_refused_and_told_who_owns_it() {
    let place = Sqlite::fresh();
    let store = place.open();
    let Err(StoreError::InUse(who)) = SqliteStore::open(place.path()) else { panic!("two owners") };
    assert_eq!(who, "by this very process");
    let lock = format!("{}.lock", place.path().display());
    std::fs::write(lock, "4711").unwrap();
    assert_eq!(SqliteStore::open(place.path()).err(), Some(StoreError::InUse("by process 4711".to_owned())));
    drop(store);
    place.open();
}

#[test]
fn a_newer_schema_is_refused_by_owners_and_readers() {
    let place = Sqlite::fresh();
    drop(place.open());
    let file = Connection::open(place.path()).unwrap();
    file.execute("insert into migration values (99, 'from tomorrow', '')", []).unwrap();
    drop(file);
    let newer = |error| matches!(error, StoreError::Newer { found: 99, known: 4 });
    assert!(SqliteStore::open(place.path()).is_err_and(newer));
    assert!(SqliteStore::open_reader(place.path()).is_err_and(newer));
}

#[test]
fn what_an_earlier_version_left_is_brought_forward_by_whoever_looks_unless_somebody_owns_it() {
    let place = Sqlite::fresh();
    let file = Connection::open(place.path()).unwrap();
    file.execute_batch(include_str!("../sql/sqlite/migration_table.sql")).unwrap();
    file.execute_batch(include_str!("../sql/sqlite/migrations/0001_tables.sql")).unwrap();
    file.execute("insert into migration values (1, 'tables', '9a835fbe61a9b77f')", []).unwrap();
    drop(file);
    let lock = fs::File::create(format!("{}.lock", place.path().display())).unwrap();
    lock.lock().unwrap();
    let older = SqliteStore::open_reader(place.path()).map(drop);
    assert_eq!(older, Err(StoreError::Older { found: 1, known: 4 }));
    drop(lock);
    assert_eq!(SqliteStore::open_reader(place.path()).unwrap().last(), Ok(0));
    assert_eq!(place.open().last(), Ok(0));
}

#[test]
fn what_is_not_a_store_is_left_alone() {
    let place = Sqlite::fresh();
    assert!(matches!(SqliteStore::open_reader(place.path()), Err(StoreError::Unusable(_))), "no file");
    assert!(!place.path().exists());
    fs::write(place.path(), "dear diary, today I was not a database, and tomorrow I will not be one")
        .unwrap();
    assert!(matches!(SqliteStore::open(place.path()), Err(StoreError::Broken(_))));
    assert!(matches!(SqliteStore::open_reader(place.path()), Err(StoreError::Broken(_))));
    assert!(fs::read_to_string(place.path()).unwrap().starts_with("dear diary"));
}

/// The files of a process that was killed: whatever it had flushed, copied while it runs.
#[test]
fn what_was_answered_survives_a_kill() {
    let mut ledger = Ledger::<Sqlite>::open();
    for node in 0..200 {
        ledger.write([other_job(node)]);
    }
    let expected = ledger.store.load().unwrap();
    let after = Sqlite::fresh();
    for file in ["store.db", "store.db-wal"] {
        fs::copy(ledger.place.0.path().join(file), after.0.path().join(file)).unwrap();
    }
    assert_eq!(after.open().load().unwrap(), expected);
}

/// Half of the last entry reached the disk: the entries before it are all there, and nothing of it.
#[test]
fn a_torn_entry_never_happened() {
    let mut ledger = Ledger::<Sqlite>::open();
    ledger.write([other_job(1)]);
    let expected = ledger.store.load().unwrap();
    let log = ledger.place.0.path().join("store.db-wal");
    let whole = fs::metadata(&log).unwrap().len();
    ledger.write((2..300).map(other_job));
    let torn = (whole + fs::metadata(&log).unwrap().len()) / 2;
    let after = Sqlite::fresh();
    fs::copy(ledger.place.path(), after.path()).unwrap();
    let bytes = fs::read(&log).unwrap();
    fs::write(after.0.path().join("store.db-wal"), &bytes[..torn as usize]).unwrap();
    assert_eq!(after.open().load().unwrap(), expected);
}

#[test]
fn a_reader_looks_on_while_the_owner_writes() {
    let mut ledger = Ledger::<Sqlite>::open();
    ledger.write([add(job())]);
    let mut reader = SqliteStore::open_reader(ledger.place.path()).unwrap();
    let task = TaskId::node(JOB);
    assert_eq!(reader.load().unwrap(), ledger.store.load().unwrap());
    assert_eq!(reader.payload(task).unwrap(), job().payload);
    ledger.write([granted(task, 1), ended(task, State::Succeeded, Some("1"))]);
    assert_eq!(reader.load().unwrap(), ledger.store.load().unwrap());
    assert_eq!(reader.ended(task).unwrap(), ledger.store.ended(task).unwrap());
    assert_eq!(reader.ended_items(JOB, 0, 9).unwrap(), []);
    drop(ledger.store);
    assert_eq!(reader.load().unwrap().sequence, 2);
    drop(reader);
    assert_eq!(SqliteStore::open_reader(ledger.place.path()).unwrap().load().unwrap().sequence, 2);
}

/// Every entry adds a job and moves the number on; a load that mixed two entries would have one without the other.
#[test]
fn a_reader_sees_whole_entries_only() {
    let mut ledger = Ledger::<Sqlite>::open();
    let mut reader = SqliteStore::open_reader(ledger.place.path()).unwrap();
    std::thread::scope(|scope| {
        let looking = scope.spawn(move || {
            let mut seen = 0;
            while seen < 300 {
                let loaded = reader.load().unwrap();
                assert!(loaded.sequence >= seen);
                seen = loaded.sequence;
                assert_eq!(loaded.snapshot.nodes.len() as u64, seen);
                assert_eq!(loaded.snapshot.next, 10 * seen);
            }
        });
        for node in 0..300 {
            ledger.write([other_job(node)]);
        }
        looking.join().unwrap();
    });
}

/// A row that is there already is damage, and so are the words of a handle that met it.
#[test]
fn a_damaged_handle_refuses_everything() {
    let mut ledger = Ledger::<Sqlite>::open();
    ledger.write([add(job())]);
    let twice = ledger.entry(vec![other_job(77), add(job())]);
    assert!(matches!(ledger.store.commit(&twice), Err(StoreError::Broken(_))));
    assert!(matches!(ledger.store.load(), Err(StoreError::Broken(_))));
    let Ledger { place, store, .. } = ledger;
    drop(store);
    let loaded = place.open().load().unwrap();
    assert_eq!((loaded.sequence, loaded.snapshot.nodes), (1, vec![job()]), "all of an entry or nothing");
}

/// Rows are for people too: what the shell shows is words.
#[test]
fn rows_can_be_read_without_us() {
    let mut ledger = Ledger::<Sqlite>::open();
    ledger.write([add(job()), granted(TaskId::node(JOB), 1)]);
    let file = Connection::open(ledger.place.path()).unwrap();
    let read = |sql: &str| file.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(
        read("select kind || ' ' || name || ' ' || state || ' ' || worker from task"),
        "job mail.send running w1"
    );
    assert_eq!(read("select payload ->> '$.to' from task_spec"), "a");
    assert_eq!(read("select body ->> '$.Job.tags[0][0]' from task_spec"), "team");
}

#[test]
fn the_schema_is_the_one_that_was_looked_at() {
    let place = Sqlite::fresh();
    drop(place.open());
    let file = Connection::open(place.path()).unwrap();
    let mut statement =
        file.prepare("select sql from sqlite_schema where sql is not null order by type, name").unwrap();
    let lines: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    golden::compare("sqlite.txt", &lines);
}

#[test]
fn a_file_of_an_earlier_version_is_brought_forward_and_keeps_what_is_in_it() {
    let mut ledger = Ledger::<Sqlite>::open();
    let task = TaskId::node(JOB);
    ledger.write([add(job()), granted(task, 1), ended(task, State::Failed, None)]);
    ledger.write([other_job(2)]);
    let loaded = ledger.load();
    let Ledger { store, place, .. } = ledger;
    drop(store);
    let schema = |file: &Connection| -> Vec<String> {
        let mut statement = file.prepare("select sql from sqlite_schema order by type, name").unwrap();
        let lines = statement.query_map([], |row| row.get::<_, Option<String>>(0)).unwrap();
        lines.filter_map(Result::unwrap).collect()
    };
    let file = Connection::open(place.path()).unwrap();
    let newest = schema(&file);
    // What all steps but the first did, undone.
    file.execute_batch(
        "drop index task_ended; delete from migration where number > 1;
         create index task_ended on task (ended) where ended is not null and parent is null;
         drop index task_reuses; alter table task drop column reuses;
         drop table token; drop table audit",
    )
    .unwrap();
    let mut store = place.open();
    assert_eq!(schema(&file), newest);
    assert_eq!(store.load().unwrap().snapshot, loaded);
    assert_eq!(store.prune(Before::all(Moment(i64::MAX)), 9).unwrap().roots, 1);
}

/// Neither what is kept longer nor what is open is stepped over, and nothing is sorted.
#[test]
fn what_is_old_is_found_by_an_index() {
    let place = Sqlite::fresh();
    drop(place.open());
    let file = Connection::open(place.path()).unwrap();
    let sql = format!("explain query plan {}", include_str!("../sql/sqlite/prune_roots.sql"));
    let mut statement = file.prepare(&sql).unwrap();
    let plan: Vec<String> =
        statement.query_map((1, 2, 3, 4), |row| row.get(3)).unwrap().map(Result::unwrap).collect();
    let expected = [
        "SEARCH task USING INDEX task_ended (<expr>=? AND ended<?)",
        "CORRELATED SCALAR SUBQUERY 1",
        "SEARCH step USING INDEX task_reuses (reuses=?)",
        "SEARCH run USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH task_spec USING INTEGER PRIMARY KEY (rowid=?)",
    ];
    assert_eq!(plan, expected);
}

#[test]
fn large_entries_are_read_a_few_at_a_time() {
    let mut ledger = Ledger::<Sqlite>::open();
    let payload = Payload::new("x".repeat(ENTRIES_BYTES / 2));
    for node in 1..=3 {
        ledger.write([add(NodeRow { node: NodeId(node), payload: Some(payload.clone()), ..job() })]);
    }
    let mut read = |after| ledger.store.entries(after, 9).unwrap().expect("they are kept").len();
    assert_eq!([read(0), read(2), read(3)], [2, 1, 0]);
}

/// Entries are committed all the while; what the copy holds is what was there at one moment.
#[test]
fn a_backup_taken_under_load_opens_and_loads() {
    let mut ledger = Ledger::<Sqlite>::open();
    ledger.write([other_job(0)]);
    let copies = TempDir::new().unwrap();
    let (from, to) = (ledger.place.path(), copies.path().join("copy.db"));
    let copy = to.clone();
    std::thread::scope(|scope| {
        let backup = scope.spawn(move || SqliteStore::backup(from, copy, false));
        for node in 1..400 {
            ledger.write([other_job(node)]);
        }
        backup.join().unwrap().unwrap();
    });
    let loaded = SqliteStore::open(&to).unwrap().load().unwrap();
    assert!(loaded.sequence > 0);
    assert_eq!(loaded.snapshot.nodes.len() as u64, loaded.sequence, "whole entries only");
}

#[test]
fn a_backup_replaces_nothing_unless_told_to_and_never_the_store() {
    let mut ledger = Ledger::<Sqlite>::open();
    ledger.write([other_job(1)]);
    let copies = TempDir::new().unwrap();
    let (from, to) = (ledger.place.path(), copies.path().join("copy.db"));
    SqliteStore::backup(&from, &to, false).unwrap();
    ledger.write([other_job(2)]);
    assert_eq!(SqliteStore::backup(&from, &to, false), Err(BackupError::Exists(to.clone())));
    let sequence = |path: &Path| SqliteStore::open_reader(path).unwrap().load().unwrap().sequence;
    assert_eq!(sequence(&to), 1);
    SqliteStore::backup(&from, &to, true).unwrap();
    assert_eq!(sequence(&to), 2);
    for replace in [false, true] {
        assert_eq!(SqliteStore::backup(&from, &from, replace), Err(BackupError::Itself(from.clone())));
    }
    assert_eq!(ledger.load().nodes.len(), 2, "the store is as it was");
}

#[test]
fn a_backup_that_fails_leaves_nothing_behind() {
    let mut ledger = Ledger::<Sqlite>::open();
    ledger.write([other_job(1)]);
    let copies = TempDir::new().unwrap();
    let (from, to) = (ledger.place.path(), copies.path().join("copy.db"));
    let missing = copies.path().join("no/such/copy.db");
    assert!(matches!(SqliteStore::backup(&from, missing, false), Err(BackupError::NotWritten(_))));
    assert!(matches!(
        SqliteStore::backup(copies.path().join("none"), &to, false),
        Err(BackupError::Store(_))
    ));
    assert_eq!(std::fs::read_dir(copies.path()).unwrap().count(), 0);
    // A directory of that name is there, so the copy cannot get its name.
    std::fs::create_dir(&to).unwrap();
    assert!(matches!(SqliteStore::backup(&from, &to, true), Err(BackupError::NotWritten(_))));
    assert_eq!(std::fs::read_dir(copies.path()).unwrap().count(), 1);

    let part = copies.path().join("other.db.part");
    std::fs::write(&part, "half").unwrap();
    let refused = SqliteStore::backup(&from, copies.path().join("other.db"), false);
    assert_eq!(refused, Err(BackupError::UnderWay(part.clone())));
    assert_eq!(std::fs::read(&part).unwrap(), b"half");
}

#[test]
fn what_would_be_pruned_can_be_counted_by_others() {
    let mut ledger = Ledger::<Sqlite>::open();
    let old = |node| Write::Ended {
        task: TaskId::node(NodeId(node)),
        state: if node == 3 { State::Failed } else { State::Succeeded },
        output: None,
        error: None,
        at: Moment(100 * node as i64),
    };
    for node in 1..=4 {
        ledger.write([other_job(node)]);
    }
    ledger.write((1..=3).map(old));
    let before = Before { succeeded: Moment(250), failed: Moment(350) };
    assert_eq!(SqliteStore::count_prunable(ledger.place.path(), before).unwrap(), 3);
    assert_eq!(ledger.store.prune(before, 99).unwrap().roots, 3);
    assert_eq!(SqliteStore::count_prunable(ledger.place.path(), before).unwrap(), 0);
}
