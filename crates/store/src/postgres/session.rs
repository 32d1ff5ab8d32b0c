//! A connection that is made when it is needed and thrown away when something went wrong with it.
//!
//! Whoever calls may block, and never blocks for ever: every call has a deadline of its own, kept on this side. No
//! call that is given up goes on in the database, where it would wait for a lock for as long as that is held. No call leaves
//! anything behind in its session, so that a pool which gives every transaction another connection may
//! stand in between: statements are not prepared, settings are for one transaction.

use super::connect::Route;
use super::fault::{self, Fault};
use crate::contract::StoreError;
use futures_util::StreamExt;
use std::fmt;
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::Client;

/// How long a call may take that is nothing special.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// How long a connection may take, also one that ends what another is at.
const CONNECTING: Duration = Duration::from_secs(5);

pub struct Session {
    /// There until the end.
    runtime: Option<Runtime>,
    route: Route,
    client: Option<Client>,
}

impl Drop for Session {
    /// Without waiting for anybody: whoever drops it may be a task of another runtime, which must not wait.
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

impl Session {
    /// Does not connect yet.
    pub fn new(route: Route) -> Result<Self, StoreError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| StoreError::Unusable(error.to_string()))?;
        Ok(Session { runtime: Some(runtime), route, client: None })
    }

    /// Another connection to the same database.
    pub fn another(&self) -> Result<Self, StoreError> {
        Session::new(self.route.clone())
    }

    pub fn route(&self) -> &Route {
        &self.route
    }

    /// Works with the database. `work` may be called twice, the second time on a fresh connection: one that was left
    /// idle may have been cut without anybody noticing.
    pub fn call<T>(
        &mut self,
        patience: Duration,
        work: impl AsyncFn(&Client) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        if let Some(client) = self.client.take() {
            match self.work(client, patience, &work) {
                Err(Fault::Cut(_)) => {}
                result => return result.map_err(StoreError::from),
            }
        }
        let client = self.connect()?;
        self.work(client, patience, &work).map_err(StoreError::from)
    }

    /// Whatever went wrong, the connection may be in the middle of something: it is not used again.
    fn work<T>(
        &mut self,
        client: Client,
        patience: Duration,
        work: impl AsyncFn(&Client) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let runtime = self.runtime.as_ref().ok_or(Fault::Stalled)?;
        let Ok(result) = runtime.block_on(async { timeout(patience, work(&client)).await }) else {
            cancel(self.route.clone(), client);
            return Err(Fault::Stalled);
        };
        let value = result?;
        self.client = Some(client);
        Ok(value)
    }

    fn connect(&self) -> Result<Client, StoreError> {
        let runtime = self.runtime.as_ref().ok_or(Fault::Stalled)?;
        let connecting = async { timeout(CONNECTING, self.route.connect()).await };
        let (client, mut messages) = match runtime.block_on(connecting) {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) => return Err(StoreError::Unusable(fault::words(&error))),
            Err(_) => return Err(StoreError::Unusable("it does not answer".to_owned())),
        };
        // When it ends, whoever waits for an answer is told by the client.
        runtime.spawn(async move { while let Some(Ok(_)) = messages.next().await {} });
        Ok(client)
    }

    pub fn close(&mut self) {
        self.client = None;
    }
}

/// Ends what a session is at, on a thread of its own: whoever called has waited long enough, and nothing goes on in the
/// session's runtime until the next call. A pool may not pass this on; then only a `lock_timeout` that the role
/// was given ends it.
fn cancel(route: Route, client: Client) {
    let cancelling = move || {
        let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
        let token = client.cancel_token();
        let _ = runtime.block_on(async { timeout(CONNECTING, route.cancel(&token)).await });
    };
    // Without a thread, the database finds out by itself.
    let _ = thread::Builder::new().name("tidegate-cancel".to_owned()).spawn(cancelling);
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("is_connected", &self.client.is_some()).finish_non_exhaustive()
    }
}
