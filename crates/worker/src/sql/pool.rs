//! Connections to one database: at most so many at once, kept for a while when nobody uses them.

use super::address::Address;
use super::lock;
use super::session::Session;
use super::trouble::Trouble;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A connection that nobody uses is kept for so long.
const IDLE: Duration = Duration::from_secs(60);
/// For whatever a server is asked besides statements.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the end of the worker waits for servers to hear of it.
const FAREWELL: Duration = Duration::from_secs(1);

pub(super) struct Pool {
    address: Address,
    permits: Arc<Semaphore>,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    /// The one that was used last is used next.
    sessions: Vec<(Instant, Session)>,
    /// Somebody looks after them.
    is_watched: bool,
}

impl Pool {
    pub(super) fn new(address: Address, max: u32) -> Pool {
        Pool { address, permits: Arc::new(Semaphore::new(max as usize)), idle: Mutex::default() }
    }

    /// Waits until there is room for one.
    pub(super) async fn borrow(self: &Arc<Self>, farewells: &Farewells) -> Result<Borrowed, Trouble> {
        let permit = self.permits.clone().acquire_owned().await;
        let permit = permit.map_err(|closed| Trouble::Order(closed.to_string()))?;
        let mut session = None;
        while session.is_none() {
            let Some(mut kept) = self.kept() else { break };
            let is_alive = tokio::time::timeout(PATIENCE, kept.is_alive()).await.unwrap_or(false);
            session = is_alive.then_some(kept);
        }
        let session = match session {
            Some(session) => session,
            None => self.address.connect().await?,
        };
        let (pool, farewells) = (self.clone(), farewells.clone());
        Ok(Borrowed { held: Some((session, permit)), pool, farewells })
    }

    fn kept(&self) -> Option<Session> {
        lock(&self.idle).sessions.pop().map(|(_, session)| session)
    }

    fn keep(self: &Arc<Self>, session: Session) {
        let mut idle = lock(&self.idle);
        idle.sessions.push((Instant::now(), session));
        if !std::mem::replace(&mut idle.is_watched, true) {
            tokio::spawn(self.clone().watch());
        }
    }

    /// Closes what nobody has used for too long, until there is nothing left.
    async fn watch(self: Arc<Self>) {
        loop {
            let oldest = {
                let mut idle = lock(&self.idle);
                idle.sessions.retain(|(since, _)| since.elapsed() < IDLE);
                let Some(oldest) = idle.sessions.iter().map(|(since, _)| *since).min() else {
                    idle.is_watched = false;
                    return;
                };
                oldest
            };
            tokio::time::sleep_until(oldest + IDLE).await;
        }
    }
}

/// A connection, and the right to have it. Dropped, it is given up: what it is at ends in the server, and it is closed.
pub(super) struct Borrowed {
    held: Option<(Session, OwnedSemaphorePermit)>,
    pool: Arc<Pool>,
    farewells: Farewells,
}

impl Borrowed {
    pub(super) fn session(&mut self) -> Result<&mut Session, Trouble> {
        let given_away = || Trouble::Order("the connection was given away".to_owned());
        self.held.as_mut().map(|(session, _)| session).ok_or_else(given_away)
    }

    /// For others to use, once it has forgotten everything.
    pub(super) fn give_back(mut self) {
        let Some((mut session, permit)) = self.held.take() else { return };
        let pool = self.pool.clone();
        tokio::spawn(async move {
            if tokio::time::timeout(PATIENCE, session.reset()).await == Ok(true) {
                pool.keep(session);
            }
            drop(permit);
        });
    }

    /// Waits until the server knows.
    pub(super) async fn give_up(mut self) {
        // Taken only afterwards, so that being dropped meanwhile changes nothing.
        if let Some((session, _)) = &self.held {
            let _ = tokio::time::timeout(PATIENCE, session.interrupt()).await;
        }
        self.held = None;
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let Some((session, permit)) = self.held.take() else { return };
        self.farewells.say(async move {
            // A server that does not hear it notices that the connection is gone.
            let _ = tokio::time::timeout(PATIENCE, session.interrupt()).await;
            drop((session, permit));
        });
    }
}

/// What servers are still to be told about statements that were given up.
#[derive(Clone, Default)]
pub(super) struct Farewells(Arc<Mutex<JoinSet<()>>>);

impl Farewells {
    fn say(&self, farewell: impl Future<Output = ()> + Send + 'static) {
        // Outside of a runtime nothing can be said, and the connections are gone already.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut farewells = lock(&self.0);
        while farewells.try_join_next().is_some() {}
        farewells.spawn_on(farewell, &runtime);
    }

    pub(super) async fn said(&self) {
        let mut farewells = std::mem::take(&mut *lock(&self.0));
        let all = async { while farewells.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(FAREWELL, all).await;
    }
}
