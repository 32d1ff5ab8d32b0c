//! What runs inside the worker's own process: functions, called by name, and whatever else is a future.
//!
//! Stopping one drops its future at the next point where it waits; one that listens for that is told, and dropped
//! only after the grace. One that blocks its thread instead cannot be stopped from here, so functions must not block.

use crate::clock;
use crate::ctx::{Ctx, Notice};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::ids::{Name, RunId};
use tidegate_core::protocol::{Attempt, Lease, Outcome, Payload};
use tidegate_core::time::{Moment, Span};
use tokio::task::{AbortHandle, JoinError, JoinSet};

pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
pub type Function = Arc<dyn Fn(Ctx, Payload) -> BoxFuture<Outcome> + Send + Sync>;

/// What a worker can be asked to call.
#[derive(Clone, Default)]
pub struct Functions(BTreeMap<Name, Function>);

impl Functions {
    pub fn register<F, R>(&mut self, name: impl Into<Name>, function: F)
    where
        F: Fn(Ctx, Payload) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        self.0.insert(name.into(), Arc::new(move |ctx, input| Box::pin(function(ctx, input))));
    }

    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.0.keys()
    }
}

/// How long the end of the worker waits for functions that do not stop; these are left to run out, unreported.
const PATIENCE: Duration = Duration::from_secs(1);

/// The calls under way.
pub(crate) struct Calls {
    functions: Functions,
    running: JoinSet<(Lease, Outcome)>,
    calls: BTreeMap<Lease, Call>,
}

struct Call {
    abort: AbortHandle,
    notice: Arc<Notice>,
    grace: Span,
}

impl Calls {
    pub(crate) fn new(functions: Functions) -> Calls {
        Calls { functions, running: JoinSet::new(), calls: BTreeMap::new() }
    }

    /// The error is a sentence.
    pub(crate) fn call(
        &mut self,
        attempt: &Attempt,
        run: RunId,
        bounds: (Moment, Span),
        function: &Name,
        input: Payload,
    ) -> Result<(), String> {
        let function = self
            .functions
            .0
            .get(function)
            .cloned()
            .ok_or_else(|| format!("no function `{function}` is registered on this worker"))?;
        self.start(attempt, run, bounds, move |ctx| function(ctx, input));
        Ok(())
    }

    /// Until the deadline, unless that is extended.
    pub(crate) fn start<F, R>(
        &mut self,
        attempt: &Attempt,
        run: RunId,
        (deadline, grace): (Moment, Span),
        work: F,
    ) where
        F: FnOnce(Ctx) -> R + Send + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        let notice = Arc::new(Notice::new(deadline));
        let (ctx, until) = (Ctx::new(attempt, run, notice.clone()), notice.clone());
        // Called inside its own task, so that one that panics before it returns a future takes nobody with it.
        let lease = attempt.lease;
        let abort = self.running.spawn(async move {
            // The process may have been stopped since: by now it may run elsewhere.
            let outcome = match clock::now() < until.deadline() {
                true => work(ctx).await,
                false => Outcome::Stopped,
            };
            (lease, outcome)
        });
        self.calls.insert(lease, Call { abort, notice, grace });
    }

    /// Until when it may run, and how long it has to end.
    pub(crate) fn bounds(&self, lease: Lease) -> Option<(Moment, Span)> {
        self.calls.get(&lease).map(|call| (call.notice.deadline(), call.grace))
    }

    pub(crate) fn extend(&self, lease: Lease, deadline: Moment) {
        if let Some(call) = self.calls.get(&lease) {
            call.notice.extend(deadline);
        }
    }

    pub(crate) fn stop(&self, lease: Lease) {
        let Some(Call { abort, notice, grace }) = self.calls.get(&lease) else { return };
        if !notice.stop() {
            return abort.abort();
        }
        let (abort, grace) = (abort.clone(), Duration::from(*grace));
        tokio::spawn(async move {
            tokio::time::sleep(grace).await;
            abort.abort();
        });
    }

    pub(crate) fn abandon(&self, lease: Lease) {
        if let Some(call) = self.calls.get(&lease) {
            call.abort.abort();
        }
    }

    /// The next call that ends; `None` if none is under way. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Option<(Lease, Outcome)> {
        let joined = self.running.join_next().await?;
        self.ended(joined)
    }

    /// A call that has ended, if there is any.
    pub(crate) fn try_next(&mut self) -> Option<(Lease, Outcome)> {
        let joined = self.running.try_join_next()?;
        self.ended(joined)
    }

    fn ended(&mut self, joined: Result<(Lease, Outcome), JoinError>) -> Option<(Lease, Outcome)> {
        let (lease, outcome) = match joined {
            Ok(ended) => ended,
            Err(error) => {
                // Only its task is known of one that panicked or was ended.
                let is_it = |(_, call): &(&Lease, &Call)| call.abort.id() == error.id();
                let lease = *self.calls.iter().find(is_it)?.0;
                (lease, of_error(error))
            }
        };
        self.calls.remove(&lease);
        Some((lease, outcome))
    }

    /// Stops all of them, and tells how they ended.
    pub(crate) async fn close(&mut self) -> Vec<(Lease, Outcome)> {
        self.running.abort_all();
        let mut ended = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, async {
            while let Some(end) = self.next().await {
                ended.push(end);
            }
        })
        .await;
        ended
    }
}

fn of_error(error: JoinError) -> Outcome {
    if error.is_cancelled() {
        return Outcome::Stopped;
    }
    let panic = error.into_panic();
    let message =
        panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    Outcome::failed(format!("the function panicked: {}", message.unwrap_or("without a message")))
}
