//! What a function knows about the attempt it carries out, and how it hears that it is to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidegate_core::ids::{Epoch, RunId, TaskId};
use tidegate_core::protocol::Attempt;
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
    stop: Arc<StopSignal>,
}

/// Whether an attempt is to stop, and whether anybody wants to know.
#[derive(Debug, Default)]
pub(crate) struct StopSignal {
    told: watch::Sender<bool>,
    is_heeded: AtomicBool,
}

impl StopSignal {
    /// Says that it is to stop. False: nobody listens.
    pub(crate) fn tell(&self) -> bool {
        self.told.send_replace(true);
        self.is_heeded.load(Ordering::SeqCst)
    }
}

impl Ctx {
    pub(crate) fn new(attempt: &Attempt, run: RunId, stop: Arc<StopSignal>) -> Ctx {
        Ctx { run, task: attempt.lease.task, attempt: attempt.number, epoch: attempt.lease.epoch, stop }
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

    /// Whether this attempt is to stop.
    pub fn is_cancelled(&self) -> bool {
        self.stop.is_heeded.store(true, Ordering::SeqCst);
        *self.stop.told.borrow()
    }

    /// Waits until this attempt is to stop: it was cancelled, has run out of time, or the worker is going.
    pub async fn cancelled(&self) {
        self.stop.is_heeded.store(true, Ordering::SeqCst);
        // The sender lives as long as this.
        let _ = self.stop.told.subscribe().wait_for(|told| *told).await;
    }
}
