//! The task that steps the server: requests and the store's answers in, what is to be done out.

use super::clock::{Alarm, LocalClock};
use super::effects::Parcel;
use super::gathering::Gathering;
use super::letters::Letters;
use super::patience::Patience;
use super::request::{Collected, Errand, Kept, Request, Waiter};
use super::results::Watchers;
use super::store_thread::{Done, Job, Lookups, store_thread};
use super::told::for_listeners;
use super::upkeep::Upkeep;
use super::{Attached, Engine, EngineError, Evaluate, Settings};
use crate::cluster::Upstream;
use crate::reader::Reader;
use crate::server::{Input, Output, Server};
use crate::writer::Ticket;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_core::ids::Name;
use tidegate_core::protocol::{Command, Payload};
use tidegate_core::time::Moment;
use tidegate_store::{Commit, Contact, Sought, Store, StoreError};
use tokio::sync::{mpsc, oneshot, watch};

/// While so many commands wait to be applied, callers wait to hand over more.
const BUSY: usize = 10_000;
/// Requests looked at before the writer steps.
const AT_ONCE: usize = 1_000;
/// How long the end waits for a store that does not answer.
const FAREWELL: Duration = Duration::from_secs(5);

pub(super) struct Shell {
    pub(super) server: Server,
    pub(super) clock: LocalClock,
    pub(super) engine: Engine,
    callers: mpsc::Receiver<Errand>,
    requests: mpsc::UnboundedReceiver<Request>,
    pub(super) store_jobs: std::sync::mpsc::Sender<Job>,
    store_results: mpsc::UnboundedReceiver<Done>,
    /// What the store looks for, in the order in which it was asked to.
    pub(super) lookups: VecDeque<(Lookups, Vec<Sought>)>,
    /// Only looked up, never walked through: its order decides nothing.
    pub(super) waiters: HashMap<Ticket, Waiter, rustc_hash::FxBuildHasher>,
    next_ticket: Ticket,
    pub(super) errands: HashMap<u64, Collected, rustc_hash::FxBuildHasher>,
    pub(super) next_errand: u64,
    /// The workers that can be reached.
    pub(super) workers: BTreeMap<Name, Attached>,
    /// Attempts for workers that are not attached yet.
    pub(super) parcels: BTreeMap<Name, Vec<(Parcel, Payload)>>,
    pub(super) watchers: Watchers,
    pub(super) letters: Letters,
    pub(super) gathering: Gathering,
    pub(super) patience: Patience,
    pub(super) reader: Reader,
    pub(super) evaluator: Arc<dyn Evaluate>,
    outage: watch::Sender<Option<StoreError>>,
    pub(super) upkeep: Upkeep,
    pub(super) kept: Kept,
    /// Of the questions that are being asked together: ends when the last one is answered.
    pub(super) asked: Option<oneshot::Receiver<()>>,
    /// Prunes that the store was asked for and has not done yet.
    pub(super) prunes: usize,
    pub(super) contact: Option<Contact>,
    /// The way to the server that leads, where it is another.
    pub(super) upstream: Upstream,
    /// Who waits for the end, and how long it may take.
    ending: Option<(Instant, Vec<oneshot::Sender<()>>)>,
}

impl Shell {
    pub(super) fn start(
        engine: &Engine,
        settings: Settings,
        (callers, requests): (mpsc::Receiver<Errand>, mpsc::UnboundedReceiver<Request>),
        (store, reader): (Box<dyn Store>, Reader),
        evaluator: Arc<dyn Evaluate>,
        outage: watch::Sender<Option<StoreError>>,
    ) {
        let Settings { name, contact, retention, keeps_digests } = settings;
        let urgent = engine.urgent.clone();
        let (store_jobs, store_results) =
            store_thread(name.clone(), store, engine.commits.clone(), move || {
                let _ = urgent.send(Request::Hint);
            });
        let server = Server::new(name);
        let shell = Shell {
            server: if keeps_digests { server.keeping_digests() } else { server },
            clock: LocalClock::start(),
            engine: engine.clone(),
            callers,
            requests,
            store_jobs,
            store_results,
            lookups: VecDeque::new(),
            waiters: HashMap::default(),
            next_ticket: 0,
            errands: HashMap::default(),
            next_errand: 0,
            workers: BTreeMap::new(),
            parcels: BTreeMap::new(),
            watchers: Watchers::default(),
            letters: Letters::default(),
            gathering: Gathering::default(),
            patience: Patience::default(),
            reader,
            evaluator,
            outage,
            upkeep: Upkeep::new(retention, Instant::now()),
            kept: Kept::default(),
            asked: None,
            prunes: 0,
            contact,
            upstream: Upstream::new(engine.clone()),
            ending: None,
        };
        tokio::spawn(shell.run());
    }

