//! The world: servers, workers, clients, a network and a store, all under one virtual clock.
//!
//! It steps the real [`Server`](tidegate_engine::Server) with its real writer and core, and the real worker-side
//! machine; it has no batching, commit or recovery code of its own. What it adds is everything that can go wrong
//! between them.

mod clients;
mod embedded;
mod evaluator;
mod faults;
mod operators;
mod plan;
mod processes;
mod servers;
mod workers;

pub use plan::{JobKind, KEYS, Plan};

use crate::oracle::{Oracle, Violation};
use crate::random::Random;
use clients::{Clients, Intent};
use embedded::{Embedded, Turn};
use faults::Fault;
use servers::SimServer;
use std::collections::BTreeMap;
use tidegate_core::ids::Name;
use tidegate_core::planted::Bug;
use tidegate_core::protocol::{Answer, Attempt, Command, Lease, Outcome as ProcessOutcome, Renewal};
use tidegate_core::time::{Moment, Span};
use tidegate_engine::{Input, Output};
use tidegate_store::MemoryStore;
pub(crate) use workers::GRACE;
use workers::SimWorker;

/// Some afternoon.
pub(crate) const BEGIN: Moment = Moment(1_700_000_000_000_000);
/// After the last fault everything must be done within this time.
const DRAIN: Span = Span::minutes(30);
/// Events of one seed; more means that somebody spins.
const MOST_EVENTS: u64 = 400_000;

pub type ServerId = usize;
pub type WorkerId = usize;

/// Who waits for the answer to a command.
#[derive(Clone, Debug)]
pub(crate) enum Asker {
    Client(u64),
    Join { worker: WorkerId, life: u64 },
    Heartbeat { worker: WorkerId, life: u64, sent: Moment },
    Report { worker: WorkerId, life: u64, lease: Lease, outcome: ProcessOutcome },
    Nobody,
}

#[derive(Debug)]
pub(crate) enum ToWorker {
    Joined,
    /// The answer to a poll: attempts, and how long the poll waited.
    Attempts {
        attempts: Vec<Attempt>,
        waited: Span,
        sent: Moment,
    },
    Renewal {
        renewal: Renewal,
        sent: Moment,
    },
    /// It is not known here and has to join.
    Unknown,
    Reported(Lease),
    Stop(Lease),
    /// Nobody knows whether these grants are durable: end them.
    Abort(Vec<Lease>),
    /// Nobody leads there: ask another.
    Elsewhere,
}

#[derive(Debug)]
pub(crate) enum Event {
    Server {
        server: ServerId,
        life: u64,
    },
    /// The store carries out what a server asked for.
    Store {
        server: ServerId,
        life: u64,
        job: Output,
    },
    StoreAnswer {
        server: ServerId,
        life: u64,
        answer: Input,
    },
    Command {
        server: ServerId,
        command: Command,
        asker: Asker,
    },
    Poll {
        server: ServerId,
        worker: WorkerId,
        life: u64,
        sent: Moment,
    },
    Worker {
        worker: WorkerId,
        life: u64,
    },
    ToWorker {
        worker: WorkerId,
        life: u64,
        message: ToWorker,
    },
    /// A process has run as long as it wanted to.
    ProcessDone {
        worker: WorkerId,
        life: u64,
        lease: Lease,
    },
    /// A process is gone after it was told to end.
    ProcessGone {
        worker: WorkerId,
        life: u64,
        lease: Lease,
    },
    /// The worker is told how a process ended.
    ProcessEnded {
        worker: WorkerId,
        life: u64,
        lease: Lease,
        outcome: ProcessOutcome,
    },
    /// The guardian looks whether a process is past its deadline.
    Guardian {
        worker: WorkerId,
        life: u64,
        lease: Lease,
    },
    Client(Intent),
    Fault(Fault),
    /// Something about the process as a whole, in this life of its server.
    Process {
        life: u64,
        turn: Turn,
    },
    Judge(crate::oracle::Deferred),
}

/// One seed's world.
pub struct World {
    pub(crate) plan: Plan,
    pub(crate) now: Moment,
    pub(crate) random: Random,
    events: BTreeMap<(Moment, u64), Box<Event>>,
    sequence: u64,
    pub(crate) store: MemoryStore,
    pub(crate) servers: Vec<SimServer>,
    pub(crate) workers: Vec<SimWorker>,
    pub(crate) clients: Clients,
    embedded: Embedded,
    pub(crate) askers: BTreeMap<u64, Asker>,
    next_ticket: u64,
    pub(crate) bug: Option<Bug>,
    pub(crate) troubled: bool,
    done_since: Option<Moment>,
    /// Whole limits were claimed once more at the end.
    probed: bool,
    pub(crate) oracle: Oracle,
    watch: Watch,
    trace: Vec<String>,
    /// A running digest of everything that happened.
    digest: u64,
}

