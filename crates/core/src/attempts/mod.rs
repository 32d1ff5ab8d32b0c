//! The worker's side of leases: what this worker has, until when, and what to stop.
//!
//! A step machine without I/O, clock, tasks or randomness: inputs come with the time on the worker's own
//! monotonic clock, and what is to be done comes back as data. The shell around it (a worker, or the
//! simulator) carries out [`Action`]s and must say [`Attempts::ended`] once for every `Start`.
//!
//! It refuses to
//! - have two attempts of one task at the runner: a newer grant waits until the older one has ended;
//! - start a lease twice, whatever is delivered again, or start one whose deadline has passed;
//! - report what ended at or after its deadline, and to take back what it gave up: by then the engine may have
//!   given the task to somebody else.
//!
//! It relies on one thing the engine does: delivering a lease again does not make it last longer.

mod settled;
mod table;
mod terms;

#[cfg(test)]
mod property;
#[cfg(test)]
mod tests;

pub use terms::{GRACE, Terms};

use crate::ids::Name;
use crate::model::LEASE;
use crate::planted::{Bug, Planted};
use crate::protocol::{Attempt, Heartbeat, Lease, Outcome, Renewal};
use crate::time::{Moment, Span};
use settled::Settled;
use table::{Held, State, Table};

/// What the shell has to do.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Hand it to the runner. From `deadline` on it has `grace` to be gone.
    Start { attempt: Attempt, deadline: Moment, grace: Span },
    /// Its deadline is later now.
    Extend { lease: Lease, deadline: Moment },
    /// Ask the runner to end it, and to make an end of it after the grace given at its start. May come twice,
    /// the second time because a newer grant made this one void.
    Stop { lease: Lease, reason: StopReason },
    /// Its deadline has passed: end it like `Stop`. Nothing it still does will be reported.
    Abandon { lease: Lease },
    /// Tell the engine. Repeated until [`Attempts::reported`], so the engine acknowledges stale reports too.
    Report { lease: Lease, outcome: Outcome },
    /// Send this; its answer goes to [`Attempts::renewed`].
    Heartbeat(Heartbeat),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// The engine said so.
    Cancelled,
    /// The engine granted the task anew, so this grant is void.
    Superseded,
    /// The worker ends and hands back what it has.
    ShuttingDown,
}

/// Everything one start of a worker has.
#[derive(Debug)]
pub struct Attempts {
    worker: Name,
    incarnation: u64,
    grace: Span,
    table: Table,
    settled: Settled,
    last_heartbeat: Moment,
    draining: bool,
    planted: Planted,
}

impl Attempts {
    /// `incarnation` must differ for every start of this worker; `grace` is cut to a third of each lease.
    pub fn new(worker: Name, incarnation: u64, grace: Span, now: Moment) -> Attempts {
        Attempts {
            worker,
            incarnation,
            grace,
            table: Table::default(),
            settled: Settled::default(),
            last_heartbeat: now,
            draining: false,
            planted: Planted::default(),
        }
    }

    /// The engine handed over an attempt: in the answer to a poll sent at `sent`, after `waited` at the engine.
    pub fn received(&mut self, attempt: Attempt, waited: Span, sent: Moment, now: Moment) -> Vec<Action> {
        let lease = attempt.lease;
        let mut actions = Vec::new();
        if self.knows(lease) {
            self.repeat_report(lease, now, &mut actions);
            return actions;
        }
        let terms = Terms::new(attempt.length, self.grace);
        // An engine that claims to have waited longer than has passed gives no more time for it.
        let deadline = (sent + waited).min(now) + terms.usable_of(attempt.left);
        let one_is_live = self.supersede(lease, now, &mut actions);
        if deadline <= now {
            // Never started, so nothing is remembered: delivered again in time, it may still run.
        } else if self.draining {
            self.conclude(lease, terms, Outcome::HandedBack, now, &mut actions);
        } else if one_is_live {
            self.table.insert(lease, Held { terms, state: State::Waiting(attempt), due: deadline });
        } else {
            self.start(attempt, terms, deadline, &mut actions);
        }
        actions
    }

