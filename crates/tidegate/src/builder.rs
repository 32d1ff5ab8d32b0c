//! How an engine is opened: over which store, under which name, and where others reach it.

use crate::error::Error;
use crate::evaluator::Evaluator;
use crate::store::{self, Handles};
use crate::tidegate::Tidegate;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::ids::Name;
use tidegate_core::time::Span;
use tidegate_engine::{Engine, Listener, Settings};
use tidegate_store::Retention;

/// What the engine and the first worker are called where no other process uses the store.
const LOCAL: &str = "local";

/// An engine that is about to be opened. See [`Tidegate::builder`].
///
/// ```
/// use std::time::Duration;
/// use tidegate::{FOREVER, Tidegate};
///
/// # #[tokio::main] async fn main() -> Result<(), tidegate::Error> {
/// let week = Duration::from_secs(7 * 24 * 60 * 60);
/// let tide = Tidegate::builder("memory:").keep_history(week).keep_failures(FOREVER).open().await?;
/// # tide.close().await;
/// # Ok(()) }
/// ```
#[must_use = "nothing is opened until `open` is awaited"]
pub struct Builder {
    address: String,
    name: Option<Name>,
    listen: SocketAddr,
    host: Option<String>,
    shares_file: bool,
    history: Option<Span>,
    failures: Option<Span>,
    keeps_digests: bool,
}

impl Builder {
    pub(crate) fn new(address: &str) -> Builder {
        Builder {
            address: address.to_owned(),
            name: None,
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            host: None,
            shares_file: false,
            history: None,
            failures: None,
            keeps_digests: false,
        }
    }

    /// What this process and its workers are called among those that share the store; unless told otherwise it is made
    /// up. A process that is started anew under its name goes on at once with what its workers had.
    pub fn name(mut self, name: impl Into<Name>) -> Builder {
        self.name = Some(name.into());
        self
    }

    /// Where other processes that share the store reach this one: on other machines, an address that they can reach.
    /// With port 0 it is any that is free.
    pub fn listen(mut self, address: SocketAddr) -> Builder {
        self.listen = address;
        self
    }

    /// Under which name or address others find the one it listens on, where that differs.
    pub fn host(mut self, host: impl Into<String>) -> Builder {
        self.host = Some(host.into());
        self
    }

    /// Lets other processes of the same user open the same SQLite file, if they say so too: one of them leads, the others work
    /// through it, and one of these takes over when it ends. Functions then start after the commit of their grant.
    pub fn share_file(mut self) -> Builder {
        self.shares_file = true;
        self
    }

    /// What has ended is deleted after so long, and not before a minute: 30 days unless told otherwise, and 90 if it did not
    /// succeed. See [`FOREVER`](crate::FOREVER).
    pub fn keep_history(mut self, span: Duration) -> Builder {
        self.history = Some(span.into());
        self
    }

    /// What did not succeed is deleted after so long, where that is not as long as the rest: what failed, was cancelled,
    /// timed out or never started.
    pub fn keep_failures(mut self, span: Duration) -> Builder {
        self.failures = Some(span.into());
        self
    }

    fn retention(&self) -> Retention {
        let all = self.history.map_or(Retention::default(), Retention::of_all);
        Retention { failed: self.failures.unwrap_or(all.failed), ..all }
    }

    /// Every commit says what all that is open amounts to, and whatever is loaded is compared with that: if they differ,
    /// the engine ends. It costs as much as there is open. For tests of Tidegate itself.
    #[doc(hidden)]
    pub fn keep_digests(mut self) -> Builder {
        self.keeps_digests = true;
        self
    }

    /// Opens the store and starts the engine.
    pub async fn open(self) -> Result<Tidegate, Error> {
        let retention = self.retention();
        let (address, shares_file) = (self.address, self.shares_file);
        // Opening waits for a disk or a network.
        let opened = tokio::task::spawn_blocking(move || store::open(&address, shares_file)).await;
        let Handles { owner, engine: reads, reader, place, is_shared } =
            opened.map_err(|_| Error::Closed)??;
        let Names { process, server } = names(self.name, is_shared);
        let mut settings = Settings::new(server);
        (settings.retention, settings.keeps_digests) = (retention, self.keeps_digests);
        let listener = match is_shared {
            true => Some(Listener::bind(self.listen, self.host.as_deref()).await.map_err(Error::Listen)?),
            false => None,
        };
        settings.contact = listener.as_ref().map(|listener| listener.contact().clone());
        let looks = reads.clone();
        let engine = Engine::start(settings, owner, reads, Arc::new(Evaluator::default()));
        listener.into_iter().for_each(|listener| listener.serve(engine.clone()));
        Tidegate::start(engine, (reader, looks), place, process).await
    }
}

struct Names {
    process: Name,
    /// Who leads must be one process, whatever others call themselves: this one is never given twice.
    server: Name,
}

fn names(given: Option<Name>, is_shared: bool) -> Names {
    let (process, server) = match (given, is_shared) {
        (Some(name), true) => (name.clone(), unique(name.as_str())),
        (None, true) => {
            let name = unique(&format!("process-{}", std::process::id()));
            (name.clone(), name)
        }
        (given, false) => {
            let name = given.unwrap_or(LOCAL.into());
            (name.clone(), name)
        }
    };
    Names { process, server }
}

fn unique(name: &str) -> Name {
    let random = uuid::Uuid::new_v4().simple().to_string();
    Name::from(format!("{name}-{}", &random[..8]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    #[test]
    fn failures_are_kept_as_long_as_the_rest_unless_something_else_is_said_about_them() {
        let builder = || Builder::new("memory:");
        let of =
            |succeeded, failed| Retention { succeeded: Span::days(succeeded), failed: Span::days(failed) };
        assert_eq!(builder().retention(), of(30, 90));
        assert_eq!(builder().keep_history(DAY).retention(), of(1, 1));
        assert_eq!(builder().keep_failures(DAY).retention(), of(30, 1));
        assert_eq!(builder().keep_failures(2 * DAY).keep_history(DAY).retention(), of(1, 2));
        assert_eq!(builder().keep_history(crate::FOREVER).retention(), Retention::FOREVER);
    }
}
