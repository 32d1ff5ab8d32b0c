//! Workers: the real worker-side machine, processes that really overlap, and a guardian that ends them when the
//! worker cannot. What happens here is what the oracle sees.

use super::plan::WorkerPlan;
use super::processes::Process;
use super::{Asker, Event, ServerId, ToWorker, WorkerId, World};
use crate::oracle::{Deferred, Violation};
use std::collections::BTreeMap;
use tidegate_core::admission::SlotCounts;
use tidegate_core::attempts::{Action, Attempts};
use tidegate_core::model::LEASE;
use tidegate_core::planted::Bug;
use tidegate_core::protocol::{Command, Finish, Join, Lease, Leave, Outcome};
use tidegate_core::time::{Moment, Span};

/// How long a simulated process may take to die, at most.
pub(crate) const GRACE: Span = Span::seconds(1);
/// A poll that got no answer for so long is sent again, perhaps elsewhere.
const POLL: Span = Span::seconds(3);

pub(crate) struct SimWorker {
    pub plan: WorkerPlan,
    pub life: u64,
    pub attempts: Option<Attempts>,
    /// How far its clock is off.
    pub(super) skew: Span,
    paused_until: Option<Moment>,
    pub(super) missed: Vec<Event>,
    pub processes: BTreeMap<Lease, Process>,
    server: ServerId,
    joined: bool,
    polled: Option<Moment>,
    next_tick: Option<Moment>,
    leaving: bool,
    /// It was sent elsewhere and has to say again what it said.
    unheard: bool,
    /// Nothing gets through to it or from it until then.
    cut_off_until: Moment,
    /// Within a process it hears everything in the order in which it was said: when it hears what was said last.
    pub(super) hears_by: Moment,
    /// What it was told to abort, until that has ended.
    pub(super) aborting: Option<Vec<Lease>>,
}

impl SimWorker {
    pub(super) fn local(&self, now: Moment) -> Moment {
        now + self.skew
    }

    pub fn is_up(&self) -> bool {
        self.attempts.is_some()
    }

    pub fn reconnect(&mut self) {
        self.cut_off_until = Moment(0);
    }

    /// It runs, and the engine knows this life of it.
    pub fn is_joined(&self) -> bool {
        self.is_up() && self.joined
    }

    pub fn is_paused(&self) -> bool {
        self.paused_until.is_some()
    }
}

impl World {
    pub(super) fn start_workers(&mut self) {
        for (id, plan) in self.plan.workers.clone().into_iter().enumerate() {
            let skew = Span::millis(self.random.below(3_600_000));
            self.workers.push(SimWorker {
                plan,
                life: 0,
                attempts: None,
                skew,
                paused_until: None,
                missed: Vec::new(),
                processes: BTreeMap::new(),
                server: 0,
                joined: false,
                polled: None,
                next_tick: None,
                leaving: false,
                unheard: false,
                cut_off_until: Moment(0),
                hears_by: Moment(0),
                aborting: None,
            });
            self.start_worker(id);
        }
    }

    fn start_worker(&mut self, id: WorkerId) {
        let server = self.random.index(self.servers.len());
        let worker = &mut self.workers[id];
        worker.life += 1;
        let local = worker.local(self.now);
        worker.attempts = Some(make_attempts(worker, local, self.bug));
        (worker.joined, worker.polled, worker.leaving, worker.unheard) = (false, None, false, false);
        (worker.paused_until, worker.next_tick, worker.aborting) = (None, None, None);
        worker.missed.clear();
        worker.server = server;
        let name = worker.plan.name.clone();
        self.oracle.came_back(&name);
        self.ask_to_join(id);
        self.schedule_worker(id, None);
    }

    fn ask_to_join(&mut self, id: WorkerId) {
        let worker = &self.workers[id];
        let (server, life) = (worker.server, worker.life);
        self.oracle.turns(&worker.plan.name, self.now);
        let join = Join {
            worker: worker.plan.name.clone(),
            incarnation: life,
            skills: worker.plan.skills.clone(),
            slots: worker.plan.slots,
        };
        self.send(|| Event::Command {
            server,
            command: Command::Join(join.clone()),
            asker: Asker::Join { worker: id, life },
        });
    }

