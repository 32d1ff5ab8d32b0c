//! Servers: the real engine behind a clock of its own, a store that may not answer, and a process that may die or
//! stand still at any moment.

use super::{Asker, Event, ServerId, ToWorker, WorkerId, World};
use crate::oracle::label_of;
use std::collections::BTreeMap;
use tidegate_core::Core;
use tidegate_core::ids::{Name, NodeId};
use tidegate_core::planted::Bug;
use tidegate_core::protocol::{Answer, Attempt, Command, Effect, Retry};
use tidegate_core::time::{Moment, Span};
use tidegate_engine::{Input, MakeCore, Output, Server, recall};
use tidegate_store::{Commit, MemoryStore, Reads, Sought, Store, StoreError, Term};

/// Out of a hundred failures of the store, those that damage the server's handle: of one that is far away, and of one on
/// the disk of an embedded engine.
const SHUT_OUT: u64 = 20;
const SHUT_OUT_HERE: u64 = 50;

pub(crate) struct SimServer {
    name: Name,
    server: Option<Server>,
    /// Differs for every start; what is meant for an earlier life is not delivered.
    pub(super) life: u64,
    /// How far its clock is off.
    skew: Span,
    store: MemoryStore,
    /// Its handle met a full disk: nothing works until it is opened anew.
    shut_out: bool,
    paused_until: Option<Moment>,
    /// What arrived while it stood still.
    pub(super) missed: Vec<Event>,
    /// Polls that wait for attempts: sent, arrived (local time).
    polls: BTreeMap<WorkerId, (u64, Moment, Moment)>,
    /// Attempts that wait for a poll.
    outbox: BTreeMap<WorkerId, Vec<(Attempt, Moment)>>,
    next_tick: Option<Moment>,
    bug: Option<Bug>,
}

impl SimServer {
    pub fn is_up(&self) -> bool {
        self.server.is_some() && self.paused_until.is_none()
    }

    pub fn has_started(&self) -> bool {
        self.server.is_some()
    }

    pub fn is_paused(&self) -> bool {
        self.paused_until.is_some()
    }

    pub fn leads(&self) -> bool {
        self.server.as_ref().is_some_and(Server::leads)
    }

    pub fn core(&self) -> Option<&Core> {
        self.server.as_ref()?.core()
    }

    pub fn is_idle(&self) -> bool {
        self.core().is_some_and(Core::is_idle)
    }

    pub(super) fn local(&self, now: Moment) -> Moment {
        now + self.skew
    }

    pub(super) fn die(&mut self) {
        self.server = None;
        self.life += 1;
    }

    pub(super) fn engine_time(&self, now: Moment) -> Option<Moment> {
        Some(self.server.as_ref()?.engine_time(self.local(now)))
    }

    fn start(&mut self) {
        let bug = self.bug;
        let make = move |incarnation| make_core(incarnation, bug);
        self.server = Some(make_server(self.name.clone(), Box::new(make), bug));
        self.life += 1;
        self.polls.clear();
        self.outbox.clear();
        self.missed.clear();
        self.shut_out = false;
        self.paused_until = None;
        self.next_tick = None;
    }
}

/// Less than most loops have items.
const SLICE: u32 = 3;

/// A planted bug is the oracle's to find.
#[cfg(feature = "planted-bugs")]
fn make_server(name: Name, make_core: MakeCore, bug: Option<Bug>) -> Server {
    let mut server = Server::with_core(name, make_core);
    match bug {
        Some(bug) => server.plant(bug),
        None => server = server.keeping_digests(),
    }
    server
}

#[cfg(not(feature = "planted-bugs"))]
fn make_server(name: Name, make_core: MakeCore, _: Option<Bug>) -> Server {
    Server::with_core(name, make_core).keeping_digests()
}

#[cfg(feature = "planted-bugs")]
fn make_core(incarnation: u32, bug: Option<Bug>) -> Core {
    let mut core = Core::new(incarnation).expanding_by(SLICE);
    bug.into_iter().for_each(|bug| core.plant(bug));
    core
}

