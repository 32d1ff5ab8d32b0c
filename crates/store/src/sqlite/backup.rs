//! A copy of a store in another file, made while whoever owns the store goes on.
//!
//! The copy gets its name when it is whole and on the disk, so that a file of that name is never half a backup.

use super::fault::{of_file, said};
use super::{open, sql};
use crate::contract::StoreError;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why there is no copy.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum BackupError {
    #[error("{} is there already", .0.display())]
    Exists(PathBuf),
    #[error("{} is the store itself", .0.display())]
    Itself(PathBuf),
    #[error("{} is there already: another backup is under way, or was interrupted and left it", .0.display())]
    UnderWay(PathBuf),
    #[error("the copy cannot be written: {0}")]
    NotWritten(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub fn backup(store: &Path, to: &Path, replace: bool) -> Result<(), BackupError> {
    if is_same(store, to) {
        return Err(BackupError::Itself(to.to_owned()));
    }
    if !replace && to.exists() {
        return Err(BackupError::Exists(to.to_owned()));
    }
    let part = beside(to);
    let text = part.to_str().ok_or_else(|| BackupError::NotWritten("its path is not valid UTF-8".into()))?;
    let connection = open::reader(store)?;
    File::create_new(&part).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => BackupError::UnderWay(part.clone()),
        _ => not_written(&error),
    })?;
    let copied = match connection.execute(sql!("backup"), [text]).map_err(said) {
        Ok(_) => finish(&part, to).map_err(|error| not_written(&error)),
        // It was opened and read a moment ago, so it is the copy that cannot be used.
        Err(StoreError::Unusable(why)) => Err(BackupError::NotWritten(why)),
        Err(error) => Err(error.into()),
    };
    if copied.is_err() {
        // Half a copy is of no use to anybody; that it cannot be removed is not the trouble to tell.
        let _ = std::fs::remove_file(&part);
    }
    copied
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn beside(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// SQLite does not flush what it copies.
fn finish(part: &Path, to: &Path) -> io::Result<()> {
    File::options().write(true).open(part)?.sync_all()?;
    std::fs::rename(part, to)?;
    let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

fn not_written(error: &io::Error) -> BackupError {
    BackupError::NotWritten(match of_file(error) {
        StoreError::Unusable(why) => why,
        other => other.to_string(),
    })
}
