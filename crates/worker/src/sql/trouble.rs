//! Why a database did not do what it was asked.

use thiserror::Error;
use tidegate_core::model::Cause;
use tidegate_core::protocol::LARGEST_OUTPUT;

#[derive(Debug, Error)]
pub(super) enum Trouble {
    /// It makes no sense to ask that again.
    #[error("{0}")]
    Order(String),
    #[error("no connection: {0}")]
    Unreachable(String),
    /// What the database says, and its code.
    #[error("{message}")]
    Refused { message: String, code: String },
    #[error("the rows are larger than {} MiB: ask for fewer of them with `limit`", LARGEST_OUTPUT >> 20)]
    TooLarge,
    #[error("statement {number}: {trouble}")]
    Statement { number: usize, rolled_back: bool, trouble: Box<Trouble> },
}

impl Trouble {
    pub(super) fn of_statement(self, number: usize, rolled_back: bool) -> Trouble {
        Trouble::Statement { number, rolled_back, trouble: Box::new(self) }
    }

    pub(super) fn cause(&self) -> Option<Cause> {
        match self {
            Trouble::Unreachable(_) => Some(Cause(Cause::CONNECT.into())),
            Trouble::Refused { code, .. } => Some(Cause::sql(code)),
            Trouble::Statement { trouble, .. } => trouble.cause(),
            Trouble::Order(_) | Trouble::TooLarge => None,
        }
    }

    /// The database has answered, and waits for the next statement.
    pub(super) fn spares_the_session(&self) -> bool {
        match self {
            Trouble::Refused { .. } => true,
            Trouble::Statement { rolled_back, .. } => *rolled_back,
            _ => false,
        }
    }
}
