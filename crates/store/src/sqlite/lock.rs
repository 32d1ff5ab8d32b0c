//! Who owns a file: a lock on the file beside it, which the operating system drops with the process.
//!
//! The lock file of a store stays when its owner goes. Removing it would let two processes lock two files of one name,
//! unless both look whether theirs is the one that is there.

use super::fault::of_file;
use crate::contract::StoreError;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Lock {
    /// Locked as long as it is open.
    file: File,
}

impl Lock {
    pub fn take(store: &Path) -> Result<Self, StoreError> {
        Lock::take_file(&beside(store, ".lock"))
    }

    pub fn take_file(path: &Path) -> Result<Self, StoreError> {
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| of_file(&error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse(owner(&mut file))),
            Err(TryLockError::Error(error)) => return Err(of_file(&error)),
        }
        write_pid(&mut file).map_err(|error| of_file(&error))?;
        Ok(Lock { file })
    }

    /// Whether it is this file that stands at the path now.
    pub fn is_at(&self, path: &Path) -> bool {
        let (mine, there) = (self.file.metadata(), fs::metadata(path));
        matches!((mine, there), (Ok(mine), Ok(there)) if (mine.dev(), mine.ino()) == (there.dev(), there.ino()))
    }
}

pub fn beside(store: &Path, ending: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

/// The owner writes its number after it has the lock, so a look in between finds none.
fn owner(file: &mut File) -> String {
    let mut pid = String::new();
    match file.read_to_string(&mut pid) {
        Ok(_) if pid.trim() == std::process::id().to_string() => "by this very process".to_owned(),
        Ok(_) if !pid.trim().is_empty() => format!("by process {}", pid.trim()),
        _ => "by a process whose number is not known".to_owned(),
    }
}