    /// The engine wants this lease ended.
    pub fn stop(&mut self, lease: Lease, now: Moment) -> Vec<Action> {
        let mut actions = Vec::new();
        match self.table.get(lease).map(|held| (&held.state, held.terms, held.due)) {
            Some((State::Running, _, deadline)) => {
                self.table.change(lease, State::Stopping(StopReason::Cancelled), deadline);
                actions.push(Action::Stop { lease, reason: StopReason::Cancelled });
            }
            Some((State::Waiting(_), terms, _)) => {
                self.conclude(lease, terms, Outcome::Stopped, now, &mut actions);
            }
            Some(_) => {}
            // The word to stop overtook the attempt: confirmed at once, and not started when it arrives.
            None if !self.knows(lease) => {
                let terms = Terms::new(LEASE, self.grace);
                self.supersede(lease, now, &mut actions);
                self.conclude(lease, terms, Outcome::Stopped, now, &mut actions);
            }
            None => {}
        }
        actions
    }

    /// Nobody will ever know of this grant: what runs of it is to end, and nothing of it is reported.
    pub fn abort(&mut self, lease: Lease, now: Moment) -> Vec<Action> {
        match self.table.get(lease).map(|held| &held.state) {
            Some(State::Running | State::Stopping(_)) => {
                self.table.change(lease, State::GivenUp, Moment::MAX);
                vec![Action::Abandon { lease }]
            }
            Some(State::Waiting(_) | State::Ended(_)) => {
                self.forget(lease, now);
                Vec::new()
            }
            Some(State::GivenUp) | None => Vec::new(),
        }
    }

    /// Whether the runner still has something of this attempt.
    pub fn is_at_runner(&self, lease: Lease) -> bool {
        let state = self.table.get(lease).map(|held| &held.state);
        matches!(state, Some(State::Running | State::Stopping(_) | State::GivenUp))
    }

    /// The answer to a heartbeat that was sent at `sent`.
    pub fn renewed(&mut self, renewal: &Renewal, sent: Moment, now: Moment) -> Vec<Action> {
        let mut actions = Vec::new();
        for &lease in &renewal.renewed {
            let Some(held) = self.table.get(lease) else { continue };
            let deadline = sent.min(now) + held.terms.usable();
            if held.due <= now || deadline <= held.due {
                continue;
            }
            match held.state {
                State::Waiting(_) => self.table.postpone(lease, deadline),
                State::Running | State::Stopping(_) => {
                    self.table.postpone(lease, deadline);
                    actions.push(Action::Extend { lease, deadline });
                }
                State::GivenUp | State::Ended(_) => {}
            }
        }
        for &lease in &renewal.stop {
            // Only what this worker still has: an answer may be older than the end of what it names.
            if self.table.get(lease).is_some() {
                actions.extend(self.stop(lease, now));
            }
        }
        actions
    }

    /// The runner has nothing left of this attempt, and this is how it ended.
    pub fn ended(&mut self, lease: Lease, outcome: Outcome, now: Moment) -> Vec<Action> {
        let mut actions = Vec::new();
        let Some(held) = self.table.get(lease) else { return actions };
        let terms = held.terms;
        let verdict = match held.state {
            State::Waiting(_) | State::Ended(_) => return actions,
            State::GivenUp => None,
            State::Running | State::Stopping(_) if held.due <= now => None,
            State::Running => Some(unasked(outcome)),
            State::Stopping(reason) => Some(asked(outcome, reason)),
        };
        match verdict {
            Some(outcome) => self.conclude(lease, terms, outcome, now, &mut actions),
            None => self.forget(lease, now),
        }
        self.start_waiting(lease, now, &mut actions);
        actions
    }

    /// The engine has this lease's report and will not ask for it again.
    pub fn reported(&mut self, lease: Lease, now: Moment) {
        if self.table.get(lease).is_some_and(|held| matches!(held.state, State::Ended(_))) {
            self.forget(lease, now);
        }
    }