#[cfg(not(feature = "planted-bugs"))]
fn make_core(incarnation: u32, _: Option<Bug>) -> Core {
    Core::new(incarnation).expanding_by(SLICE)
}

impl World {
    pub(super) fn start_servers(&mut self, bug: Option<Bug>) {
        for n in 0..self.plan.servers {
            let mut server = SimServer {
                name: Name::from(format!("server-{n}")),
                server: None,
                life: 0,
                // A clock that is off by up to an hour must not matter.
                skew: Span::millis(self.random.below(3_600_000)),
                store: self.store.handle(),
                shut_out: false,
                paused_until: None,
                missed: Vec::new(),
                polls: BTreeMap::new(),
                outbox: BTreeMap::new(),
                next_tick: None,
                bug,
            };
            server.start();
            self.servers.push(server);
            self.handle(n, Input::Tick);
        }
    }

    /// Feeds a server and carries out what it says.
    pub(super) fn handle(&mut self, id: ServerId, input: Input) {
        let server = &mut self.servers[id];
        let local = server.local(self.now);
        let Some(engine) = &mut server.server else { return };
        let mut outputs = Vec::new();
        let led = engine.leads();
        engine.handle(input, local, &mut outputs);
        if led != engine.leads() {
            // What was to be handed over for a lead that is over is not: whoever leads next decides anew.
            server.outbox.clear();
        }
        let life = server.life;
        for output in outputs {
            match output {
                Output::Answer { ticket, answer } => self.answer(id, ticket, answer),
                Output::Effect(effect) => self.effect(id, effect),
                Output::Written(_) => {}
                Output::Reopen => self.servers[id].shut_out = false,
                Output::Abort(leases) => self.abort(&leases),
                job => {
                    let span = self.until_stored(&job);
                    self.after(span, Event::Store { server: id, life, job });
                }
            }
        }
        self.schedule_server(id);
    }

    fn schedule_server(&mut self, id: ServerId) {
        let server = &self.servers[id];
        let Some(wake) = server.server.as_ref().and_then(Server::next_wake) else { return };
        let span = wake.since(server.local(self.now)).max(Span::micros(50));
        let at = self.now + span;
        let life = server.life;
        if server.next_tick.is_some_and(|tick| tick <= at && tick > self.now) {
            return;
        }
        self.servers[id].next_tick = Some(at);
        self.after(span, Event::Server { server: id, life });
    }

    /// Whether an event for this life of a server arrives now; while it stands still it waits.
    fn arrives(&mut self, id: ServerId, life: Option<u64>, event: impl FnOnce() -> Event) -> bool {
        let server = &mut self.servers[id];
        if server.server.is_none() || life.is_some_and(|life| life != server.life) {
            return false;
        }
        if server.paused_until.is_some() {
            server.missed.push(event());
            return false;
        }
        true
    }

    pub(super) fn tick_server(&mut self, id: ServerId, life: u64) {
        if self.servers[id].next_tick.is_some_and(|at| at <= self.now) {
            self.servers[id].next_tick = None;
        }
        if self.arrives(id, Some(life), || Event::Server { server: id, life }) {
            self.handle(id, Input::Tick);
        }
    }