/// How much of a seed is written down, which costs more than playing it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watch {
    Nothing,
    /// What everything amounts to.
    Digest,
    Trace,
}

/// What one seed did.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub commands: u64,
    pub virtual_time: Span,
    pub digest: u64,
    pub faults: BTreeMap<&'static str, u64>,
    pub tested: BTreeMap<&'static str, u64>,
    pub violation: Option<Violation>,
    pub trace: Vec<String>,
}

/// Plays one seed to its end.
pub fn play(seed: u64, bug: Option<Bug>, watch: Watch) -> Outcome {
    let mut world = World::new(Plan::new(seed), bug, watch);
    let violation = world.run().err();
    Outcome {
        commands: world.oracle.commands,
        virtual_time: world.now.since(BEGIN),
        digest: world.digest,
        faults: std::mem::take(&mut world.oracle.faults),
        tested: std::mem::take(&mut world.oracle.tested),
        violation,
        trace: std::mem::take(&mut world.trace),
    }
}

impl World {
    fn new(plan: Plan, bug: Option<Bug>, watch: Watch) -> World {
        let store = MemoryStore::new();
        let random = Random::new(plan.seed ^ 0x5EED);
        let mut world = World {
            oracle: Oracle::new(&plan),
            now: BEGIN,
            random,
            events: BTreeMap::new(),
            sequence: 0,
            servers: Vec::new(),
            workers: Vec::new(),
            clients: Clients::default(),
            embedded: Embedded::default(),
            askers: BTreeMap::new(),
            next_ticket: 0,
            bug,
            troubled: true,
            done_since: None,
            probed: false,
            watch,
            trace: Vec::new(),
            digest: 0,
            store,
            plan,
        };
        world.start_servers(bug);
        world.start_workers();
        world.plan_clients();
        world.plan_faults();
        world
    }

    fn run(&mut self) -> Result<(), Violation> {
        let active = BEGIN + self.plan.active;
        let mut steps = 0;
        loop {
            let Some(((at, _), event)) = self.events.pop_first() else {
                return Err(Violation::new(
                    "I9",
                    "nothing is left to happen, and work is open".to_owned(),
                    self.now,
                ));
            };
            self.now = at;
            self.store.set_clock(at);
            if self.troubled && at >= active {
                self.heal();
            }
            steps += 1;
            self.happen(*event)?;
            if !self.troubled && self.is_over() {
                return self.judge_end();
            }
            if at > active + DRAIN || steps > MOST_EVENTS {
                return Err(self.stalled());
            }
        }
    }

    fn happen(&mut self, event: Event) -> Result<(), Violation> {
        self.note(&event);
        match event {
            Event::Server { server, life } => self.tick_server(server, life),
            Event::Store { server, life, job } => self.store_job(server, life, job),
            Event::StoreAnswer { server, life, answer } => self.store_answer(server, life, answer),
            Event::Command { server, command, asker } => self.take_command(server, command, asker),
            Event::Poll { server, worker, life, sent } => self.take_poll(server, worker, life, sent),
            Event::Worker { worker, life } => self.tick_worker(worker, life)?,
            Event::ToWorker { worker, life, message } => self.worker_hears(worker, life, message)?,
            Event::ProcessDone { worker, life, lease } => self.process_done(worker, life, lease)?,
            Event::ProcessGone { worker, life, lease } => self.process_gone(worker, life, lease)?,
            Event::ProcessEnded { worker, life, lease, outcome } => {
                self.process_ended(worker, life, lease, outcome)?;
            }
            Event::Guardian { worker, life, lease } => self.guardian_looks(worker, life, lease)?,
            Event::Client(intent) => self.client_acts(intent),
            Event::Fault(fault) => self.fault(fault),
            Event::Process { life, turn } => self.process_turns(life, turn),
            Event::Judge(deferred) => {
                let (oracle, now) = (&mut self.oracle, self.now);
                self.store.look(|tables| oracle.judge_deferred(&deferred, tables, now))?;
            }
        }
        Ok(())
    }

    // ---- time and chance

    pub(crate) fn after(&mut self, span: Span, event: Event) {
        self.sequence += 1;
        self.events.insert((self.now + span, self.sequence), Box::new(event));
    }

    /// How long something quick takes: a message, a write.
    pub(crate) fn soon(&mut self) -> Span {
        Span::micros(self.random.between(300, 8_000))
    }

