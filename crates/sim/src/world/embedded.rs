//! A process that has its store for itself: one server and its workers, which begin, stand still and end together.
//!
//! What the engine's shell does between them is done here as it does it: messages are never lost and keep their order,
//! the store does one thing after the other, and what ran ahead of something that cannot become durable is aborted, and
//! joined, before the server hears of it.

use super::{Event, Fault, ServerId, ToWorker, WorkerId, World};
use crate::oracle::{Violation, label_of};
use std::collections::BTreeSet;
use tidegate_core::protocol::{Attempt, Lease};
use tidegate_core::time::{Moment, Span};
use tidegate_engine::{Input, Output};

/// The only server there is.
const SERVER: ServerId = 0;
/// How long a process that was told to end tries to do so in order.
const FAREWELL: Span = Span::seconds(8);

#[derive(Debug, Default)]
pub(super) struct Embedded {
    /// When the store does what it was last given, and when it last answers.
    stores_by: Moment,
    answers_by: Moment,
    /// Workers that still run something of what is to be aborted, or have not heard of it yet.
    aborting: BTreeSet<WorkerId>,
    /// It was told to end.
    ending: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    /// Everything that was to be aborted has ended.
    Aborted,
    /// All workers have left.
    Resigns,
    /// Nothing of it is left.
    Ends,
}

impl World {
    /// Hands something from one part of the process to another. What a worker hears keeps its order.
    pub(super) fn pass(&mut self, event: Event) {
        let mut at = self.now + Span::micros(self.random.between(10, 300));
        if let Event::ToWorker { worker, .. } = &event {
            let hears_by = &mut self.workers[*worker].hears_by;
            at = at.max(*hears_by);
            *hears_by = at;
        }
        self.after(at.since(self.now), event);
    }

    /// How long until the store does what it is asked to.
    pub(super) fn until_stored(&mut self, job: &Output) -> Span {
        let span = self.soon();
        if !self.plan.embedded {
            return span;
        }
        let span = self.perhaps_slow(span, matches!(job, Output::Commit(_)));
        let at = self.embedded.stores_by.max(self.now + span);
        self.embedded.stores_by = at;
        at.since(self.now)
    }

    /// The store of an embedded engine is a thread of its process, and stands still and ends with it.
    pub(super) fn reaches_store(&mut self, life: u64, job: Output) -> Option<Output> {
        let server = &mut self.servers[SERVER];
        if !self.plan.embedded || (server.life == life && !server.is_paused()) {
            return Some(job);
        }
        if server.life == life {
            server.missed.push(Event::Store { server: SERVER, life, job });
        }
        None
    }

    /// How long until its answer is heard.
    pub(super) fn until_answered(&mut self, answer: &Input) -> Span {
        let span = self.soon();
        if !self.plan.embedded {
            return span;
        }
        let span = self.perhaps_slow(span, matches!(answer, Input::Committed(_)));
        let at = self.embedded.answers_by.max(self.now + span);
        self.embedded.answers_by = at;
        at.since(self.now)
    }

    fn perhaps_slow(&mut self, span: Span, is_commit: bool) -> Span {
        let slow = if self.troubled && is_commit { self.plan.trouble.slow_commits } else { 0 };
        if !self.random.chance(slow) {
            return span;
        }
        self.oracle.count_fault("commit slow");
        Span::millis(self.random.between(50, 2_500))
    }

    /// Only to the start of a worker that the core knows, and only while the lease is live.
    pub(super) fn hand_over(&mut self, worker: WorkerId, attempt: Attempt, granted: Moment) {
        let (name, life) = (self.workers[worker].plan.name.clone(), self.workers[worker].life);
        let core = self.servers[SERVER].core();
        let is_wanted =
            core.is_some_and(|core| core.incarnation(&name) == Some(life) && core.is_live(attempt.lease));
        let Some(now) = self.servers[SERVER].engine_time(self.now).filter(|_| is_wanted) else {
            return self.oracle.may_be_lost(&label_of(&attempt.order));
        };
        self.oracle.handed_over(&attempt, &name, granted);
        let sent = self.workers[worker].local(self.now) - now.since(granted);
        let message = ToWorker::Attempts { attempts: vec![attempt], waited: Span::ZERO, sent };
        self.pass(Event::ToWorker { worker, life, message });
    }

    // ---- what ran ahead of something that cannot become durable

    pub(super) fn abort(&mut self, leases: &[Lease]) {
        self.oracle.aborted(leases);
        for worker in 0..self.workers.len() {
            // A worker that is gone has ended everything.
            if self.workers[worker].is_up() {
                self.embedded.aborting.insert(worker);
                let (life, message) = (self.workers[worker].life, ToWorker::Abort(leases.to_vec()));
                self.pass(Event::ToWorker { worker, life, message });
            }
        }
        if self.embedded.aborting.is_empty() {
            self.turn_soon(Turn::Aborted);
        }
    }