    fn poll(&mut self, id: WorkerId) {
        let worker = &mut self.workers[id];
        // Within a process an attempt is handed over when there is one.
        if worker.leaving || !worker.joined || self.plan.embedded {
            return;
        }
        let sent = worker.local(self.now);
        worker.polled = Some(sent);
        let (server, life) = (worker.server, worker.life);
        self.send(|| Event::Poll { server, worker: id, life, sent });
    }

    fn schedule_worker(&mut self, id: WorkerId, at_most: Option<Span>) {
        let worker = &self.workers[id];
        let Some(attempts) = &worker.attempts else { return };
        let wake = attempts.next_wake().since(worker.local(self.now)).min(at_most.unwrap_or(POLL));
        let (span, life) = (wake.max(Span::micros(100)), worker.life);
        let at = self.now + span;
        if worker.next_tick.is_some_and(|tick| tick <= at && tick > self.now) {
            return;
        }
        self.workers[id].next_tick = Some(at);
        self.after(span, Event::Worker { worker: id, life });
    }

    /// Whether this life of a worker notices an event now; while it stands still it does not.
    pub(super) fn notices(&mut self, id: WorkerId, life: u64, event: impl FnOnce() -> Event) -> bool {
        let worker = &mut self.workers[id];
        if worker.attempts.is_none() || worker.life != life {
            return false;
        }
        if worker.paused_until.is_some() {
            worker.missed.push(event());
            return false;
        }
        true
    }

    pub(super) fn tick_worker(&mut self, id: WorkerId, life: u64) -> Result<(), Violation> {
        if self.workers[id].next_tick.is_some_and(|at| at <= self.now) {
            self.workers[id].next_tick = None;
        }
        if !self.notices(id, life, || Event::Worker { worker: id, life }) {
            return Ok(());
        }
        let local = self.workers[id].local(self.now);
        let worker = &mut self.workers[id];
        if !worker.joined && !worker.leaving {
            worker.server = self.random.index(self.servers.len());
            self.ask_to_join(id);
        } else if worker.polled.is_some_and(|sent| local.since(sent) >= POLL) {
            worker.server = self.random.index(self.servers.len());
            self.poll(id);
        }
        let worker = &mut self.workers[id];
        let unheard = std::mem::take(&mut worker.unheard) && worker.joined;
        let Some(attempts) = worker.attempts.as_mut() else { return Ok(()) };
        let mut actions = attempts.tick(local);
        for action in &actions {
            if let Action::Abandon { lease } = action {
                self.oracle.gives_up(*lease);
            }
        }
        if unheard {
            actions.extend(attempts.rejoined(local));
        }
        self.act(id, actions)
    }

    pub(super) fn worker_hears(
        &mut self,
        id: WorkerId,
        life: u64,
        message: ToWorker,
    ) -> Result<(), Violation> {
        if self.workers[id].attempts.is_none() || self.workers[id].life != life {
            return Ok(());
        }
        if self.workers[id].paused_until.is_some() {
            self.workers[id].missed.push(Event::ToWorker { worker: id, life, message });
            return Ok(());
        }
        let local = self.workers[id].local(self.now);
        let worker = &mut self.workers[id];
        let Some(attempts) = &mut worker.attempts else { return Ok(()) };
        let actions = match message {
            ToWorker::Joined => {
                worker.joined = true;
                let actions = attempts.rejoined(local);
                self.poll(id);
                actions
            }
            ToWorker::Attempts { attempts: given, waited, sent } => {
                let all =
                    given.into_iter().flat_map(|attempt| attempts.received(attempt, waited, sent, local));
                let all = all.collect();
                self.poll(id);
                all
            }
            ToWorker::Renewal { renewal, sent } => attempts.renewed(&renewal, sent, local),
            ToWorker::Stop(lease) => attempts.stop(lease, local),
            ToWorker::Abort(leases) => return self.worker_aborts(id, leases),
            ToWorker::Reported(lease) => {
                attempts.reported(lease, local);
                Vec::new()
            }
            ToWorker::Unknown => {
                worker.joined = false;
                Vec::new()
            }
            ToWorker::Elsewhere => {
                worker.server = self.random.index(self.servers.len());
                worker.unheard = true;
                worker.polled = worker.polled.map(|_| local - POLL);
                self.schedule_worker(id, Some(Span::millis(50)));
                Vec::new()
            }
        };
        self.act(id, actions)?;
        self.leave_if_empty(id);
        Ok(())
    }

