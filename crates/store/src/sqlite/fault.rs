//! What an error of SQLite means for whoever called.

use crate::contract::StoreError;
use rusqlite::ErrorCode;

/// Somebody else was faster: nothing is damaged, and asking again is right. After anything else (a full disk, a
/// failed flush, a row that cannot be read) the handle is not to be trusted.
pub fn said(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::OperationInterrupted) => {
            StoreError::Unknown(error.to_string())
        }
        _ => StoreError::Broken(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    #[test]
    fn busy_may_be_asked_again_and_a_bad_disk_may_not() {
        let failure = |code| said(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        for code in [ffi::SQLITE_BUSY, ffi::SQLITE_BUSY_SNAPSHOT, ffi::SQLITE_LOCKED, ffi::SQLITE_INTERRUPT] {
            assert!(matches!(failure(code), StoreError::Unknown(_)), "{code}");
        }
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_CORRUPT, ffi::SQLITE_CONSTRAINT] {
            assert!(matches!(failure(code), StoreError::Broken(_)), "{code}");
        }
        assert!(matches!(said(rusqlite::Error::QueryReturnedNoRows), StoreError::Broken(_)));
    }
}
