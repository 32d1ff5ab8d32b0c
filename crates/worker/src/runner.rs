//! Carries attempts out: as a process under the guardian, as a function of this process, as a request, as statements, or
//! as a chain of these.

use crate::chain::{Ask, Hands, Relay};
use crate::functions::{Calls, Functions};
use crate::guardian::GuardianCommand;
use crate::http::{Reach, Requests};
use crate::logs::LogSink;
use crate::order::{self, Work};
use crate::processes::Processes;
use crate::program::{Identity, Program};
use crate::sql::Databases;
use std::collections::VecDeque;
use tidegate_core::ids::RunId;
use tidegate_core::model::Order;
use tidegate_core::protocol::{Attempt, Lease, Outcome};
use tidegate_core::time::{Moment, Span};

pub(crate) struct Runner {
    processes: Processes,
    calls: Calls,
    requests: Requests,
    databases: Databases,
    relay: Relay,
    /// Could not be started at all.
    refused: VecDeque<(Lease, Outcome)>,
}

impl Runner {
    pub(crate) fn new(
        guardian: Option<GuardianCommand>,
        functions: Functions,
        logs: LogSink,
        reach: Reach,
    ) -> Runner {
        Runner {
            processes: Processes::new(guardian, logs),
            calls: Calls::new(functions),
            requests: Requests::new(reach),
            databases: Databases::default(),
            relay: Relay::new(),
            refused: VecDeque::new(),
        }
    }

    /// However this goes, `next` gives its end exactly once.
    pub(crate) fn start(&mut self, attempt: &Attempt, run: RunId, deadline: Moment, grace: Span) {
        let (lease, identity) = (attempt.lease, Identity::new(attempt, run));
        let started = order::read(&attempt.order).and_then(|work| match work {
            Work::Call { function, input } => {
                self.calls.call(attempt, run, (deadline, grace), &function, input)
            }
            Work::Chain(chain) => {
                let (requests, databases) = (self.requests.clone(), self.databases.clone());
                let processes = self.relay.asker(identity);
                self.calls.start(attempt, run, (deadline, grace), |ctx| {
                    Hands { requests, databases, processes, ctx }.perform(chain)
                });
                Ok(())
            }
            Work::Order(Order::Run { argv, surroundings }) => {
                let program = Program::new(argv, surroundings, &identity)?;
                self.processes.start(lease, program, (deadline, grace));
                Ok(())
            }
            Work::Order(Order::Shell { script, surroundings }) => {
                let program = Program::script(script, surroundings, &identity)?;
                self.processes.start(lease, program, (deadline, grace));
                Ok(())
            }
            Work::Order(Order::Http(request)) => {
                let requests = self.requests.clone();
                self.calls.start(attempt, run, (deadline, grace), |_| requests.perform(request));
                Ok(())
            }
            Work::Order(Order::Sql(statements)) => {
                let databases = self.databases.clone();
                self.calls.start(attempt, run, (deadline, grace), |ctx| databases.perform(ctx, statements));
                Ok(())
            }
        });
        if let Err(error) = started {
            self.refused.push_back((lease, Outcome::failed(error)));
        }
    }

    pub(crate) fn extend(&self, lease: Lease, deadline: Moment) {
        self.processes.extend(lease, deadline);
        self.calls.extend(lease, deadline);
    }

    pub(crate) fn stop(&self, lease: Lease) {
        self.processes.stop(lease);
        self.calls.stop(lease);
    }

    /// Its lease is over: a function has no grace any more, a process the one it was given at its start.
    pub(crate) fn abandon(&self, lease: Lease) {
        self.processes.stop(lease);
        self.calls.abandon(lease);
    }

    /// The next attempt that ends; waits for ever if there is none. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> (Lease, Outcome) {
        if let Some(refused) = self.refused.pop_front() {
            return refused;
        }
        loop {
            let ended = tokio::select! {
                Some((lease, outcome)) = self.calls.next() => self.relay.call_ended(lease, outcome),
                (lease, outcome) = self.processes.next() => self.relay.process_ended(lease, outcome),
                ask = self.relay.next() => {
                    self.heed(ask);
                    None
                }
            };
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    /// What a chain asks for.
    fn heed(&mut self, ask: Ask) {
        match ask {
            Ask::Start { lease, program, ended } => {
                // A chain that has ended meanwhile needs no process any more.
                if let Some(bounds) = self.calls.bounds(lease).filter(|_| !ended.is_closed()) {
                    self.processes.start(lease, program, bounds);
                    self.relay.started(lease, ended);
                }
            }
            Ask::Stop(lease) => self.processes.stop(lease),
            Ask::Settle { lease, settled } => self.relay.settle(lease, settled),
        }
    }

    /// One that has ended, if there is any. Processes are left to `next`.
    pub(crate) fn try_next(&mut self) -> Option<(Lease, Outcome)> {
        if let Some(refused) = self.refused.pop_front() {
            return Some(refused);
        }
        loop {
            let (lease, outcome) = self.calls.try_next()?;
            if let Some(ended) = self.relay.call_ended(lease, outcome) {
                return Some(ended);
            }
        }
    }

    /// Ends everything at once, and tells how all that was left has ended.
    pub(crate) async fn close(&mut self) -> Vec<(Lease, Outcome)> {
        let mut ended: Vec<_> = self.refused.drain(..).collect();
        for (lease, outcome) in self.processes.close().await {
            ended.extend(self.relay.process_ended(lease, outcome));
        }
        for (lease, outcome) in self.calls.close().await {
            ended.extend(self.relay.call_ended(lease, outcome));
        }
        self.databases.close().await;
        ended
    }
}
