//! What a worker and the engine it works for say to each other inside one process.
//!
//! Both channels are unbounded: neither side may ever wait for the other, and what is under way is bounded by
//! the worker's slots.

use tidegate_core::ids::{Name, RunId};
use tidegate_core::protocol::{Attempt, Heartbeat, Lease, Outcome, Refusal, Renewal};
use tidegate_core::time::Moment;
use tokio::sync::{mpsc, oneshot};

/// How many attempts a worker takes at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slots {
    /// Processes: about one a core.
    pub process: u32,
    /// Functions and other work that mostly waits.
    pub io: u32,
}

/// A worker introduces itself. Attempts of an older incarnation of the same name are lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Join {
    pub name: Name,
    pub incarnation: u64,
    pub slots: Slots,
    pub queues: Vec<Name>,
    pub labels: Vec<Name>,
    /// Sorted.
    pub functions: Vec<Name>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum ToEngine {
    /// Always the first.
    Join(Join),
    /// To be answered with [`ToWorker::Renewal`] and the same `sent`.
    Heartbeat { heartbeat: Heartbeat, sent: Moment },
    /// Each to be acknowledged with [`ToWorker::Reported`], also when it came too late to matter.
    Reports(Vec<(Lease, Outcome)>),
    /// Give it nothing more; what it has goes on.
    Draining,
    /// Always the last. What it has not reported by now is lost.
    Leave,
}

#[derive(Debug)]
pub enum ToWorker {
    /// `granted` is what [`crate::clock::now`] showed before the grant was committed.
    Attempt {
        attempt: Attempt,
        run: RunId,
        granted: Moment,
    },
    /// Answers a heartbeat; `sent` is the heartbeat's.
    Renewal {
        renewal: Renewal,
        sent: Moment,
    },
    /// This lease is to end, without waiting for the next heartbeat.
    Stop(Lease),
    Reported(Lease),
    /// These are to end at once, unreported; to be answered when nothing of them runs any more.
    Abort(Vec<Lease>, oneshot::Sender<()>),
    /// The engine does not want this worker: it ends, and so does everything it runs.
    Refused(Refusal),
}

/// The worker's end.
pub struct Link {
    pub(crate) inbox: mpsc::UnboundedReceiver<ToWorker>,
    pub(crate) outbox: Box<dyn Fn(ToEngine) + Send>,
}

impl Link {
    /// Says everything to `outbox`, from within the worker: it must not wait. What is sent to the other end is heard;
    /// dropping that ends the worker and everything it runs.
    pub fn to(outbox: impl Fn(ToEngine) + Send + 'static) -> (Link, mpsc::UnboundedSender<ToWorker>) {
        let (to_worker, inbox) = mpsc::unbounded_channel();
        (Link { inbox, outbox: Box::new(outbox) }, to_worker)
    }
}
