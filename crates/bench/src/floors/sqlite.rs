//! Plain SQL over a SQLite file, as durable as ours: every job is inserted, then updated when it begins and when it
//! ends, in groups.

use super::Halves;
use anyhow::{Result, ensure};
use rusqlite::{Connection, Transaction};
use std::path::Path;
use std::time::Instant;

/// A payload of the size that the scenarios submit.
const PAYLOAD: &str = r#"{"call":{"function":"noop","input":184467}}"#;

macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!("../../sql/sqlite/", $name, ".sql"))
    };
}

/// All of them are inserted first; then every group's end is written together with the next one's beginning.
pub fn lives(folder: &Path, jobs: u64, group: usize) -> Result<Halves> {
    let mut connection = open(&folder.join("floor.db"))?;
    let groups: Vec<std::ops::Range<u64>> =
        (0..jobs).step_by(group).map(|from| from..jobs.min(from + group as u64)).collect();
    let begin = Instant::now();
    for group in &groups {
        let transaction = connection.transaction()?;
        insert(&transaction, group.clone())?;
        transaction.commit()?;
    }
    let enqueue = begin.elapsed();
    let begin = Instant::now();
    let mut running = 0..0;
    for group in groups.iter().cloned().chain(std::iter::once(0..0)) {
        let transaction = connection.transaction()?;
        update(&transaction, sql!("floor_end"), running)?;
        update(&transaction, sql!("floor_start"), group.clone())?;
        transaction.commit()?;
        running = group;
    }
    let drain = begin.elapsed();
    let ended: i64 = connection.query_row(sql!("floor_ended"), [], |row| row.get(0))?;
    ensure!(ended == jobs.cast_signed(), "the floor ended {ended} of {jobs} jobs");
    Ok(Halves { enqueue, drain })
}

/// Seconds that a plain reading of everything open in a store takes, and how many rows that is.
pub fn select_open(store: &Path) -> Result<(f64, u64)> {
    let connection = Connection::open(store)?;
    let begin = Instant::now();
    let mut statement = connection.prepare(sql!("plain_select"))?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let (mut count, mut bytes) = (0, 0);
    while let Some(row) = rows.next()? {
        count += 1;
        for column in 0..columns {
            bytes += row.get_ref(column)?.as_str().map_or(8, str::len);
        }
    }
    ensure!(bytes > 0 || count == 0, "rows without anything in them");
    Ok((begin.elapsed().as_secs_f64(), count))
}

fn open(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "cache_size", "-65536")?;
    connection.execute(sql!("floor_table"), [])?;
    Ok(connection)
}

fn insert(transaction: &Transaction, jobs: std::ops::Range<u64>) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached(sql!("floor_insert"))?;
    jobs.into_iter().try_for_each(|job| statement.execute((job.cast_signed(), PAYLOAD)).map(drop))
}

fn update(transaction: &Transaction, sql: &str, jobs: std::ops::Range<u64>) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached(sql)?;
    jobs.into_iter().try_for_each(|job| statement.execute((job.cast_signed(), 1)).map(drop))
}
