//! `tidegate backup`: a copy of a store, which somebody else may be working on.

use crate::args;
use crate::failure::{Exit, Failure};
use crate::out::say;
use std::path::Path;
use tidegate_store::{BackupError, SqliteStore};

pub fn backup(options: &args::Backup, quiet: bool) -> Result<Exit, Failure> {
    let store = options.store.file("backup", "back up a database with `pg_dump --schema=tidegate`")?;
    let (path, file) = (store.existing()?, &options.file);
    SqliteStore::backup(path, file, options.force).map_err(|error| failure(&error, path, file))?;
    if !quiet {
        say(format!("{} copied to {}", path.display(), file.display()));
    }
    Ok(Exit::Success)
}

fn failure(error: &BackupError, path: &Path, file: &Path) -> Failure {
    let said = |code| Failure::new(code, error.to_string());
    match error {
        BackupError::Store(error) => Failure::store(error, path),
        BackupError::Exists(_) => {
            said("exists").exit(Exit::Refused).help("choose another file, or replace it with --force")
        }
        BackupError::Itself(_) => said("same-file").exit(Exit::Refused).help("choose another file"),
        BackupError::UnderWay(_) => said("exists")
            .exit(Exit::Refused)
            .help("wait for the other backup, or remove what it left, or choose another file"),
        BackupError::NotWritten(_) => {
            said("not-written").at(file.display()).help("see that the directory is there and has room")
        }
    }
}
