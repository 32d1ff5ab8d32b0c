//! A worker inside the engine's process: the [`Attempts`] machine with a clock, a runner and a link.
//!
//! It decides nothing about leases: it carries out what the machine says, and tells it what happened.

use crate::clock::{self, Alarm};
use crate::functions::Functions;
use crate::guardian::GuardianCommand;
use crate::http::Reach;
use crate::link::{Join, Link, Slots, ToEngine, ToWorker};
use crate::logs::{LogSink, discard};
use crate::runner::Runner;
use std::collections::BTreeMap;
use tidegate_core::attempts::{Action, Attempts, GRACE};
use tidegate_core::ids::{Name, RunId};
use tidegate_core::model::Requirement;
use tidegate_core::protocol::{Lease, Outcome, Refusal};
use tidegate_core::time::{Moment, Span};
use tokio::sync::{oneshot, watch};

/// Beyond the grace, this long is given to the last reports and acknowledgements of a worker that shuts down.
const FAREWELL: Span = Span::seconds(1);

/// Messages, or ends, that are looked at before anything else is.
const AT_ONCE: usize = 64;

/// Functions, requests and statements at once unless told otherwise: they wait more than they work.
pub const IO_SLOTS: u32 = 256;

/// Processes at once unless told otherwise.
pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

/// What kind of worker to be.
pub struct Settings {
    pub name: Name,
    /// Differs for every start of this worker.
    pub incarnation: u64,
    pub slots: Slots,
    pub queues: Vec<Name>,
    pub labels: Vec<Name>,
    /// From SIGTERM to SIGKILL; at most a third of an attempt's lease.
    pub grace: Span,
    /// How to start what guards processes. Whoever has none must not offer slots for them.
    pub guardian: Option<GuardianCommand>,
    pub functions: Functions,
    /// Whether requests may ask link-local addresses, where the machine's own credentials are often found.
    pub asks_link_local: bool,
    pub logs: LogSink,
}

