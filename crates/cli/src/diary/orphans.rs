//! Diaries whose runs are not in the store any more.

use super::{file, runs};
use crate::time::now;
use std::path::Path;
use tidegate_core::ids::RunId;
use tidegate_core::time::Moment;
use tidegate_store::{Reads, Retention, Sought, SqliteStore, StoreError};

/// Removes those of these runs that are gone. The runs are listed before the store is asked, so that none is taken for
/// gone that is only beginning.
pub fn remove_orphans(store: &Path, runs: Vec<RunId>, reads: &mut impl Reads) -> Result<(), StoreError> {
    let sought: Vec<Sought> = runs.iter().copied().map(Sought::Id).collect();
    for (run, found) in runs.into_iter().zip(reads.find(&sought)?) {
        if found.is_none() {
            // One that cannot be removed is tried again the next time.
            let _ = std::fs::remove_file(file(store, run));
        }
    }
    Ok(())
}

/// Removes those of runs that went by themselves. Only what began long ago is looked for, which is little where this is
/// done again and again.
pub fn remove_old_orphans(store: &Path) -> Result<(), StoreError> {
    let before = Retention::default().before(now()).succeeded;
    let old: Vec<RunId> = runs(store).into_iter().filter(|run| begun(*run) < before).collect();
    if old.is_empty() {
        return Ok(());
    }
    remove_orphans(store, old, &mut SqliteStore::open_reader(store)?)
}

/// Ids begin with the milliseconds at which they were made.
fn begun(run: RunId) -> Moment {
    let millis = i64::try_from(run.0 >> 80).unwrap_or(i64::MAX);
    Moment(millis.saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diary::folder;
    use tidegate_core::time::Span;

    /// The id of a run that began so long ago.
    fn run(ago: Span) -> RunId {
        RunId(((now() - ago).0 as u128 / 1_000) << 80)
    }

    #[test]
    fn diaries_of_runs_that_are_gone_go_when_they_are_old() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("state.db");
        drop(SqliteStore::open(&store).unwrap());
        let (old, young) = (run(Span::days(31)), run(Span::days(29)));
        std::fs::create_dir(folder(&store)).unwrap();
        let files = [old, young].map(|run| file(&store, run));
        files.iter().for_each(|file| std::fs::write(file, "{}").unwrap());
        let other = folder(&store).join("notes.txt");
        std::fs::write(&other, "mine").unwrap();
        remove_old_orphans(&store).unwrap();
        assert_eq!(runs(&store), [young]);
        assert!(other.exists());
    }
}