    pub(super) fn worker_aborts(&mut self, id: WorkerId, leases: Vec<Lease>) -> Result<(), Violation> {
        let local = self.workers[id].local(self.now);
        let Some(attempts) = &mut self.workers[id].attempts else { return Ok(()) };
        let actions = leases.iter().flat_map(|&lease| attempts.abort(lease, local)).collect();
        let blocks = |lease| self.workers[id].processes.get(lease).is_some_and(|process| process.blocks);
        if leases.iter().any(blocks) {
            self.oracle.test("abort held up by a function that blocks");
        }
        self.workers[id].aborting = Some(leases);
        self.act(id, actions)?;
        self.say_if_aborted(id);
        self.leave_if_empty(id);
        Ok(())
    }

    /// A worker says that it has ended what it was told to abort.
    pub(super) fn say_if_aborted(&mut self, id: WorkerId) {
        let worker = &mut self.workers[id];
        let (Some(leases), Some(attempts)) = (&worker.aborting, &worker.attempts) else { return };
        if !leases.iter().any(|&lease| attempts.is_at_runner(lease)) {
            worker.aborting = None;
            self.has_aborted(id);
        }
    }

    fn has_aborted(&mut self, id: WorkerId) {
        if self.embedded.aborting.remove(&id) && self.embedded.aborting.is_empty() {
            self.turn_soon(Turn::Aborted);
        }
    }

    // ---- what happens to all of it at once

    fn turn_soon(&mut self, turn: Turn) {
        let life = self.servers[SERVER].life;
        self.pass(Event::Process { life, turn });
    }

    pub(super) fn process_turns(&mut self, life: u64, turn: Turn) {
        if self.servers[SERVER].life != life {
            return;
        }
        if self.servers[SERVER].is_paused() {
            return self.servers[SERVER].missed.push(Event::Process { life, turn });
        }
        match turn {
            Turn::Aborted => {
                self.oracle.test("work ahead of its commit aborted and joined");
                self.handle(SERVER, Input::Aborted);
            }
            Turn::Resigns => self.handle(SERVER, Input::Resign),
            Turn::Ends => self.process_is_gone("process ended"),
        }
    }

    /// Workers come and go only while this lasts.
    pub(super) fn process_takes_work(&self) -> bool {
        self.servers[SERVER].is_up() && !self.embedded.ending
    }

    /// Functions stand still with their process; processes do not stand still with their worker.
    pub(super) fn stands_still(&self, id: WorkerId) -> bool {
        self.plan.embedded && self.workers[id].is_paused()
    }

    pub(super) fn kill_process(&mut self, how: &'static str) {
        if self.servers[SERVER].has_started() {
            self.process_is_gone(how);
        }
    }

    fn process_is_gone(&mut self, how: &'static str) {
        self.disturbed(how);
        let oracle = &mut self.oracle;
        self.store.look(|tables| oracle.process_is_gone(tables));
        for worker in 0..self.workers.len() {
            if self.workers[worker].is_up() {
                self.worker_is_gone(worker);
            }
        }
        self.servers[SERVER].die();
        self.embedded = Embedded::default();
        let away = Span::millis(self.random.between(200, 4_000));
        self.after(away, Event::Fault(Fault::ServerReturns(SERVER)));
    }

    pub(super) fn pause_process(&mut self) {
        if !self.servers[SERVER].is_up() {
            return;
        }
        let span = Span::millis(self.random.between(500, 45_000));
        self.pause_server(SERVER, span);
        for worker in 0..self.workers.len() {
            if self.workers[worker].is_up() {
                self.worker_stands_still(worker, span);
            }
        }
        self.after(span, Event::Fault(Fault::ServerGoesOn(SERVER)));
    }

    /// Begins anew, or goes on.
    pub(super) fn revive_process(&mut self) {
        self.revive_server(SERVER);
        for worker in 0..self.workers.len() {
            if self.workers[worker].is_paused() {
                self.forgive_overdue(worker);
            }
            self.resume_worker(worker);
            self.revive_worker(worker);
        }
    }

    /// Told to end: everything is handed back, and once it is durable the lead is given up.
    pub(super) fn shut_down_process(&mut self) {
        if !self.servers[SERVER].is_up() || self.embedded.ending {
            return;
        }
        self.embedded.ending = true;
        for worker in 0..self.workers.len() {
            self.shut_down_worker(worker);
        }
        let life = self.servers[SERVER].life;
        self.after(FAREWELL, Event::Process { life, turn: Turn::Ends });
        self.resign_if_alone();
    }

    pub(super) fn worker_left_process(&mut self, id: WorkerId) {
        self.has_aborted(id);
        self.resign_if_alone();
    }

    fn resign_if_alone(&mut self) {
        if self.embedded.ending && !self.workers.iter().any(super::SimWorker::is_up) {
            self.turn_soon(Turn::Resigns);
        }
    }

    /// The store was told that nobody leads any more.
    pub(super) fn resigned(&mut self, life: u64) {
        self.after(Span::millis(1), Event::Process { life, turn: Turn::Ends });
    }
}