impl Settings {
    /// One process a core if they can be guarded, [`IO_SLOTS`], the default queue, no labels, no functions, no logs.
    pub fn new(name: impl Into<Name>, incarnation: u64, guardian: Option<GuardianCommand>) -> Settings {
        Settings {
            name: name.into(),
            incarnation,
            slots: Slots { process: if guardian.is_some() { cores() } else { 0 }, io: IO_SLOTS },
            queues: vec![Name::new(Requirement::DEFAULT_QUEUE)],
            labels: Vec::new(),
            grace: GRACE,
            guardian,
            functions: Functions::default(),
            asks_link_local: false,
            logs: discard(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("the engine went away; everything this worker ran was stopped")]
    EngineGone,
    #[error("{0}; everything this worker ran was stopped")]
    Refused(Refusal),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Working,
    Draining,
    ShuttingDown,
}

/// Ends a worker from outside. Dropping it changes nothing.
#[derive(Clone)]
pub struct Control(watch::Sender<Phase>);

impl Control {
    /// Take nothing new, let what runs end, then leave.
    pub fn drain(&self) {
        self.advance(Phase::Draining);
    }

    /// Take nothing new, stop everything, hand it back and leave, all within the grace and a second.
    pub fn shut_down(&self) {
        self.advance(Phase::ShuttingDown);
    }

    fn advance(&self, to: Phase) {
        self.0.send_if_modified(|phase| {
            let later = *phase < to;
            *phase = to.max(*phase);
            later
        });
    }
}

pub struct Worker {
    settings: Settings,
    phase: watch::Sender<Phase>,
}

impl Worker {
    pub fn new(settings: Settings) -> Worker {
        Worker { settings, phase: watch::Sender::new(Phase::Working) }
    }

    pub fn control(&self) -> Control {
        Control(self.phase.clone())
    }

    /// Works until told to end. When this returns, nothing that it started is running any more; dropped before
    /// that, the guardian still ends the processes.
    pub async fn run(self, link: Link) -> Result<(), WorkerError> {
        let Settings {
            name,
            incarnation,
            slots,
            queues,
            labels,
            grace,
            guardian,
            functions,
            asks_link_local,
            logs,
        } = self.settings;
        let reach = Reach { link_local: asks_link_local };
        let mut shell = Shell {
            attempts: Attempts::new(name.clone(), incarnation, grace, clock::now()),
            runs: BTreeMap::new(),
            link,
            phase: self.phase.subscribe(),
            aborting: Vec::new(),
            leave_by: Moment::MAX,
            refused: None,
            reports: Vec::new(),
            grace,
            runner: Runner::new(guardian, functions.clone(), logs, reach),
        };
        let functions = functions.names().cloned().collect();
        shell.send(ToEngine::Join(Join { name, incarnation, slots, queues, labels, functions }));
        let result = shell.work().await;
        shell.leave().await;
        result
    }
}

struct Shell {
    attempts: Attempts,
    /// The runs of leases that have not been started. Only a heartbeat forgets those that never will be.
    runs: BTreeMap<Lease, RunId>,
    link: Link,
    phase: watch::Receiver<Phase>,
    /// What has to end, and who waits for that.
    aborting: Vec<(Vec<Lease>, oneshot::Sender<()>)>,
    leave_by: Moment,
    refused: Option<Refusal>,
    /// What is to be said before the next wait.
    reports: Vec<(Lease, Outcome)>,
    grace: Span,
    runner: Runner,
}

impl Shell {
    async fn work(&mut self) -> Result<(), WorkerError> {
        let mut alarm = Alarm::new();
        loop {
            self.report();
            if let Some(refusal) = self.refused.take() {
                return Err(WorkerError::Refused(refusal));
            }
            let leaving = *self.phase.borrow() > Phase::Working;
            if (leaving && self.attempts.is_empty()) || self.leave_by <= clock::now() {
                return Ok(());
            }
            let wake = self.attempts.next_wake().min(self.leave_by);
            tokio::select! {
                Ok(()) = self.phase.changed() => self.enter_phase(),
                message = self.link.inbox.recv() => match message {
                    Some(message) => self.hear_all(message),
                    None => return Err(WorkerError::EngineGone),
                },
                end = self.runner.next() => self.all_ended(end),
                () = alarm.reach(wake) => {
                    let actions = self.attempts.tick(clock::now());
                    self.perform(actions);
                }
            }
        }
    }

    fn hear_all(&mut self, first: ToWorker) {
        self.hear(first);
        for _ in 1..AT_ONCE {
            let Ok(message) = self.link.inbox.try_recv() else { return };
            self.hear(message);
        }
    }

    fn all_ended(&mut self, (lease, outcome): (Lease, Outcome)) {
        self.ended(lease, outcome);
        for _ in 1..AT_ONCE {
            let Some((lease, outcome)) = self.runner.try_next() else { return };
            self.ended(lease, outcome);
        }
    }

    /// Ends whatever is left and hands it back.
    async fn leave(&mut self) {
        let actions = self.attempts.shut_down(clock::now());
        self.perform(actions);
        for (lease, outcome) in self.runner.close().await {
            self.ended(lease, outcome);
        }
        self.report();
        self.send(ToEngine::Leave);
    }

    /// However it ran, it ends here, within the bounds of what can be reported.
    fn ended(&mut self, lease: Lease, outcome: Outcome) {
        let actions = self.attempts.ended(lease, outcome.within_bounds(), clock::now());
        self.perform(actions);
        if !self.aborting.is_empty() {
            self.tell_who_waits_for_aborts();
        }
    }

    fn abort(&mut self, leases: Vec<Lease>, told: oneshot::Sender<()>) {
        for &lease in &leases {
            let actions = self.attempts.abort(lease, clock::now());
            self.perform(actions);
        }
        self.aborting.push((leases, told));
        self.tell_who_waits_for_aborts();
    }

    fn tell_who_waits_for_aborts(&mut self) {
        let runs = |leases: &[Lease]| leases.iter().any(|&lease| self.attempts.is_at_runner(lease));
        let (waiting, done) =
            std::mem::take(&mut self.aborting).into_iter().partition(|(leases, _)| runs(leases));
        self.aborting = waiting;
        let done: Vec<(Vec<Lease>, oneshot::Sender<()>)> = done;
        for (_, told) in done {
            // Who asked may have gone away meanwhile.
            let _ = told.send(());
        }
    }

    fn enter_phase(&mut self) {
        let phase = *self.phase.borrow_and_update();
        let now = clock::now();
        let actions = match phase {
            Phase::Working => return,
            Phase::Draining => self.attempts.drain(now),
            Phase::ShuttingDown => {
                self.leave_by = now + self.grace + FAREWELL;
                self.attempts.shut_down(now)
            }
        };
        self.send(ToEngine::Draining);
        self.perform(actions);
    }

    fn hear(&mut self, message: ToWorker) {
        let now = clock::now();
        let actions = match message {
            ToWorker::Attempt { attempt, run, granted } => {
                self.runs.insert(attempt.lease, run);
                self.attempts.received(attempt, Span::ZERO, granted, now)
            }
            ToWorker::Renewal { renewal, sent } => self.attempts.renewed(&renewal, sent, now),
            ToWorker::Stop(lease) => self.attempts.stop(lease, now),
            ToWorker::Reported(lease) => return self.attempts.reported(lease, now),
            ToWorker::Abort(leases, told) => return self.abort(leases, told),
            ToWorker::Refused(refusal) => return self.refused = Some(refusal),
        };
        self.perform(actions);
    }

    fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Start { attempt, deadline, grace } => {
                    if let Some(run) = self.runs.remove(&attempt.lease) {
                        self.runner.start(&attempt, run, deadline, grace);
                    }
                }
                Action::Extend { lease, deadline } => self.runner.extend(lease, deadline),
                Action::Stop { lease, .. } => self.runner.stop(lease),
                Action::Abandon { lease } => self.runner.abandon(lease),
                Action::Report { lease, outcome } => self.reports.push((lease, outcome)),
                Action::Heartbeat(heartbeat) => {
                    if !self.runs.is_empty() {
                        self.runs.retain(|lease, _| heartbeat.has.contains(lease));
                    }
                    self.send(ToEngine::Heartbeat { heartbeat, sent: clock::now() });
                }
            }
        }
    }

    fn report(&mut self) {
        if !self.reports.is_empty() {
            let reports = std::mem::take(&mut self.reports);
            self.send(ToEngine::Reports(reports));
        }
    }

    fn send(&self, message: ToEngine) {
        (self.link.outbox)(message);
    }
}
