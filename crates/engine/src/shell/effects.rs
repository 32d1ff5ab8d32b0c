//! Carries out effects: hands attempts to workers, and has templates rendered, off the writer.

use super::request::{Request, Waiter};
use super::work::Shell;
use super::{Deliver, Delivery};
use std::time::Instant;
use tidegate_core::ids::Name;
use tidegate_core::protocol::{Attempt, Command, Effect, Evaluation, Finish, Lease, Payload, Question};
use tidegate_core::time::{Moment, Span};
use tokio::sync::oneshot;

/// An attempt on its way to its worker.
pub(super) struct Parcel {
    worker: Name,
    lease: Lease,
    length: Span,
    number: u32,
    granted: Moment,
}

impl Shell {
    pub(super) fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Deliver { worker, lease, order, length, number, at, ahead: _ } => {
                let parcel = Parcel { worker, lease, length, number, granted: at };
                match order {
                    Some(order) => self.hand_over(parcel, order),
                    None => self.fetch_order(parcel),
                }
            }
            Effect::Stop { worker, lease } => self.tell(&worker, Delivery::Stop(lease)),
            Effect::Ask(question) => self.ask(question),
        }
    }

    /// A worker that is gone is noticed by its silence.
    pub(super) fn tell(&self, worker: &Name, delivery: Delivery) {
        if let Some((_, deliver)) = self.workers.get(worker) {
            deliver(delivery);
        }
    }

    /// Only to the start of the worker that the core knows, and only while the lease is live: time may have passed
    /// since it was granted. What is left out by mistake is missing from the worker's list, and delivered again.
    pub(super) fn hand_over(&mut self, parcel: Parcel, order: Payload) {
        let Some(core) = self.server.core().filter(|core| core.is_live(parcel.lease)) else { return };
        let known = core.incarnation(&parcel.worker);
        let attached = self.workers.get(&parcel.worker);
        let Some((_, deliver)) = attached.filter(|(incarnation, _)| known == Some(*incarnation)) else {
            let waiting = self.parcels.entry(parcel.worker.clone()).or_default();
            waiting.retain(|(parcel, _)| core.is_live(parcel.lease));
            return waiting.push((parcel, order));
        };
        let Parcel { lease, length, number, granted, .. } = parcel;
        let Some(run) = core.root_id(lease.task.node) else { return };
        // The worker counts from `age` ago, so all of the lease is left.
        let (age, as_of) = (self.engine_now().since(granted).into(), Instant::now());
        let attempt = Attempt { lease, order, length, left: length, number };
        deliver(Delivery::Attempt { attempt, run, age, as_of });
        self.gathering.handed_over();
    }

    /// A worker is there now. When a server begins to lead, those that it knows of take a moment to find it.
    pub(super) fn attach(&mut self, worker: Name, incarnation: u64, deliver: Deliver) {
        match self.workers.get(&worker) {
            Some(&(by, _)) if by > incarnation => {
                deliver(Delivery::Replaced { by });
                return;
            }
            Some((before, replaced)) if *before < incarnation => {
                replaced(Delivery::Replaced { by: incarnation });
            }
            _ => {}
        }
        let parcels = self.parcels.remove(&worker);
        self.workers.insert(worker, (incarnation, deliver));
        for (parcel, order) in parcels.into_iter().flatten() {
            self.hand_over(parcel, order);
        }
    }

    fn fetch_order(&self, parcel: Parcel) {
        let (reader, urgent) = (self.reader.clone(), self.engine.urgent.clone());
        tokio::spawn(async move {
            let task = parcel.lease.task;
            if let Ok(Some(order)) = reader.read(move |store| store.payload(task)).await {
                let _ = urgent.send(Request::HandOver(parcel, order));
            }
        });
    }

    fn ask(&self, question: Question) {
        let Some(asked) = self.server.core().and_then(|core| core.asked(question)) else { return };
        let (reader, engine, evaluator) = (self.reader.clone(), self.engine.clone(), self.evaluator.clone());
        tokio::spawn(async move {
            let evaluation = reader.read(move |store| evaluator.evaluate(&asked, store)).await;
            // What cannot be read now may be read later, so this one never will be.
            let evaluation =
                evaluation.unwrap_or_else(|error| Evaluation::Failed { error: error.to_string() });
            let command = Command::Evaluated { question, evaluation };
            let _ = engine.urgent.send(Request::Evaluated(command));
        });
    }

    /// A worker that is not attached here any more reports again, elsewhere.
    pub(super) fn take_reports(&mut self, finished: Vec<Finish>) {
        if !self.server.leads() {
            return self.forward_reports(finished);
        }
        self.gathering.ended(finished.len());
        for finish in finished {
            let waiter = Waiter::Report { worker: finish.worker.clone(), lease: finish.lease };
            self.take(waiter, Command::Finish(finish));
        }
    }

    pub(super) fn acknowledge(&self, worker: &Name, lease: Lease) {
        self.tell(worker, Delivery::Reported(lease));
    }

    /// Ends attempts whose grants may not be durable, and says when all of them have ended.
    pub(super) fn abort(&self, leases: &[Lease]) {
        let mut ended = Vec::new();
        for (_, deliver) in self.workers.values() {
            let (told, has_ended) = oneshot::channel();
            // A worker that is gone has ended everything.
            if deliver(Delivery::Abort(leases.to_vec(), told)) {
                ended.push(has_ended);
            }
        }
        let urgent = self.engine.urgent.clone();
        tokio::spawn(async move {
            for has_ended in ended {
                let _ = has_ended.await;
            }
            let _ = urgent.send(Request::Aborted);
        });
    }
}