    pub(super) fn act(&mut self, id: WorkerId, actions: Vec<Action>) -> Result<(), Violation> {
        for action in actions {
            match action {
                Action::Start { attempt, deadline, grace } => {
                    self.start_process(id, attempt, deadline + grace)?
                }
                Action::Extend { lease, deadline } => {
                    let skew = self.workers[id].skew;
                    if let Some(process) = self.workers[id].processes.get_mut(&lease) {
                        process.guardian = deadline - skew + GRACE;
                    }
                }
                Action::Stop { lease, .. } => self.end_process(id, lease, Outcome::Stopped),
                Action::Abandon { lease } => self.end_process(id, lease, Outcome::Stopped),
                Action::Report { lease, outcome } => self.report(id, lease, outcome),
                Action::Heartbeat(heartbeat) => {
                    let (server, life) = (self.workers[id].server, self.workers[id].life);
                    let sent = self.workers[id].local(self.now);
                    self.send(|| Event::Command {
                        server,
                        command: Command::Heartbeat(heartbeat.clone()),
                        asker: Asker::Heartbeat { worker: id, life, sent },
                    });
                }
            }
        }
        self.schedule_worker(id, None);
        Ok(())
    }

    fn report(&mut self, id: WorkerId, lease: Lease, outcome: Outcome) {
        self.oracle.reports(lease, &outcome, self.now);
        let worker = &self.workers[id];
        let (server, life) = (worker.server, worker.life);
        let offer = (outcome == Outcome::HandedBack).then(SlotCounts::default);
        let finish = Finish { worker: worker.plan.name.clone(), lease, outcome: outcome.clone(), offer };
        self.send(|| Event::Command {
            server,
            command: Command::Finish(finish.clone()),
            asker: Asker::Report { worker: id, life, lease, outcome: outcome.clone() },
        });
    }

    // ---- what happens to workers

    pub(super) fn kill_worker(&mut self, id: WorkerId, how: &'static str) {
        if !self.workers[id].is_up() {
            return;
        }
        self.disturbed(how);
        self.worker_is_gone(id);
        let span = Span::millis(self.random.between(200, 9_000));
        self.after(span, Event::Fault(super::Fault::WorkerReturns(id)));
    }

    /// It ended without a word, and everything it ran with it.
    pub(super) fn worker_is_gone(&mut self, id: WorkerId) {
        let name = self.workers[id].plan.name.clone();
        let processes = std::mem::take(&mut self.workers[id].processes);
        for (lease, process) in processes {
            // The guardian's pipe closes, and it makes an end of everything at once.
            self.oracle.ended(&process.label, lease, self.now);
            // A leader that has just taken over takes nothing from anybody for a third of a lease.
            let span = self.oracle.lease_of(lease) + LEASE.third() + Span::seconds(2);
            self.after(
                span,
                Event::Judge(Deferred::LeaseIsOver { lease, worker: name.clone(), since: self.now }),
            );
        }
        self.oracle.lost_worker(&name, self.now);
        self.workers[id].attempts = None;
        self.workers[id].life += 1;
    }

    pub(super) fn revive_worker(&mut self, id: WorkerId) {
        if self.plan.embedded && !self.process_takes_work() {
            return;
        }
        if !self.workers[id].is_up() {
            self.start_worker(id);
        }
        self.resume_worker(id);
    }

    pub(super) fn pause_worker(&mut self, id: WorkerId, span: Span) {
        if self.workers[id].is_up() && !self.workers[id].is_paused() {
            self.disturbed("worker stopped past its lease");
            self.worker_stands_still(id, span);
        }
    }

