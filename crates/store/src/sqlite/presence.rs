//! That the process of a worker lives, told among those that share a file: a lock on a file of the worker's name beside it,
//! which the operating system drops with the process.
//!
//! It says nothing about leases, and nobody has to show it. It only lets others find out at once what silence would tell
//! them later, and keeps two processes from working under one name.

use super::lock::{Lock, beside};
use crate::contract::StoreError;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tidegate_core::ids::Name;

/// Whoever only looks holds the lock for a moment.
const PATIENCE: Duration = Duration::from_millis(300);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub struct Presence {
    path: PathBuf,
    _lock: Lock,
}

impl Presence {
    /// Takes the place of a worker. While another process has it, it is in use.
    pub fn claim(store: impl AsRef<Path>, worker: &Name) -> Result<Presence, StoreError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match Presence::claim_now(store.as_ref(), worker) {
                Err(StoreError::InUse(_)) if Instant::now() < deadline => std::thread::sleep(LOOK_AGAIN),
                claimed => return claimed,
            }
        }
    }

    /// Whether a process has the place of this worker; then it is said which.
    pub fn holder(store: impl AsRef<Path>, worker: &Name) -> Option<String> {
        let path = path(store.as_ref(), worker)?;
        match path.exists().then(|| Presence::claim_now(store.as_ref(), worker)) {
            Some(Err(StoreError::InUse(who))) => Some(who),
            _ => None,
        }
    }

    fn claim_now(store: &Path, worker: &Name) -> Result<Presence, StoreError> {
        let path = path(store, worker)
            .ok_or_else(|| StoreError::Broken(format!("`{worker}` cannot be the name of a file")))?;
        loop {
            let lock = Lock::take_file(&path)?;
            // Whoever had it before may have removed the file after it was opened here.
            if lock.is_at(&path) {
                return Ok(Presence { path, _lock: lock });
            }
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // Before the lock goes. One that stays says nothing.
        let _ = fs::remove_file(&self.path);
    }
}

fn path(store: &Path, worker: &Name) -> Option<PathBuf> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    worker.as_str().chars().all(is_plain).then(|| beside(store, &format!(".{worker}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_the_place_until_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        let worker = Name::new("cli-1");
        assert_eq!(Presence::holder(&store, &worker), None);
        let first = Presence::claim(&store, &worker).unwrap();
        assert_eq!(Presence::holder(&store, &worker).as_deref(), Some("by this very process"));
        assert!(matches!(Presence::claim(&store, &worker), Err(StoreError::InUse(_))));
        let _other = Presence::claim(&store, &Name::new("cli-2")).unwrap();
        drop(first);
        assert_eq!(Presence::holder(&store, &worker), None);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "it takes its file along");
        Presence::claim(&store, &worker).unwrap();
    }

    #[test]
    fn a_file_that_was_left_behind_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        let worker = Name::new("cli-1");
        fs::write(path(&store, &worker).unwrap(), "4711").unwrap();
        assert_eq!(Presence::holder(&store, &worker), None);
        Presence::claim(&store, &worker).unwrap();
        assert!(Presence::claim(&store, &Name::new("../up")).is_err(), "no name leads elsewhere");
    }
}
