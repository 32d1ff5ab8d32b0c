//! What lies ready for one worker.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidegate::{RunId, Span};
use tidegate_core::protocol::{Attempt, Lease};
use tidegate_engine::{Attachment, Delivery};
use tokio::sync::Notify;

pub struct Inbox {
    incarnation: u64,
    ready: Mutex<Ready>,
    news: Notify,
}

struct Ready {
    attempts: Vec<Waiting>,
    stop: Vec<Lease>,
    /// Another start of the worker has taken its place.
    is_replaced: bool,
    asked: Instant,
    /// How whoever leads finds it.
    way: Option<Attachment>,
}

/// An attempt that was not fetched yet.
pub struct Waiting {
    attempt: Attempt,
    run: RunId,
    /// How long ago its lease began, at `as_of`.
    age: Duration,
    as_of: Instant,
}

impl Waiting {
    /// With what is left of its lease now.
    pub fn now(self) -> (Attempt, RunId) {
        let Waiting { mut attempt, run, age, as_of } = self;
        let gone = Span::from(age + as_of.elapsed());
        attempt.left = Span(attempt.length.0.saturating_sub(gone.0)).min(attempt.left);
        (attempt, run)
    }
}

/// What a worker gets when it asks.
#[derive(Default)]
pub struct Fetched {
    pub attempts: Vec<Waiting>,
    pub stop: Vec<Lease>,
    pub is_replaced: bool,
}

impl Inbox {
    pub fn new(incarnation: u64) -> Inbox {
        let ready = Ready {
            attempts: Vec::new(),
            stop: Vec::new(),
            is_replaced: false,
            asked: Instant::now(),
            way: None,
        };
        Inbox { incarnation, ready: Mutex::new(ready), news: Notify::new() }
    }

    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// How long nobody has asked.
    pub fn idle(&self) -> Duration {
        self.ready().asked.elapsed()
    }

    pub fn found_by(&self, way: Attachment) {
        self.ready().way = Some(way);
    }

    pub fn way(&self) -> Option<Attachment> {
        self.ready().way.clone()
    }

    pub fn put(&self, delivery: Delivery) {
        let mut ready = self.ready();
        match delivery {
            Delivery::Attempt { attempt, run, age, as_of } => {
                // It may be handed over again before it was fetched.
                ready.attempts.retain(|known| known.attempt.lease != attempt.lease);
                ready.attempts.push(Waiting { attempt, run, age, as_of });
            }
            Delivery::Stop(lease) => {
                ready.attempts.retain(|known| known.attempt.lease != lease);
                ready.stop.push(lease);
            }
            // A finish is answered by itself.
            Delivery::Reported(_) => return,
            Delivery::Abort(leases, told) => {
                ready.attempts.retain(|known| !leases.contains(&known.attempt.lease));
                ready.stop.extend(leases);
                // Nothing is granted to others ahead of its commit where workers are elsewhere.
                let _ = told.send(());
            }
            Delivery::Replaced { by } => ready.is_replaced |= by > self.incarnation,
        }
        drop(ready);
        self.news.notify_one();
    }

    /// All that is ready, as soon as there is something, or nothing after so long.
    pub async fn fetch(&self, wait: Duration) -> Fetched {
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            let news = self.news.notified();
            if let Some(fetched) = self.take() {
                return fetched;
            }
            if tokio::time::timeout_at(deadline, news).await.is_err() {
                return self.take().unwrap_or_default();
            }
        }
    }

    /// All that is ready, if there is something.
    pub fn take(&self) -> Option<Fetched> {
        let mut ready = self.ready();
        ready.asked = Instant::now();
        if ready.attempts.is_empty() && ready.stop.is_empty() && !ready.is_replaced {
            return None;
        }
        let (attempts, stop) = (std::mem::take(&mut ready.attempts), std::mem::take(&mut ready.stop));
        Some(Fetched { attempts, stop, is_replaced: ready.is_replaced })
    }

    fn ready(&self) -> MutexGuard<'_, Ready> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