    async fn run(mut self) {
        self.look_for_leader();
        self.tick();
        let mut alarm = Alarm::new();
        while !self.has_ended() {
            let wake = self.next_wake();
            let has_room = self.has_room();
            tokio::select! {
                biased;
                done = self.store_results.recv() => {
                    // Without the store's thread nothing can be done any more.
                    let Some(done) = done else { break };
                    self.store_did(done);
                    self.gather().await;
                    self.tick();
                }
                Some(request) = self.requests.recv() => self.take_requests(request),
                Some(errand) = self.callers.recv(), if has_room => self.take_errands(errand),
                () = self.upstream.freed(), if !has_room => {}
                () = alarm.reach(wake) => self.tick(),
            }
        }
        self.end().await;
    }

    /// Closes the store: from then on somebody else may open it.
    async fn end(self) {
        let Shell { store_jobs, mut store_results, ending, .. } = self;
        drop(store_jobs);
        let closed = async { while store_results.recv().await.is_some() {} };
        let _ = tokio::time::timeout(FAREWELL, closed).await;
        for told in ending.into_iter().flat_map(|(_, told)| told) {
            let _ = told.send(());
        }
    }

    fn has_ended(&self) -> bool {
        self.ending.as_ref().is_some_and(|(by, _)| self.server.has_resigned() || *by <= Instant::now())
    }

    fn next_wake(&self) -> Option<Instant> {
        let server = self.server.next_wake().map(|at| self.clock.instant(at));
        let letters = self.letters.next_look().filter(|_| self.server.leads());
        let may_prune = self.server.leads() && !self.is_kept();
        let prune = self.upkeep.next(self.patience.is_committing()).filter(|_| may_prune);
        let end = self.ending.as_ref().map(|(by, _)| *by);
        [server, letters, prune, end, self.patience_ends()].into_iter().flatten().min()
    }

    /// Lets the server go on, and does what the time says.
    pub(super) fn tick(&mut self) {
        self.handle(Input::Tick);
        let now = Instant::now();
        self.look_for_letters(now, false);
        self.prune_if_due(now);
        self.turn_callers_away();
    }

    /// Before the next commit, those who will end in a moment may.
    async fn gather(&mut self) {
        let Some(patience) = self.gathering.patience() else { return };
        let begin = Instant::now();
        while !self.gathering.is_complete() && begin.elapsed() < patience {
            tokio::task::yield_now().await;
            for _ in 0..AT_ONCE {
                let Ok(request) = self.requests.try_recv() else { break };
                self.take_request(request);
            }
        }
        self.gathering.waited();
    }

    fn store_did(&mut self, done: Done) {
        match done {
            Done::Did(input) => {
                if let Input::Committed(commit) = &input {
                    self.gathering.commit_ends(Instant::now());
                    // One that is put off is sent again: whoever waits for it still does.
                    if !matches!(commit, Ok(Commit::Later)) {
                        self.patience.commit_ends();
                    }
                }
                let follows = matches!(input, Input::Led(Ok(None)));
                self.handle(input);
                if follows {
                    self.look_for_leader();
                }
            }
            Done::Found(found) => self.looked_up(found),
            Done::Leader(leader) => {
                // Who cannot be asked now is asked with the next attempt to lead.
                if let Ok(leader) = leader {
                    self.follow(leader);
                }
            }
            Done::Letters(letters) => self.letters_came(letters),
            Done::Pruned(pruned, asked) => self.pruned(pruned, asked),
        }
    }

    /// Takes in what waits before the writer steps, so that one commit serves many.
    fn take_requests(&mut self, first: Request) {
        let mut next = Some(first);
        for _ in 0..AT_ONCE {
            let Some(request) = next else { break };
            self.take_request(request);
            next = self.requests.try_recv().ok();
        }
        next.into_iter().for_each(|request| self.take_request(request));
        self.tick();
    }

    fn take_errands(&mut self, first: Errand) {
        self.run_errand(first);
        while self.has_room() {
            let Ok(errand) = self.callers.try_recv() else { break };
            self.run_errand(errand);
        }
        self.tick();
    }

    /// Whether callers may hand over more, to the writer here or to that of another server.
    fn has_room(&self) -> bool {
        self.patience.is_over() || self.server.waiting() < BUSY && self.upstream.has_room()
    }

