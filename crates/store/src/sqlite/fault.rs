//! What an error of SQLite means for whoever called.

use crate::contract::StoreError;
use rusqlite::ErrorCode;
use std::io;

const FULL: &str = "disk full";

/// If somebody else was faster nothing is damaged, and asking again is right. A disk that is full or fails may get
/// better, and a fresh handle then finds out what is stored. Anything else (a row that cannot be read or is there
/// already) does not pass by itself.
pub fn said(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::OperationInterrupted) => {
            StoreError::Unknown(error.to_string())
        }
        Some(ErrorCode::DiskFull) => StoreError::Unusable(FULL.to_owned()),
        Some(
            ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied
            | ErrorCode::OutOfMemory,
        ) => StoreError::Unusable(error.to_string()),
        _ => StoreError::Broken(error.to_string()),
    }
}

/// The same for files beside the database. A place where no file can be does not get better by waiting.
pub fn of_file(error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Unusable(FULL.to_owned()),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
            StoreError::Broken(error.to_string())
        }
        _ => StoreError::Unusable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    #[test]
    fn busy_may_be_asked_again_a_bad_disk_may_get_better_and_damage_does_not() {
        let failure = |code| said(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        for code in [ffi::SQLITE_BUSY, ffi::SQLITE_BUSY_SNAPSHOT, ffi::SQLITE_LOCKED, ffi::SQLITE_INTERRUPT] {
            assert!(matches!(failure(code), StoreError::Unknown(_)), "{code}");
        }
        for code in [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_CANTOPEN] {
            assert!(matches!(failure(code), StoreError::Unusable(_)), "{code}");
        }
        for code in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB, ffi::SQLITE_CONSTRAINT] {
            assert!(matches!(failure(code), StoreError::Broken(_)), "{code}");
        }
        assert!(matches!(said(rusqlite::Error::QueryReturnedNoRows), StoreError::Broken(_)));
    }

    #[test]
    fn a_full_disk_is_called_so_whoever_met_it() {
        let full = StoreError::Unusable("disk full".to_owned());
        let met = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_FULL), None);
        assert_eq!(said(met), full);
        assert_eq!(of_file(&io::ErrorKind::StorageFull.into()), full);
        assert!(matches!(of_file(&io::ErrorKind::NotFound.into()), StoreError::Broken(_)));
    }
}
