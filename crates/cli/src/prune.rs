//! `tidegate prune`: what ended long ago goes, from a file that nobody is working on or from a database.

use crate::args::{self, Place};
use crate::diary;
use crate::failure::{Exit, Failure};
use crate::out::say;
use crate::time::now;
use std::path::Path;
use tidegate_core::time::{Moment, Span};
use tidegate_store::{KEEP_AT_LEAST, PostgresHistory, Pruned, Reads, Sought, SqliteStore, Store, StoreError};

/// Rows deleted with one commit.
const SLICE: u32 = 2_000;

pub fn prune(options: &args::Prune, quiet: bool) -> Result<Exit, Failure> {
    let (count, older_than) = match &options.store {
        Place::File(store) => {
            let path = store.existing()?;
            let count = in_file(path, options.older_than, options.dry_run);
            (count.map_err(|error| in_use(&error, path))?, options.older_than)
        }
        Place::Postgres(url) => {
            let older_than = options.older_than.max(KEEP_AT_LEAST);
            let count = in_database(url, older_than, options.dry_run);
            (count.map_err(|error| Failure::database(&error, url))?, older_than)
        }
    };
    if !quiet {
        let verb = if options.dry_run { "would delete" } else { "deleted" };
        let runs = if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
        say(format!("{verb} {runs} that ended more than {older_than} ago"));
    }
    Ok(Exit::Success)
}

fn in_file(path: &Path, older_than: Span, dry_run: bool) -> Result<u64, StoreError> {
    let before = now() - older_than;
    if dry_run {
        return SqliteStore::count_prunable(path, before);
    }
    let mut store = SqliteStore::open(path)?;
    let gone = delete(before, |before, most| store.prune(before, most))?;
    let runs = diary::runs(path);
    let sought: Vec<Sought> = runs.iter().copied().map(Sought::Id).collect();
    for (run, found) in runs.into_iter().zip(store.find(&sought)?) {
        if found.is_none() {
            // One that cannot be removed is tried again the next time.
            let _ = std::fs::remove_file(diary::file(path, run));
        }
    }
    Ok(gone)
}

fn in_database(url: &str, older_than: Span, dry_run: bool) -> Result<u64, StoreError> {
    let (mut history, before) = (PostgresHistory::open(url)?, now() - older_than);
    match dry_run {
        true => history.count_prunable(before),
        false => delete(before, |before, most| history.prune(before, most)),
    }
}

fn delete(
    before: Moment,
    mut prune: impl FnMut(Moment, u32) -> Result<Pruned, StoreError>,
) -> Result<u64, StoreError> {
    let mut gone = 0;
    loop {
        let slice = prune(before, SLICE)?;
        gone += slice.roots;
        if slice.rows == 0 {
            return Ok(gone);
        }
    }
}

fn in_use(error: &StoreError, path: &Path) -> Failure {
    let failure = Failure::store(error, path);
    match error {
        StoreError::InUse(_) => failure.help(
            "wait for its end; a program prunes its own store with `Tidegate::prune` or `keep_history`",
        ),
        _ => failure,
    }
}