    /// The store does what it was asked to, or does not, and answers, or does not. A server that died meanwhile
    /// may have sent its request already.
    pub(super) fn store_job(&mut self, id: ServerId, life: u64, job: Output) {
        let Some(job) = self.reaches_store(life, job) else { return };
        let trouble = if self.troubled { self.plan.trouble.unknown_commits } else { 0 };
        let was_shut_out = self.servers[id].shut_out;
        let fails = was_shut_out || self.random.chance(trouble);
        let is_carried_out = !fails || (!was_shut_out && self.random.chance(50));
        let damages = if self.plan.embedded { SHUT_OUT_HERE } else { SHUT_OUT };
        let shut_out = was_shut_out || (fails && self.random.chance(damages));
        self.servers[id].shut_out = shut_out;
        let failure = || match shut_out {
            true => StoreError::Unusable("disk full".to_owned()),
            false => StoreError::Unknown("no answer".to_owned()),
        };
        let name = self.servers[id].name.clone();
        let store = &mut self.servers[id].store;
        let answer = match &job {
            Output::Lead { mine, lease } => {
                let result = if is_carried_out { store.lead(&name, *mine, *lease) } else { Err(failure()) };
                let term = result.map(|term| term.map(|term| Term { alone: self.plan.embedded, ..term }));
                let (oracle, now) = (&mut self.oracle, self.now);
                term.iter().flatten().for_each(|term| store.look(|tables| oracle.leads(term, tables, now)));
                Input::Led(if fails { Err(failure()) } else { term })
            }
            Output::Load => Input::Loaded(if fails { Err(failure()) } else { store.load() }),
            Output::Commit(entry) => {
                let result = if is_carried_out { store.commit(entry) } else { Err(failure()) };
                if result == Ok(Commit::Done) {
                    self.oracle.made_durable(entry);
                }
                Input::Committed(if fails { Err(failure()) } else { result })
            }
            Output::Resign { term } => {
                // Whether or not it is heard, the lease ends by itself.
                let _ = if is_carried_out { store.resign(*term) } else { Err(failure()) };
                return self.resigned(life);
            }
            _ => return,
        };
        if fails {
            self.disturbed(match (was_shut_out, shut_out) {
                (true, _) => "store not opened anew yet",
                (false, true) => "disk full",
                (false, false) if is_carried_out => "commit done, answer lost",
                (false, false) => "commit lost",
            });
        }
        let span = self.until_answered(&answer);
        self.after(span, Event::StoreAnswer { server: id, life, answer });
    }

    pub(super) fn store_answer(&mut self, id: ServerId, life: u64, answer: Input) {
        let server = &mut self.servers[id];
        if server.server.is_none() || life != server.life {
            return;
        }
        if server.paused_until.is_some() {
            server.missed.push(Event::StoreAnswer { server: id, life, answer });
            return;
        }
        self.handle(id, answer);
    }

    pub(super) fn take_command(&mut self, id: ServerId, command: Command, asker: Asker) {
        if !self.arrives(id, None, || Event::Command {
            server: id,
            command: command.clone(),
            asker: asker.clone(),
        }) {
            return;
        }
        self.oracle.commands += u64::from(self.servers[id].leads());
        let ticket = self.ticket(asker);
        if let Some(node) = self.accepted_before(id, &command) {
            return self.answer(id, ticket, Some(Answer::Accepted { node, again: true }));
        }
        let command = match command {
            Command::Retry(retry) => {
                // A store that cannot be read now is asked again, and so is whoever waits for it.
                let Ok(past) = recall(&mut self.servers[id].store, retry.of) else { return };
                Command::Retry(Retry { past: past.map(Box::new), ..retry })
            }
            command => command,
        };
        self.handle(id, Input::Command { ticket, command });
    }

    /// What a server does before it hands a submission to its writer: looks whether it was accepted already.
    fn accepted_before(&mut self, id: ServerId, command: &Command) -> Option<NodeId> {
        let submitted = match command {
            Command::Submit(submit) => submit.id,
            Command::Retry(retry) => retry.id,
            _ => return None,
        };
        if !self.servers[id].leads() {
            return None;
        }
        let found = self.servers[id].store.find(&[Sought::Id(submitted)]).ok()?;
        found.into_iter().flatten().next().map(|found| found.node)
    }