    /// Sends a message: perhaps it is late, lost or doubled.
    pub(crate) fn send(&mut self, make: impl Fn() -> Event) {
        let trouble = if self.troubled { self.plan.trouble } else { Default::default() };
        let event = make();
        if self.plan.embedded {
            return self.pass(event);
        }
        if self.is_cut_off(&event) {
            return;
        }
        if self.random.chance(trouble.lost) {
            return self.disturbed("message lost");
        }
        if self.random.chance(trouble.doubled) {
            self.disturbed("message doubled");
            let span = self.soon();
            self.after(span, make());
        }
        let mut span = self.soon();
        if self.random.chance(trouble.late) {
            self.disturbed("message late");
            span = Span::millis(self.random.between(50, 4_000));
        }
        self.after(span, event);
    }

    /// Something went wrong: from here on, order is not judged until it has been calm for a while.
    pub(crate) fn disturbed(&mut self, what: &'static str) {
        self.oracle.count_fault(what);
        self.oracle.disturb(self.now);
        if self.watch == Watch::Trace {
            self.trace.push(format!("{:?}  *** {what}", self.now));
        }
    }

    fn note(&mut self, event: &Event) {
        let quiet = matches!(event, Event::Server { .. } | Event::Worker { .. } | Event::Guardian { .. });
        if quiet || self.watch == Watch::Nothing {
            return;
        }
        let text = format!("{event:?}");
        for byte in text.bytes() {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
        if self.watch == Watch::Trace {
            self.trace.push(format!("{:?}  {text}", self.now));
        }
    }

    // ---- the end

    /// Faults stop, everybody comes back, whatever was closed or paused is opened.
    fn heal(&mut self) {
        self.troubled = false;
        self.oracle.disturb(self.now);
        if self.plan.embedded {
            self.revive_process();
        }
        for server in 0..self.servers.len() {
            self.revive_server(server);
        }
        for worker in 0..self.workers.len() {
            self.workers[worker].reconnect();
            self.revive_worker(worker);
        }
        self.operators_heal();
    }

    /// Everything is done, has been for long enough to be durable, and what was held can be had again.
    fn is_over(&mut self) -> bool {
        if !self.is_done() {
            self.done_since = None;
            return false;
        }
        let since = *self.done_since.get_or_insert(self.now);
        if self.now.since(since) < Span::seconds(1) {
            return false;
        }
        if self.probed {
            return true;
        }
        self.probed = true;
        self.done_since = None;
        self.probe();
        false
    }

    fn is_done(&self) -> bool {
        self.clients.is_done()
            && self.servers.iter().any(|server| server.is_up() && server.is_idle())
            && self.workers.iter().all(|worker| worker.processes.is_empty())
    }

    fn judge_end(&mut self) -> Result<(), Violation> {
        let (oracle, now) = (&mut self.oracle, self.now);
        self.store.look(|tables| oracle.judge_end(tables, now))
    }

    fn stalled(&self) -> Violation {
        let leader = self.servers.iter().find_map(SimServer::core);
        let open = leader.map_or_else(|| "nobody leads".to_owned(), |core| core.describe_open(self.now));
        Violation::new("I9", format!("work has stalled: {open}"), self.now)
    }

    pub(crate) fn ticket(&mut self, asker: Asker) -> u64 {
        self.next_ticket += 1;
        self.askers.insert(self.next_ticket, asker);
        self.next_ticket
    }

    pub(crate) fn answer(&mut self, server: ServerId, ticket: u64, answer: Option<Answer>) {
        match self.askers.remove(&ticket) {
            Some(Asker::Client(intent)) => self.client_hears(intent, answer),
            Some(Asker::Join { worker, life }) => {
                let joined = answer.is_some();
                let message = move || if joined { ToWorker::Joined } else { ToWorker::Elsewhere };
                self.send(|| Event::ToWorker { worker, life, message: message() });
            }
            Some(Asker::Heartbeat { worker, life, sent }) => {
                self.send(|| {
                    let message = match answer.clone() {
                        Some(Answer::Renewal(renewal)) => ToWorker::Renewal { renewal, sent },
                        Some(_) => ToWorker::Unknown,
                        None => ToWorker::Elsewhere,
                    };
                    Event::ToWorker { worker, life, message }
                });
            }
            Some(Asker::Report { worker, life, lease, outcome }) => {
                if let Some(answer) = &answer {
                    self.oracle.reported(lease, &outcome, answer, self.now);
                }
                let known = answer.is_some();
                self.send(|| {
                    let message = if known { ToWorker::Reported(lease) } else { ToWorker::Elsewhere };
                    Event::ToWorker { worker, life, message }
                });
            }
            Some(Asker::Nobody) | None => {}
        }
        let _ = server;
    }

    pub(crate) fn worker_named(&self, name: &Name) -> Option<WorkerId> {
        self.workers.iter().position(|worker| worker.plan.name == *name)
    }
}