    pub(super) fn worker_stands_still(&mut self, id: WorkerId, span: Span) {
        self.workers[id].paused_until = Some(self.now + span);
        for process in self.workers[id].processes.values() {
            self.oracle.may_be_lost(&process.label);
        }
    }

    pub(super) fn cut_off_worker(&mut self, id: WorkerId, span: Span) {
        self.disturbed("worker cut off");
        self.workers[id].cut_off_until = self.now + span;
        for process in self.workers[id].processes.values() {
            self.oracle.may_be_lost(&process.label);
        }
    }

    /// Whether a message goes to or comes from a worker that is cut off.
    pub(super) fn is_cut_off(&self, event: &Event) -> bool {
        let worker = match event {
            Event::ToWorker { worker, .. } | Event::Poll { worker, .. } => *worker,
            Event::Command { asker, .. } => match asker {
                Asker::Join { worker, .. }
                | Asker::Heartbeat { worker, .. }
                | Asker::Report { worker, .. } => *worker,
                Asker::Client(_) | Asker::Nobody => return false,
            },
            _ => return false,
        };
        self.workers[worker].cut_off_until > self.now
    }

    pub(super) fn resume_worker(&mut self, id: WorkerId) {
        if self.workers[id].paused_until.take().is_none() {
            return;
        }
        for event in std::mem::take(&mut self.workers[id].missed) {
            self.after(Span::ZERO, event);
        }
        self.schedule_worker(id, Some(Span::micros(20)));
    }

    /// SIGTERM: nothing new, everything handed back, then it leaves and comes back as somebody new.
    pub(super) fn shut_down_worker(&mut self, id: WorkerId) {
        let local = self.workers[id].local(self.now);
        if self.workers[id].is_paused() || self.workers[id].leaving {
            return;
        }
        let Some(attempts) = &mut self.workers[id].attempts else { return };
        let actions = attempts.shut_down(local);
        self.workers[id].leaving = true;
        self.workers[id].polled = None;
        self.disturbed("worker shut down");
        let (name, server) = (self.workers[id].plan.name.clone(), self.workers[id].server);
        let life = self.workers[id].life;
        self.oracle.shut_down(&name, self.now);
        self.send(|| Event::Command {
            server,
            command: Command::Offer { worker: name.clone(), incarnation: life, slots: SlotCounts::default() },
            asker: Asker::Nobody,
        });
        // Handing back reports nothing that the oracle could object to.
        let _ = self.act(id, actions);
        self.leave_if_empty(id);
    }

    pub(super) fn leave_if_empty(&mut self, id: WorkerId) {
        let worker = &self.workers[id];
        if !worker.leaving || !worker.attempts.as_ref().is_some_and(Attempts::is_empty) {
            return;
        }
        let (server, life) = (worker.server, worker.life);
        let leave = Leave { worker: worker.plan.name.clone(), incarnation: life };
        self.oracle.leaves(&leave.worker, self.now);
        self.send(|| Event::Command { server, command: Command::Leave(leave.clone()), asker: Asker::Nobody });
        self.workers[id].attempts = None;
        self.workers[id].life += 1;
        if self.plan.embedded {
            self.worker_left_process(id);
        }
        let span = Span::millis(self.random.between(200, 5_000));
        self.after(span, Event::Fault(super::Fault::WorkerReturns(id)));
    }
}

#[cfg(feature = "planted-bugs")]
fn make_attempts(worker: &SimWorker, local: Moment, bug: Option<Bug>) -> Attempts {
    let mut attempts = Attempts::new(worker.plan.name.clone(), worker.life, GRACE, local);
    bug.into_iter().for_each(|bug| attempts.plant(bug));
    attempts
}

#[cfg(not(feature = "planted-bugs"))]
fn make_attempts(worker: &SimWorker, local: Moment, _: Option<Bug>) -> Attempts {
    Attempts::new(worker.plan.name.clone(), worker.life, GRACE, local)
}
