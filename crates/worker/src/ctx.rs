//! What a function knows about the attempt it carries out, and how it hears that it is to stop.

use crate::clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};
use tidegate_core::ids::{Epoch, RunId, TaskId};
use tidegate_core::protocol::Attempt;
use tidegate_core::time::Moment;
use tokio::sync::watch;

/// One attempt, as the function that carries it out sees it. Cheap to clone.
///
/// An attempt that is to stop is dropped at the next point where it waits. A function that has asked for
/// [`Ctx::cancelled`] or [`Ctx::is_cancelled`] is told first, and gets the worker's grace to end by itself.
#[derive(Clone, Debug)]
pub struct Ctx {
    run: RunId,
    task: TaskId,
    attempt: u32,
    epoch: Epoch,
    notice: Arc<Notice>,
}

/// What an attempt is told while it runs: until when it may, and that it is to stop.
#[derive(Debug)]
pub(crate) struct Notice {
    /// As the worker's clock counts.
    deadline: AtomicI64,
    stop: watch::Sender<bool>,
    is_heeded: AtomicBool,
}

impl Notice {
    pub(crate) fn new(deadline: Moment) -> Notice {
        let (deadline, stop) = (AtomicI64::new(deadline.0), watch::Sender::new(false));
        Notice { deadline, stop, is_heeded: AtomicBool::new(false) }
    }

    /// Says that it is to stop. False: nobody listens.
    pub(crate) fn stop(&self) -> bool {
        self.stop.send_replace(true);
        self.is_heeded.load(Ordering::SeqCst)
    }

    /// Says that it may run for longer.
    pub(crate) fn extend(&self, deadline: Moment) {
        self.deadline.store(deadline.0, Ordering::Relaxed);
    }

    /// Until when it may run.
    pub(crate) fn deadline(&self) -> Moment {
        Moment(self.deadline.load(Ordering::Relaxed))
    }
}

impl Ctx {
    pub(crate) fn new(attempt: &Attempt, run: RunId, notice: Arc<Notice>) -> Ctx {
        Ctx { run, task: attempt.lease.task, attempt: attempt.number, epoch: attempt.lease.epoch, notice }
    }

    /// The run (or job) this belongs to.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// The task: the same for all attempts.
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// A text that is the same for all attempts of this task, and for no other task anywhere. Whoever is called with
    /// it can tell a repetition from something new.
    pub fn idempotency_key(&self) -> String {
        format!("{}/{:?}", self.run, self.task)
    }

    /// Which try this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The number of this grant. It only grows from one attempt of a task to the next, so that whoever keeps the
    /// highest one seen can turn away an attempt that was taken for lost and comes late: a fencing token.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Until when this attempt may run: then it is dropped, and somewhere else another may begin. As long as the engine
    /// is reached the lease is renewed, and this is later each time. Only a process that is stopped as a whole, or a
    /// function that blocks its thread, can find that it has passed.
    pub fn lease_ends(&self) -> Instant {
        // In this order: whoever is held up in between is told too early an end, and never too late a one.
        let (here, deadline) = (Instant::now(), self.notice.deadline());
        let now = clock::now();
        here + Duration::from(deadline.since(now)) - Duration::from(now.since(deadline))
    }

    /// Whether this attempt is to stop.
    pub fn is_cancelled(&self) -> bool {
        self.notice.is_heeded.store(true, Ordering::SeqCst);
        *self.notice.stop.borrow()
    }

    /// Waits until this attempt is to stop: it was cancelled, has run out of time, or the worker is going.
    pub async fn cancelled(&self) {
        self.notice.is_heeded.store(true, Ordering::SeqCst);
        // The sender lives as long as this.
        let _ = self.notice.stop.subscribe().wait_for(|told| *told).await;
    }
}
