//! Carries attempts out: as a process under the guardian, as a function of this process, as a request, or as statements.

use crate::functions::{Calls, Functions};
use crate::guardian::GuardianCommand;
use crate::http::{Reach, Requests};
use crate::logs::LogSink;
use crate::order::{self, Work};
use crate::processes::{ProcessOrder, Processes};
use crate::secrets::Secrets;
use crate::sql::Databases;
use std::collections::{BTreeMap, VecDeque};
use tidegate_core::ids::{RunId, TaskId};
use tidegate_core::model::{Order, Surroundings};
use tidegate_core::protocol::{Attempt, Lease, Outcome};
use tidegate_core::time::{Moment, Span};

/// What carries scripts out: every system has it.
const SHELL: &str = "sh";

pub(crate) struct Runner {
    processes: Processes,
    calls: Calls,
    requests: Requests,
    databases: Databases,
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
            refused: VecDeque::new(),
        }
    }

    /// However this goes, `next` gives its end exactly once.
    pub(crate) fn start(&mut self, attempt: &Attempt, run: RunId, deadline: Moment, grace: Span) {
        let lease = attempt.lease;
        let started = order::read(&attempt.order).and_then(|work| match work {
            Work::Call { function, input } => {
                self.calls.call(attempt, run, (deadline, grace), &function, input)
            }
            Work::Order(Order::Run { argv, surroundings }) => {
                let order = process(argv, surroundings, attempt, run, (deadline, grace))?;
                self.processes.start(lease, order);
                Ok(())
            }
            Work::Order(Order::Shell { script, surroundings }) => {
                let argv = vec![SHELL.to_owned(), "-c".to_owned(), script];
                let order = process(argv, surroundings, attempt, run, (deadline, grace))?;
                self.processes.start(lease, order);
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
        tokio::select! {
            Some(ended) = self.calls.next() => ended,
            ended = self.processes.next() => ended,
        }
    }

    /// One that has ended, if there is any. Processes are left to `next`.
    pub(crate) fn try_next(&mut self) -> Option<(Lease, Outcome)> {
        self.refused.pop_front().or_else(|| self.calls.try_next())
    }

    /// Ends everything at once, and tells how all that was left has ended.
    pub(crate) async fn close(&mut self) -> Vec<(Lease, Outcome)> {
        let mut ended: Vec<_> = self.refused.drain(..).collect();
        ended.extend(self.processes.close().await);
        ended.extend(self.calls.close().await);
        self.databases.close().await;
        ended
    }
}

/// The error is a sentence.
fn process(
    argv: Vec<String>,
    surroundings: Surroundings,
    attempt: &Attempt,
    run: RunId,
    (deadline, grace): (Moment, Span),
) -> Result<ProcessOrder, String> {
    let Surroundings { env, cwd } = surroundings;
    let mut secrets = Secrets::default();
    let reveal = |(name, text)| Ok((name, secrets.reveal(&text)?));
    let mut env = env.into_iter().map(reveal).collect::<Result<BTreeMap<String, String>, String>>()?;
    env.extend(identity(attempt, run));
    Ok(ProcessOrder { run, argv, env, cwd, secrets, deadline, grace })
}

/// What a process can know about itself. The task is the same for all attempts, so it serves as idempotency
/// key; the epoch only grows, so it serves as fencing token. An order cannot change them.
fn identity(attempt: &Attempt, run: RunId) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("TIDEGATE_RUN".into(), run.to_string()),
        ("TIDEGATE_TASK".into(), task(attempt.lease.task)),
        ("TIDEGATE_ATTEMPT".into(), attempt.number.to_string()),
        ("TIDEGATE_EPOCH".into(), attempt.lease.epoch.to_string()),
    ])
}

/// `7`, and `7#1` for the second item of a loop.
fn task(task: TaskId) -> String {
    match task.index() {
        None => task.node.0.to_string(),
        Some(index) => format!("{}#{index}", task.node.0),
    }
}