    /// Another engine answers from now on, or the connection was lost: everything unacknowledged is said again.
    pub fn rejoined(&mut self, now: Moment) -> Vec<Action> {
        let unacknowledged: Vec<Lease> = self
            .table
            .iter()
            .filter(|(_, held)| matches!(held.state, State::Ended(_)))
            .map(|(lease, _)| lease)
            .collect();
        let mut actions = Vec::new();
        for lease in unacknowledged {
            self.repeat_report(lease, now, &mut actions);
        }
        actions.push(Action::Heartbeat(self.heartbeat(now)));
        actions
    }

    /// Time has passed: give up what is past its deadline, say again what was not acknowledged, ask for more.
    pub fn tick(&mut self, now: Moment) -> Vec<Action> {
        let mut actions = Vec::new();
        while let Some(lease) = self.table.due_by(now) {
            match self.table.get(lease).map(|held| &held.state) {
                Some(State::Running | State::Stopping(_)) => {
                    self.table.change(lease, State::GivenUp, Moment::MAX);
                    actions.push(Action::Abandon { lease });
                }
                Some(State::Ended(_)) => self.repeat_report(lease, now, &mut actions),
                Some(State::Waiting(_) | State::GivenUp) | None => {
                    self.table.remove(lease);
                }
            }
        }
        self.settled.forget(now);
        if self.next_heartbeat() <= now {
            self.renew_oneself(now, &mut actions);
            actions.push(Action::Heartbeat(self.heartbeat(now)));
        }
        actions
    }

    /// Only for a planted bug.
    fn renew_oneself(&mut self, now: Moment, actions: &mut Vec<Action>) {
        if !self.planted.has(Bug::RenewedAfterExpiry) {
            return;
        }
        let running: Vec<(Lease, Terms)> = self
            .table
            .iter()
            .filter(|(_, held)| matches!(held.state, State::Running))
            .map(|(lease, held)| (lease, held.terms))
            .collect();
        for (lease, terms) in running {
            let deadline = now + terms.usable();
            self.table.postpone(lease, deadline);
            actions.push(Action::Extend { lease, deadline });
        }
    }

    #[cfg(feature = "planted-bugs")]
    pub fn plant(&mut self, bug: Bug) {
        self.planted = Planted::bug(bug);
    }

    /// Everything this worker has, to be sent now.
    pub fn heartbeat(&mut self, now: Moment) -> Heartbeat {
        self.last_heartbeat = now;
        let has = self
            .table
            .iter()
            .filter(|(_, held)| !matches!(held.state, State::GivenUp))
            .map(|(lease, _)| lease)
            .collect();
        Heartbeat { worker: self.worker.clone(), incarnation: self.incarnation, has }
    }

    /// When to call [`Attempts::tick`] at the latest.
    pub fn next_wake(&self) -> Moment {
        self.table.next_due().map_or(self.next_heartbeat(), |due| due.min(self.next_heartbeat()))
    }

    /// Take nothing new; what runs may end in its own time.
    pub fn drain(&mut self, now: Moment) -> Vec<Action> {
        self.draining = true;
        let waiting: Vec<(Lease, Terms)> = self
            .table
            .iter()
            .filter(|(_, held)| matches!(held.state, State::Waiting(_)))
            .map(|(lease, held)| (lease, held.terms))
            .collect();
        let mut actions = Vec::new();
        for (lease, terms) in waiting {
            self.conclude(lease, terms, Outcome::HandedBack, now, &mut actions);
        }
        actions
    }

    /// Take nothing new, stop everything and hand it back as it ends.
    pub fn shut_down(&mut self, now: Moment) -> Vec<Action> {
        let mut actions = self.drain(now);
        let running: Vec<(Lease, Moment)> = self
            .table
            .iter()
            .filter(|(_, held)| matches!(held.state, State::Running))
            .map(|(lease, held)| (lease, held.due))
            .collect();
        for (lease, deadline) in running {
            self.table.change(lease, State::Stopping(StopReason::ShuttingDown), deadline);
            actions.push(Action::Stop { lease, reason: StopReason::ShuttingDown });
        }
        actions
    }

