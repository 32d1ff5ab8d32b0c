//! Carries out effects: hands attempts to workers, and has templates rendered, off the writer.

use super::request::{Request, Waiter};
use super::work::Shell;
use super::{Attached, Attachment, Delivery};
use std::sync::Arc;
use std::time::Instant;
use tidegate_core::admission::SlotCounts;
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
        if let Some(attached) = self.workers.get(worker) {
            (attached.deliver)(delivery);
        }
    }

    /// Only to the start of the worker that the core knows, and only while the lease is live: time may have passed
    /// since it was granted. What is left out by mistake is missing from the worker's list, and delivered again.
    pub(super) fn hand_over(&mut self, parcel: Parcel, order: Payload) {
        let Some(core) = self.server.core().filter(|core| core.is_live(parcel.lease)) else { return };
        let known = core.incarnation(&parcel.worker);
        let attached = self.workers.get(&parcel.worker);
        let Some(attached) = attached.filter(|attached| known == Some(attached.incarnation)) else {
            let waiting = self.parcels.entry(parcel.worker.clone()).or_default();
            waiting.retain(|(parcel, _)| core.is_live(parcel.lease));
            return waiting.push((parcel, order));
        };
        let Parcel { lease, length, number, granted, .. } = parcel;
        let Some(run) = core.root_id(lease.task.node) else { return };
        // The worker counts from `age` ago, so all of the lease is left.
        let (age, as_of) = (self.engine_now().since(granted).into(), Instant::now());
        let attempt = Attempt { lease, order, length, left: length, number };
        (attached.deliver)(Delivery::Attempt { attempt, run, age, as_of });
        self.gathering.handed_over();
    }

    /// A worker is there now. When a server begins to lead, those that it knows of take a moment to find it.
    pub(super) fn attach(&mut self, worker: Name, attached: Attached) {
        match self.workers.get(&worker) {
            Some(newer) if newer.incarnation > attached.incarnation => {
                (attached.deliver)(Delivery::Replaced { by: newer.incarnation });
                return;
            }
            Some(older) if older.incarnation < attached.incarnation => {
                (older.deliver)(Delivery::Replaced { by: attached.incarnation });
            }
            _ => {}
        }
        let parcels = self.parcels.remove(&worker);
        self.workers.insert(worker, attached);
        for (parcel, order) in parcels.into_iter().flatten() {
            self.hand_over(parcel, order);
        }
    }

    /// Whoever cannot be reached gets nothing more until it joins again. What it has goes on as long as its leases.
    pub(super) fn detach(&mut self, worker: &Name, attachment: &Attachment) {
        let is_it = |attached: &&Attached| Arc::ptr_eq(&attached.attachment, attachment);
        let Some(incarnation) = self.workers.get(worker).filter(is_it).map(|attached| attached.incarnation)
        else {
            return;
        };
        self.workers.remove(worker);
        self.close_slots(worker.clone(), incarnation);
    }

    /// A new leader knows workers from the store. Those of other processes join again when they have found it; those of
    /// the process that led before may be gone with it.
    pub(super) fn ask_nobody_who_is_not_there(&mut self) {
        if !self.engine.is_shared() {
            return;
        }
        let Some(core) = self.server.core() else { return };
        let is_there = |(worker, incarnation): &(&Name, u64)| {
            self.workers.get(*worker).is_some_and(|attached| attached.incarnation == *incarnation)
        };
        let absent: Vec<(Name, u64)> = core
            .connected()
            .filter(|worker| !is_there(worker))
            .map(|(worker, incarnation)| (worker.clone(), incarnation))
            .collect();
        absent.into_iter().for_each(|(worker, incarnation)| self.close_slots(worker, incarnation));
    }

    /// Whoever led before may have closed the slots of this process's workers, when it lost the way to them.
    pub(super) fn introduce_own_workers(&mut self) {
        if self.engine.is_shared() {
            self.upstream.joins().into_iter().for_each(|join| self.take(Waiter::Nobody, join));
        }
    }

    fn close_slots(&mut self, worker: Name, incarnation: u64) {
        let slots = SlotCounts::default();
        self.take(Waiter::Nobody, Command::Offer { worker, incarnation, slots });
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

    /// Questions that are asked together are answered in their order, however long each takes: who is answered first is
    /// in line first. Those asked at other times do not wait for each other, since one may take long.
    fn ask(&mut self, question: Question) {
        let Some(asked) = self.server.core().and_then(|core| core.asked(question)) else { return };
        let (reader, engine, evaluator) = (self.reader.clone(), self.engine.clone(), self.evaluator.clone());
        let (answered, next) = oneshot::channel::<()>();
        let before = self.asked.replace(next);
        tokio::spawn(async move {
            let evaluation = reader.read(move |store| evaluator.evaluate(&asked, store)).await;
            // What cannot be read now may be read later, so this one never will be.
            let evaluation =
                evaluation.unwrap_or_else(|error| Evaluation::Failed { error: error.to_string() });
            if let Some(before) = before {
                // It ends when its sender does.
                let _ = before.await;
            }
            let command = Command::Evaluated { question, evaluation };
            let _ = engine.urgent.send(Request::Evaluated(command));
            drop(answered);
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
        for Attached { deliver, .. } in self.workers.values() {
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
