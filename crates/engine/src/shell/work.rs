//! The task that steps the server: requests and the store's answers in, what is to be done out.

use super::clock::LocalClock;
use super::effects::Reader;
use super::store_thread::{Done, Found, Job};
use super::{Delivery, EngineError, Evaluate, Reply, Request};
use crate::server::{Input, Output, Server};
use crate::writer::{QUEUE, Ticket};
use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use tidegate_core::ids::Name;
use tidegate_core::protocol::{Answer, Command, Submit};
use tidegate_core::time::Moment;
use tidegate_store::{Entry, StoreError};
use tokio::sync::{broadcast, mpsc, watch};

/// A submission, and who waits for its answer.
pub(super) type Newcomer = (Submit, Reply);

pub(super) struct Shell {
    pub(super) server: Server,
    pub(super) clock: LocalClock,
    pub(super) inbox: mpsc::UnboundedReceiver<Request>,
    pub(super) store_jobs: std::sync::mpsc::Sender<Job>,
    pub(super) store_results: mpsc::UnboundedReceiver<Done>,
    /// Submissions whose ids the store looks for, in the order in which it was asked to.
    pub(super) newcomers: VecDeque<Vec<Newcomer>>,
    pub(super) tickets: BTreeMap<Ticket, Reply>,
    pub(super) next_ticket: Ticket,
    /// Which start of each worker is attached, and where to reach it.
    pub(super) workers: BTreeMap<Name, (u64, mpsc::UnboundedSender<Delivery>)>,
    pub(super) reader: Reader,
    pub(super) evaluator: Arc<dyn Evaluate>,
    pub(super) entries: broadcast::Sender<Arc<Entry>>,
    pub(super) outage: watch::Sender<Option<StoreError>>,
    /// For commands that follow from effects.
    pub(super) internal: mpsc::UnboundedSender<Request>,
}

impl Shell {
    pub(super) async fn run(mut self) {
        self.handle(Input::Tick);
        loop {
            let wake = self.server.next_wake().map(|at| self.clock.instant(at));
            let timer = async {
                match wake {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(done) = self.store_results.recv() => match done {
                    Done::Did(input) => self.handle(input),
                    Done::Found(found) => self.found(found),
                },
                request = self.inbox.recv() => {
                    let Some(ControlFlow::Continue(())) = request.map(|request| self.take_all(request)) else {
                        return self.handle(Input::Resign);
                    };
                }
                () = timer => self.handle(Input::Tick),
            }
        }
    }

    /// Takes in everything that waits before the writer steps, so that one commit serves many.
    fn take_all(&mut self, first: Request) -> ControlFlow<()> {
        let mut next = Some(first);
        let mut newcomers = Vec::new();
        while let Some(request) = next {
            match request {
                Request::Command(Command::Submit(submit), reply) if self.server.leads() => {
                    newcomers.push((submit, reply));
                }
                Request::Command(command, reply) => self.take(command, reply),
                Request::Read(read) => read(self.server.core(), self.engine_now()),
                Request::Attach(name, incarnation, sender) => {
                    self.workers.insert(name, (incarnation, sender));
                }
                Request::HandOver(parcel, order) => self.hand_over(parcel, order),
                Request::ShutDown => return ControlFlow::Break(()),
            }
            next = self.inbox.try_recv().ok();
        }
        self.look_for(newcomers);
        self.handle(Input::Tick);
        ControlFlow::Continue(())
    }

    /// Before a submission is taken in, the store is asked whether it was accepted already: the core forgets what has
    /// ended. The same thread commits, so what it has not found cannot have ended before it is taken in here.
    fn look_for(&mut self, mut newcomers: Vec<Newcomer>) {
        let waiting: usize = self.newcomers.iter().map(Vec::len).sum();
        for (_, reply) in newcomers.drain(newcomers.len().min(QUEUE.saturating_sub(waiting))..) {
            let _ = reply.send(Err(EngineError::Unavailable));
        }
        if newcomers.is_empty() {
            return;
        }
        let ids = newcomers.iter().map(|(submit, _)| submit.id).collect();
        self.newcomers.push_back(newcomers);
        let _ = self.store_jobs.send(Job::Find(ids));
    }

    fn found(&mut self, found: Vec<Found>) {
        for ((submit, reply), found) in self.newcomers.pop_front().into_iter().flatten().zip(found) {
            match found {
                Ok(None) => self.take(Command::Submit(submit), reply),
                Ok(Some(node)) => drop(reply.send(Ok(Answer::Accepted { node, again: true }))),
                Err(error) => drop(reply.send(Err(EngineError::Outage(error)))),
            }
        }
        self.handle(Input::Tick);
    }

    pub(super) fn engine_now(&self) -> Moment {
        self.server.engine_time(self.clock.now())
    }

    fn take(&mut self, command: Command, reply: Reply) {
        self.next_ticket += 1;
        self.tickets.insert(self.next_ticket, reply);
        self.handle(Input::Command { ticket: self.next_ticket, command });
    }

    fn handle(&mut self, input: Input) {
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
        for output in outputs {
            self.carry_out(output);
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Answer { ticket, answer } => {
                if let Some(reply) = self.tickets.remove(&ticket) {
                    let _ = reply.send(answer.ok_or_else(|| self.unavailable()));
                }
            }
            Output::Written(entry) => {
                // Nobody may be listening.
                let _ = self.entries.send(entry);
            }
            Output::Effect(effect) => self.effect(effect),
            job => {
                // The store's thread ends only when this sender does.
                let _ = self.store_jobs.send(Job::Do(job));
            }
        }
    }

    fn unavailable(&self) -> EngineError {
        self.server.outage().cloned().map_or(EngineError::Unavailable, EngineError::Outage)
    }
}
