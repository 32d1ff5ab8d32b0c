//! `tidegate prune`: what ended long ago goes, from a store that nobody is working on.

use crate::args;
use crate::failure::{Exit, Failure};
use crate::out::say;
use crate::time::now;
use std::path::Path;
use tidegate_core::time::Moment;
use tidegate_store::{SqliteStore, Store, StoreError};

/// Rows deleted with one commit.
const SLICE: u32 = 2_000;

pub fn prune(options: &args::Prune, quiet: bool) -> Result<Exit, Failure> {
    let path = options.store.existing()?;
    let before = now() - options.older_than;
    let (count, verb) = match options.dry_run {
        true => (SqliteStore::count_prunable(path, before), "would delete"),
        false => (delete(path, before), "deleted"),
    };
    let count = count.map_err(|error| failure(&error, path))?;
    if !quiet {
        let runs = if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
        say(format!("{verb} {runs} that ended more than {} ago", options.older_than));
    }
    Ok(Exit::Success)
}

fn delete(path: &Path, before: Moment) -> Result<u64, StoreError> {
    let mut store = SqliteStore::open(path)?;
    let mut gone = 0;
    loop {
        match store.prune(before, SLICE)? {
            0 => return Ok(gone),
            slice => gone += slice,
        }
    }
}

fn failure(error: &StoreError, path: &Path) -> Failure {
    let failure = Failure::store(error, path);
    match error {
        StoreError::InUse(_) => failure.help(
            "wait for its end; a program prunes its own store with `Tidegate::prune` or `keep_history`",
        ),
        _ => failure,
    }
}
