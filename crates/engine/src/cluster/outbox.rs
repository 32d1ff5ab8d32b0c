//! What a server that leads says to one that forwards.
//!
//! Before anything that follows from an entry it says that the entry is durable: so whoever was answered there, and then
//! asks what happens from now on, is not told again what the answer was about.

use crate::shell::Engine;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_wire::Response;
use tokio::sync::{mpsc, watch};

#[derive(Clone)]
pub(super) struct Outbox {
    messages: mpsc::UnboundedSender<Response>,
    reached: watch::Receiver<Option<u64>>,
    /// One more than the newest entry that was told to be durable.
    told: Arc<AtomicU64>,
}

impl Outbox {
    pub(super) fn new(engine: &Engine) -> (Outbox, mpsc::UnboundedReceiver<Response>) {
        let (messages, receiver) = mpsc::unbounded_channel();
        (Outbox { messages, reached: engine.reached(), told: Arc::default() }, receiver)
    }

    /// False: nobody reads any more.
    pub(super) fn send(&self, response: Response) -> bool {
        let reached = *self.reached.borrow();
        self.tell_reached(reached);
        self.messages.send(response).is_ok()
    }

    fn tell_reached(&self, reached: Option<u64>) -> bool {
        match reached {
            Some(sequence) if self.told.fetch_max(sequence + 1, Ordering::AcqRel) <= sequence => {
                self.messages.send(Response::Reached(sequence)).is_ok()
            }
            _ => true,
        }
    }

    /// Says what becomes durable, until nobody reads any more. Who is slow is told the newest only.
    pub(super) async fn follow(&self) {
        let mut changes = self.reached.clone();
        loop {
            let reached = *changes.borrow_and_update();
            if !self.tell_reached(reached) || changes.changed().await.is_err() {
                return;
            }
        }
    }
}
