//! Workers that speak HTTP. What is handed to each lies in a box until it asks for it.
//!
//! A box is where the worker asks. One that turns to another server gets a box there, and whatever it was handed here and
//! never fetched is handed over again: the engine goes by what a worker lists in its heartbeats.

mod inbox;

pub use inbox::{Fetched, Inbox, Waiting};

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// The worker asks here: what it is handed comes here from now on, wherever it asked before. Its box, or that of a later
    /// start of it.
    pub fn attach(&self, engine: &Engine, worker: &Name, incarnation: u64) -> Arc<Inbox> {
        let (inbox, silent) = self.open(worker, incarnation);
        silent.into_iter().for_each(|(worker, inbox)| lose(engine, worker, &inbox));
        if inbox.incarnation() != incarnation {
            return inbox;
        }
        let held = Arc::downgrade(&inbox);
        let deliver = move |delivery| match held.upgrade() {
            Some(inbox) => {
                inbox.put(delivery);
                true
            }
            None => false,
        };
        inbox.found_by(engine.attach_to(worker.clone(), incarnation, Box::new(deliver)));
        inbox
    }

    /// The box of this start of a worker, if it asks here.
    pub fn known(&self, worker: &Name, incarnation: u64) -> Option<Arc<Inbox>> {
        self.boxes().get(worker).filter(|known| known.incarnation() == incarnation).cloned()
    }

    /// The box, and those of workers that have fallen silent.
    fn open(&self, worker: &Name, incarnation: u64) -> (Arc<Inbox>, Vec<(Name, Arc<Inbox>)>) {
        let mut boxes = self.boxes();
        let silent = boxes.extract_if(.., |_, inbox| inbox.idle() >= SILENT).collect();
        let inbox = match boxes.get(worker).filter(|known| known.incarnation() >= incarnation) {
            Some(known) => known.clone(),
            None => {
                let inbox = Arc::new(Inbox::new(incarnation));
                boxes.insert(worker.clone(), inbox.clone());
                inbox
            }
        };
        (inbox, silent)
    }

    /// The worker has left.
    pub fn forget(&self, engine: &Engine, worker: &Name, incarnation: u64) {
        if let Some(inbox) = self.known(worker, incarnation) {
            self.boxes().retain(|_, known| !Arc::ptr_eq(known, &inbox));
            lose(engine, worker.clone(), &inbox);
        }
    }

    fn boxes(&self) -> MutexGuard<'_, BTreeMap<Name, Arc<Inbox>>> {
        self.boxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lose(engine: &Engine, worker: Name, inbox: &Inbox) {
    if let Some(way) = inbox.way() {
        engine.forget(worker, inbox.incarnation(), way);
    }
}
