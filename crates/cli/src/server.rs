//! A server, as commands ask it.

use crate::args::ServerAddress;
use crate::failure::{Exit, Failure};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use tidegate_remote::{Client, ClientError};

/// What a caller has to show, where a server asks for it.
pub const TOKEN: &str = "TIDEGATE_TOKEN";

pub fn connect(address: &ServerAddress) -> Result<Client, Failure> {
    let token = std::env::var(TOKEN).ok();
    Client::new(&address.url(), token.as_deref()).map_err(|error| failed(&error))
}

/// A name as part of an address.
pub fn segment(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}

/// A note beside a store that says where the server is that has it, for as long as it has.
pub struct Note {
    path: PathBuf,
    url: String,
}

impl Note {
    /// None of a server that this machine reaches only from outside: nobody would believe it.
    pub fn leave(store: &Path, address: SocketAddr) -> Option<Note> {
        let (path, url) = (note_of(store), format!("http://{}", reached(address)));
        is_here(&url).then_some(())?;
        // Who does not find it is told the address by whoever started the server.
        let _ = std::fs::write(&path, &url);
        Some(Note { path, url })
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        // Another server of the same store may have left its own.
        if std::fs::read_to_string(&self.path).is_ok_and(|url| url == self.url) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Where the server is that has this store, if one said so. Whoever made the folder may have written anything, and a token
/// goes to that address: only this machine is believed.
pub fn found_at(store: &Path) -> Option<String> {
    std::fs::read_to_string(note_of(store)).ok().filter(|url| is_here(url))
}

fn is_here(url: &str) -> bool {
    let address = url.strip_prefix("http://").and_then(|address| address.parse::<SocketAddr>().ok());
    address.is_some_and(|address| address.ip().is_loopback())
}

fn note_of(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".server");
    PathBuf::from(name)
}

/// How who listens everywhere is reached from here.
fn reached(address: SocketAddr) -> SocketAddr {
    let ip = match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other.ip(),
    };
    SocketAddr::new(ip, address.port())
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
        ClientError::Unreachable(..) => Failure::new("server", error.to_string())
            .help("start one with `tidegate serve` or `tidegate dev`, or say where it is with --server"),
        ClientError::Unreadable(..) => Failure::new("server", error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_believed() {
        let folder = tempfile::tempdir().expect("there is room");
        let store = folder.path().join("state.db");
        let address = |text: &str| text.parse::<SocketAddr>().expect("it is an address");
        let note = Note::leave(&store, address("0.0.0.0:7070"));
        assert_eq!(found_at(&store).as_deref(), Some("http://127.0.0.1:7070"));
        drop(note);
        assert_eq!(found_at(&store), None);
        assert!(Note::leave(&store, address("192.0.2.1:7070")).is_none());
        for wrong in ["", "http://192.0.2.1:80", "http://127.0.0.1.example.com:80", "https://example.com"] {
            std::fs::write(note_of(&store), wrong).expect("it can be written");
            assert_eq!(found_at(&store), None, "{wrong}");
        }
    }
}
