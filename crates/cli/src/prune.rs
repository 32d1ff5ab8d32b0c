//! `tidegate prune`: what ended long ago goes, from a file that nobody is working on or from a database.

use crate::args::{self, Place};
use crate::diary;
use crate::failure::{Exit, Failure};
use crate::out::say;
use crate::time::now;
use std::path::Path;
use tidegate_core::time::Span;
use tidegate_store::{
    Before, KEEP_AT_LEAST, PostgresHistory, Pruned, Retention, SqliteStore, Store, StoreError,
};

/// Rows deleted with one commit.
const SLICE: u32 = 2_000;

pub fn prune(options: &args::Prune, quiet: bool) -> Result<Exit, Failure> {
    let all = Retention::of_all(options.older_than.unwrap_or(Span::MAX));
    let keep = Retention { failed: options.failures_older_than.unwrap_or(all.failed), ..all };
    if keep == Retention::FOREVER {
        let failure = Failure::new("nothing", "nothing is older than for ever").exit(Exit::Invalid);
        return Err(failure.help("say with --older-than what else is to be deleted"));
    }
    let (count, keep) = match &options.store {
        Place::File(store) => {
            let path = store.existing()?;
            let count = in_file(path, keep.before(now()), options.dry_run);
            (count.map_err(|error| in_use(&error, path))?, keep)
        }
        Place::Postgres(url) => {
            let keep = keep.at_least(KEEP_AT_LEAST);
            let count = in_database(url, keep.before(now()), options.dry_run);
            (count.map_err(|error| Failure::database(&error, url))?, keep)
        }
    };
    if !quiet {
        let verb = if options.dry_run { "would delete" } else { "deleted" };
        let runs = if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
        say(format!("{verb} {runs} {}", which(keep)));
    }
    Ok(Exit::Success)
}

/// Which runs a policy lets go of.
fn which(keep: Retention) -> String {
    match keep {
        Retention { succeeded, failed } if succeeded == failed => {
            format!("that ended more than {failed} ago")
        }
        Retention { succeeded: Span::MAX, failed } => {
            format!("that ended without success more than {failed} ago")
        }
        Retention { succeeded, failed: Span::MAX } => format!("that succeeded more than {succeeded} ago"),
        Retention { succeeded, failed } => {
            format!("that succeeded more than {succeeded} ago or ended otherwise more than {failed} ago")
        }
    }
}

fn in_file(path: &Path, before: Before, dry_run: bool) -> Result<u64, StoreError> {
    if dry_run {
        return SqliteStore::count_prunable(path, before);
    }
    let mut store = SqliteStore::open(path)?;
    let gone = delete(|| store.prune(before, SLICE))?;
    diary::remove_orphans(path, diary::runs(path), &mut store)?;
    Ok(gone)
}

fn in_database(url: &str, before: Before, dry_run: bool) -> Result<u64, StoreError> {
    let mut history = PostgresHistory::open(url)?;
    match dry_run {
        true => history.count_prunable(before),
        false => delete(|| history.prune(before, SLICE)),
    }
}

fn delete(mut prune: impl FnMut() -> Result<Pruned, StoreError>) -> Result<u64, StoreError> {
    let mut gone = 0;
    loop {
        let slice = prune()?;
        gone += slice.roots;
        if slice.rows == 0 {
            return Ok(gone);
        }
    }
}

fn in_use(error: &StoreError, path: &Path) -> Failure {
    let failure = Failure::store(error, path);
    match error {
        StoreError::InUse(_) => {
            failure.help("wait for its end; a program prunes its own store with `Tidegate::prune`")
        }
        _ => failure,
    }
}