    fn effect(&mut self, id: ServerId, effect: Effect) {
        match effect {
            Effect::Deliver { worker, lease, order, length, number, at, ahead: _ } => {
                let order = order.or_else(|| self.servers[id].store.payload(lease.task).ok().flatten());
                let (Some(order), Some(worker)) = (order, self.worker_named(&worker)) else { return };
                let until = at + length;
                let attempt = Attempt { lease, order, length, left: length, number };
                if self.plan.embedded {
                    return self.hand_over(worker, attempt, at);
                }
                self.oracle.handed_over(&attempt, &self.plan.workers[worker].name, at);
                if !self.workers[worker].is_joined() {
                    self.oracle.may_be_lost(&label_of(&attempt.order));
                }
                self.servers[id].outbox.entry(worker).or_default().push((attempt, until));
                self.answer_poll(id, worker);
            }
            Effect::Stop { worker, lease } => {
                let Some(worker) = self.worker_named(&worker) else { return };
                let life = self.workers[worker].life;
                self.send(|| Event::ToWorker { worker, life, message: ToWorker::Stop(lease) });
            }
            Effect::Ask(question) => {
                let Some(asked) = self.servers[id].core().and_then(|core| core.asked(question)) else {
                    return;
                };
                let now = self.servers[id].engine_time(self.now);
                let evaluation =
                    super::evaluator::evaluate(&asked, now.unwrap_or(self.now), &mut self.oracle);
                let command = Command::Evaluated { question, evaluation };
                let span = self.soon();
                self.after(span, Event::Command { server: id, command, asker: Asker::Nobody });
            }
        }
    }

    pub(super) fn take_poll(&mut self, id: ServerId, worker: WorkerId, life: u64, sent: Moment) {
        if !self.arrives(id, None, || Event::Poll { server: id, worker, life, sent }) {
            return;
        }
        if !self.servers[id].leads() {
            return self.send(|| Event::ToWorker { worker, life, message: ToWorker::Elsewhere });
        }
        let name = &self.workers[worker].plan.name;
        if self.servers[id].core().and_then(|core| core.incarnation(name)) != Some(life) {
            return self.send(|| Event::ToWorker { worker, life, message: ToWorker::Unknown });
        }
        let local = self.servers[id].local(self.now);
        self.servers[id].polls.insert(worker, (life, sent, local));
        self.answer_poll(id, worker);
    }

    fn answer_poll(&mut self, id: ServerId, worker: WorkerId) {
        let local = self.servers[id].local(self.now);
        let server = &mut self.servers[id];
        let Some(engine_now) = server.engine_time(self.now) else { return };
        if server.outbox.get(&worker).is_none_or(Vec::is_empty) {
            return;
        }
        let Some((life, sent, arrived)) = server.polls.remove(&worker) else { return };
        // The connection of a poll ends with the worker that sent it.
        if life != self.workers[worker].life {
            return;
        }
        let waiting = server.outbox.remove(&worker).unwrap_or_default();
        let live = |attempt: &Attempt| {
            server.server.as_ref().and_then(Server::core).is_some_and(|core| core.is_live(attempt.lease))
        };
        let attempts: Vec<Attempt> = waiting
            .into_iter()
            .filter(|(attempt, _)| live(attempt))
            .map(|(attempt, until)| Attempt { left: until.since(engine_now), ..attempt })
            .collect();
        let waited = local.since(arrived);
        self.send(|| {
            let message = ToWorker::Attempts { attempts: attempts.clone(), waited, sent };
            Event::ToWorker { worker, life, message }
        });
    }

    // ---- what happens to servers

    pub(super) fn crash_server(&mut self, id: ServerId) {
        let led = self.servers[id].leads();
        self.servers[id].die();
        self.disturbed(if led { "leader killed" } else { "server killed" });
    }

    pub(super) fn revive_server(&mut self, id: ServerId) {
        if self.servers[id].server.is_none() {
            self.servers[id].start();
            self.handle(id, Input::Tick);
        }
        self.resume_server(id);
    }

    pub(super) fn pause_server(&mut self, id: ServerId, span: Span) {
        if self.servers[id].server.is_some() && self.servers[id].paused_until.is_none() {
            let led = self.servers[id].leads();
            self.servers[id].paused_until = Some(self.now + span);
            self.disturbed(if led { "leader paused past its lease" } else { "server paused" });
        }
    }

    pub(super) fn resume_server(&mut self, id: ServerId) {
        if self.servers[id].paused_until.take().is_none() {
            return;
        }
        for event in std::mem::take(&mut self.servers[id].missed) {
            self.after(Span::ZERO, event);
        }
        self.handle(id, Input::Tick);
    }
}
