//! Workers that speak HTTP. What is handed to each lies in a box until it asks for it.
//!
//! A box is where the worker asks. One that turns to another server gets a box there, and whatever it was handed here and
//! never fetched is handed over again: the engine goes by what a worker lists in its heartbeats.

mod inbox;

pub use inbox::{Fetched, Inbox, Waiting};

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate::Name;
use tidegate_engine::Engine;

/// A worker that has not asked for so long has turned elsewhere, or is gone.
const SILENT: Duration = Duration::from_secs(120);

#[derive(Default)]
pub struct Staff {
    boxes: Mutex<BTreeMap<Name, Arc<Inbox>>>,
}

impl Staff {
    /// The box of this start of a worker, made if there is none here.
    pub fn inbox(&self, engine: &Engine, worker: &Name, incarnation: u64) -> Arc<Inbox> {
        let mut boxes = self.boxes.lock().unwrap_or_else(PoisonError::into_inner);
        boxes.retain(|_, inbox| inbox.idle() < SILENT);
        if let Some(known) = boxes.get(worker).filter(|known| known.incarnation() >= incarnation) {
            known.asked();
            return known.clone();
        }
        let inbox = Arc::new(Inbox::new(incarnation));
        boxes.insert(worker.clone(), inbox.clone());
        let held = Arc::downgrade(&inbox);
        let deliver = move |delivery| match held.upgrade() {
            Some(inbox) => {
                inbox.put(delivery);
                true
            }
            None => false,
        };
        engine.attach_to(worker.clone(), incarnation, Box::new(deliver));
        inbox
    }

    /// The worker has left.
    pub fn forget(&self, worker: &Name, incarnation: u64) {
        let mut boxes = self.boxes.lock().unwrap_or_else(PoisonError::into_inner);
        if boxes.get(worker).is_some_and(|known| known.incarnation() == incarnation) {
            boxes.remove(worker);
        }
    }
}
