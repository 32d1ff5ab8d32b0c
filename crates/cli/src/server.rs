//! A server, as commands ask it.

use crate::failure::{Exit, Failure};
use tidegate_remote::{Client, ClientError};

/// What a caller has to show, where a server asks for it.
pub const TOKEN: &str = "TIDEGATE_TOKEN";

pub fn connect(address: &str) -> Result<Client, Failure> {
    let token = std::env::var(TOKEN).ok();
    Client::new(address, token.as_deref()).map_err(|error| failed(&error))
}

/// What a server, or the way to it, says.
pub fn failed(error: &ClientError) -> Failure {
    match error {
        ClientError::Refused { faults, .. } if !faults.is_empty() => {
            for fault in faults {
                let failure = Failure::new("file", format!("{}: {}", fault.code, fault.message));
                let failure = failure.at(format!("{}:{}:{}", fault.file, fault.line, fault.column));
                fault.help.iter().fold(failure, |failure, help| failure.help(help.clone())).report();
            }
            Failure::new("server", error.to_string()).exit(Exit::Invalid)
        }
        ClientError::Refused { status, detail, help, .. } => {
            let exit = match status {
                404 => Exit::NotFound,
                422 => Exit::Invalid,
                500.. => Exit::Unreachable,
                _ => Exit::Refused,
            };
            let failure = Failure::new("server", detail.clone()).exit(exit);
            match (help, status) {
                (Some(help), _) => failure.help(help.clone()),
                (None, 401) => failure.help(format!("set {TOKEN}")),
                (None, _) => failure,
            }
        }
        ClientError::Address(_) => {
            Failure::new("server", error.to_string()).exit(Exit::Invalid).help("write it as http://HOST:PORT")
        }
        ClientError::Token | ClientError::Key => {
            Failure::new("server", error.to_string()).exit(Exit::Invalid)
        }
        ClientError::Unreachable(..) | ClientError::Unreadable(..) => {
            Failure::new("server", error.to_string())
        }
    }
}