    /// Nothing is at the runner and the engine has every report: the worker may leave.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// This lease, or a newer one of its task, has been seen.
    fn knows(&self, lease: Lease) -> bool {
        let newest = self.table.of_task(lease.task).next_back();
        newest.is_some_and(|(newest, _)| lease.epoch <= newest.epoch) || self.settled.covers(lease)
    }

    /// A newer grant makes all older ones of its task void. Whether one of them is still at the runner. What was not
    /// acknowledged yet stays said: the newer grant may have come ahead of the commit of what it rests on, and be aborted.
    fn supersede(&mut self, newer: Lease, now: Moment, actions: &mut Vec<Action>) -> bool {
        let older: Vec<Lease> = self.table.of_task(newer.task).map(|(lease, _)| lease).collect();
        let mut one_is_live = false;
        for lease in older {
            match self.table.get(lease).map(|held| &held.state) {
                Some(State::Running | State::Stopping(_)) => {
                    actions.push(Action::Stop { lease, reason: StopReason::Superseded });
                    self.table.change(lease, State::GivenUp, Moment::MAX);
                    one_is_live = true;
                }
                Some(State::GivenUp) => one_is_live = true,
                Some(State::Waiting(_)) => self.forget(lease, now),
                Some(State::Ended(_)) | None => {}
            }
        }
        one_is_live
    }

    fn start(&mut self, attempt: Attempt, terms: Terms, deadline: Moment, actions: &mut Vec<Action>) {
        self.table.insert(attempt.lease, Held { terms, state: State::Running, due: deadline });
        actions.push(Action::Start { attempt, deadline, grace: terms.grace() });
    }

    /// The way is free for a newer grant of the same task.
    fn start_waiting(&mut self, ended: Lease, now: Moment, actions: &mut Vec<Action>) {
        let waiting = self
            .table
            .of_task(ended.task)
            .find(|(_, held)| matches!(held.state, State::Waiting(_)))
            .map(|(lease, _)| lease);
        if let Some(held) = waiting.and_then(|lease| self.table.remove(lease))
            && let State::Waiting(attempt) = held.state
            && now < held.due
        {
            self.start(attempt, held.terms, held.due, actions);
        }
    }

    /// The lease is over with this outcome; the engine is to hear of it.
    fn conclude(
        &mut self,
        lease: Lease,
        terms: Terms,
        outcome: Outcome,
        now: Moment,
        actions: &mut Vec<Action>,
    ) {
        actions.push(Action::Report { lease, outcome: outcome.clone() });
        self.table.insert(lease, Held { terms, state: State::Ended(outcome), due: now + terms.repeat() });
    }

    fn repeat_report(&mut self, lease: Lease, now: Moment, actions: &mut Vec<Action>) {
        if let Some(held) = self.table.get(lease)
            && let State::Ended(outcome) = &held.state
        {
            actions.push(Action::Report { lease, outcome: outcome.clone() });
            let again = now + held.terms.repeat();
            self.table.postpone(lease, again);
        }
    }

    /// Nothing more will be said about this lease, and nothing about it will be started.
    fn forget(&mut self, lease: Lease, now: Moment) {
        if let Some(held) = self.table.remove(lease) {
            self.settled.insert(lease, now + held.terms.length());
        }
    }

    /// A worker that has nothing says so as often as for one lease of the usual length.
    fn next_heartbeat(&self) -> Moment {
        let usual = Terms::new(LEASE, self.grace).beat();
        self.last_heartbeat + self.table.shortest_beat().unwrap_or(usual).min(usual)
    }
}

/// Nobody asked it to stop, so having been stopped is a failure like any other.
fn unasked(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Stopped => Outcome::failed("it was stopped on its worker"),
        other => other,
    }
}

/// Asked to stop. An end of its own that came first stands; otherwise the reason decides what it means.
fn asked(outcome: Outcome, reason: StopReason) -> Outcome {
    match (outcome, reason) {
        (Outcome::Stopped, StopReason::ShuttingDown) => Outcome::HandedBack,
        (outcome, _) => outcome,
    }
}
