//! What an error of PostgreSQL means for whoever called.

use crate::codec::{self, CodecError};
use crate::contract::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

#[derive(Debug)]
pub enum Fault {
    /// The connection is gone, and nobody knows what became of what was asked.
    Cut(String),
    /// No answer came in time.
    Stalled,
    Said(StoreError),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        let words = words(&error);
        match error.code() {
            Some(code) => said(code, words),
            None if is_unreadable(&error) => Fault::Said(StoreError::Broken(words)),
            None => Fault::Cut(words),
        }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
        Fault::Said(error)
    }
}

impl From<CodecError> for Fault {
    fn from(error: CodecError) -> Fault {
        Fault::Said(match error {
            CodecError::Newer { found } => {
                StoreError::Newer { found: found.into(), known: codec::VERSION.into() }
            }
            error => StoreError::Broken(error.to_string()),
        })
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> StoreError {
        match fault {
            Fault::Cut(words) => StoreError::Unknown(words),
            Fault::Stalled => StoreError::Unknown("it does not answer in time".to_owned()),
            Fault::Said(error) => error,
        }
    }
}

/// What the database refuses now may be taken later; what it does not understand, or what does not fit what is there,
/// stays wrong.
fn said(code: &SqlState, words: String) -> Fault {
    let class = code.code().get(..2).unwrap_or_default();
    match class {
        // The session was ended, by an operator or because the server stops.
        "08" => Fault::Cut(words),
        "57" if *code != SqlState::QUERY_CANCELED => Fault::Cut(words),
        // Or because it stood still with a transaction open, as a process does that was stopped.
        _ if *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => Fault::Cut(words),
        "57" | "40" | "55" => Fault::Said(StoreError::Unknown(words)),
        // No room, no connections, no privileges, a disk that fails, a server that only reads.
        "28" | "3D" | "53" | "58" => Fault::Said(StoreError::Unusable(words)),
        _ if *code == SqlState::READ_ONLY_SQL_TRANSACTION => Fault::Said(StoreError::Unusable(words)),
        _ => Fault::Said(StoreError::Broken(words)),
    }
}

/// A column that does not hold what it should, rather than an answer that did not come.
fn is_unreadable(error: &Error) -> bool {
    let words = error.to_string();
    ["error deserializing", "error serializing", "invalid column", "query returned"]
        .iter()
        .any(|beginning| words.starts_with(beginning))
}

/// All that is known about an error; the library's own words leave out what the server said.
pub fn words(error: &Error) -> String {
    match error.as_db_error() {
        Some(said) => said.message().to_owned(),
        None => {
            let mut words = error.to_string();
            let mut source = std::error::Error::source(error);
            while let Some(cause) = source {
                words = format!("{words}: {cause}");
                source = cause.source();
            }
            words
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_told_from_what_does_not() {
        let meant = |code: &SqlState| StoreError::from(said(code, String::new()));
        for code in [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        ] {
            assert!(matches!(meant(&code), StoreError::Unknown(_)), "{code:?}");
        }
        for code in [SqlState::DISK_FULL, SqlState::TOO_MANY_CONNECTIONS, SqlState::INVALID_PASSWORD] {
            assert!(matches!(meant(&code), StoreError::Unusable(_)), "{code:?}");
        }
        for code in [SqlState::UNDEFINED_TABLE, SqlState::UNIQUE_VIOLATION, SqlState::DATA_CORRUPTED] {
            assert!(matches!(meant(&code), StoreError::Broken(_)), "{code:?}");
        }
    }
}