    fn take_request(&mut self, request: Request) {
        match request {
            Request::Errand(errand) => self.run_errand(errand),
            Request::Read(read) => read(self.server.core(), self.engine_now()),
            Request::Query { query, forward: true, reply } if !self.server.leads() => {
                self.forward_query(query, reply);
            }
            Request::Query { query, reply, .. } => self.answer_query(query, reply),
            Request::AskLeader(query, reply) => self.ask_leader(query, reply),
            Request::Attach { worker, attached, forward } => {
                if forward {
                    self.upstream.attach(&worker, attached.incarnation);
                }
                self.attach(worker, attached);
            }
            Request::Detach { worker, attachment } => self.detach(&worker, &attachment),
            Request::Forget { worker, incarnation, attachment } => {
                self.upstream.forget(&worker, incarnation);
                self.detach(&worker, &attachment);
            }
            Request::Reports(finished) => self.take_reports(finished),
            Request::Evaluated(command) => self.take(Waiter::Nobody, command),
            Request::HandOver(parcel, order) => self.hand_over(parcel, order),
            Request::Forwarded(worker, delivery) => self.tell(&worker, delivery),
            Request::Post(newcomers) => self.look_up_keys(newcomers),
            Request::Unread(numbers) => self.letters_unread(numbers),
            Request::Prune { before, reply } => self.prune_for(before, reply),
            Request::Hint => self.look_for_letters(Instant::now(), true),
            Request::Aborted => self.handle(Input::Aborted),
            Request::ShutDown(told) => self.shut_down(told),
        }
    }

    fn shut_down(&mut self, told: oneshot::Sender<()>) {
        let by = Instant::now() + FAREWELL;
        self.ending.get_or_insert_with(|| (by, Vec::new())).1.push(told);
        self.handle(Input::Resign);
    }

    pub(super) fn engine_now(&self) -> Moment {
        self.server.engine_time(self.clock.now())
    }

    pub(super) fn ticket(&mut self, waiter: Waiter) -> Ticket {
        self.next_ticket += 1;
        self.waiters.insert(self.next_ticket, waiter);
        self.next_ticket
    }

    /// Takes a command in; the next tick applies it.
    pub(super) fn take(&mut self, waiter: Waiter, command: Command) {
        let ticket = self.ticket(waiter);
        let mut outputs = Vec::new();
        self.server.handle(Input::Command { ticket, command }, self.clock.now(), &mut outputs);
        // It is turned away, if anything.
        outputs.into_iter().for_each(|output| self.carry_out(output));
    }

    pub(super) fn handle(&mut self, input: Input) {
        let led = self.server.leads();
        if let Input::Loaded(Ok(loaded)) = &input {
            self.engine.reach(loaded.sequence);
        }
        let mut outputs = Vec::new();
        self.server.handle(input, self.clock.now(), &mut outputs);
        // Told first, so that whoever is turned away because of it finds it told.
        self.outage.send_if_modified(|told| {
            let changed = told.as_ref() != self.server.outage();
            if changed {
                *told = self.server.outage().cloned();
            }
            changed
        });
        self.patience.outage(self.server.outage().is_some(), Instant::now());
        for output in outputs {
            self.carry_out(output);
        }
        self.asked = None;
        if led != self.server.leads() {
            self.role_changed();
        }
    }

    /// What was begun for a lead that is over is not gone on with.
    fn role_changed(&mut self) {
        self.letters = Letters::default();
        self.parcels.clear();
        self.upkeep.lead_changed(Instant::now());
        if self.server.leads() {
            self.upstream.disconnect();
            self.look_for_leader();
            self.ask_nobody_who_is_not_there();
            self.introduce_own_workers();
        } else {
            self.dismiss_watchers();
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Answer { ticket, answer } => self.answer(ticket, answer),
            Output::Written(entry) => {
                self.tell_watchers(&entry);
                let sequence = entry.sequence;
                // Nobody may be listening.
                let _ = self.engine.entries.send(for_listeners(entry));
                // After the entry itself, so that who has heard it here need not look for it.
                self.engine.reach(sequence);
            }
            Output::Effect(effect) => self.effect(effect),
            Output::Abort(leases) => self.abort(&leases),
            job => {
                if let Output::Commit(_) = &job {
                    self.gathering.commit_begins(Instant::now());
                    self.patience.commit_begins(Instant::now());
                }
                // The store's thread ends only when this sender does.
                let _ = self.store_jobs.send(Job::Do(job));
            }
        }
    }

    pub(super) fn unavailable(&self) -> EngineError {
        self.server.outage().cloned().map_or(EngineError::Unavailable, EngineError::Outage)
    }
}
