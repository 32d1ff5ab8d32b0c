//! Leases that run out, workers that fall silent, and the patience of a leader who was away himself.
//!
//! While nobody leads, nobody can renew anything. Whoever leads next therefore waits for what seems to have run out: as
//! long as its lease lasts, and a third of the default lease at most.

use crate::core::Core;
use crate::ids::{Epoch, Name, TaskId};
use crate::model::LEASE;
use crate::nodes::{Running, Work, WorkState};
use crate::planted::Bug;
use crate::protocol::Write;
use crate::state::State;
use crate::time::{Moment, Span};
use crate::workers::Worker;
use crate::works::Verdict;

impl Core {
    /// A core that was woken much later than it asked for could not hear anybody: it gives the workers a third
    /// of a lease to be heard before it takes anything from them.
    pub(crate) fn notice_lateness(&mut self, now: Moment) {
        if self.workers.next_check().is_some_and(|at| at + LEASE.third() <= now) {
            self.begin_grace(now);
        }
    }

    /// Patience begins. Nobody could renew anything meanwhile, so a worker may have had to give up what it had: losing
    /// what is not renewed from here on is nobody's fault.
    pub(crate) fn begin_grace(&mut self, now: Moment) {
        self.patient_since = now;
        let names: Vec<Name> = self.workers.iter().map(|(name, _)| name.clone()).collect();
        for name in &names {
            self.excuse(name);
            self.schedule_check(name);
        }
    }

    /// When a lease is taken for expired, unless it is renewed.
    pub(crate) fn lease_ends(&self, running: &Running) -> Moment {
        running.until.max(self.patient_since + running.length.min(LEASE.third()))
    }

    /// When a worker is taken for silent, unless it is heard of.
    pub(crate) fn silence_ends(&self, worker: &Worker) -> Moment {
        (worker.seen + LEASE).max(self.patient_since + LEASE.third())
    }

    /// Losing what this worker has now, unless it renews it, is nobody's fault.
    pub(crate) fn excuse(&mut self, name: &Name) {
        self.set_excused(name, |_| true);
    }

    /// The worker was started anew, so it ended with all it had, whether or not that could have been renewed: a task that
    /// ends the process of its engine each time must not be excused each time. Only what this core granted before it
    /// heard of the worker never reached it.
    pub(crate) fn charge(&mut self, name: &Name) {
        let heard = self.workers.get(name).is_some_and(|worker| worker.heard);
        let incarnation = self.incarnation;
        self.set_excused(name, |epoch| !heard && epoch.incarnation == incarnation);
    }

    fn set_excused(&mut self, name: &Name, excused: impl Fn(Epoch) -> bool) {
        let Some(worker) = self.workers.get(name) else { return };
        let attempts: Vec<TaskId> = worker.attempts.keys().copied().collect();
        for task in attempts {
            if let Some(running) = self.work_mut(task).and_then(Work::running_mut) {
                running.excused = excused(running.epoch);
            }
        }
    }

    pub(crate) fn check_workers(&mut self, now: Moment) {
        while let Some(name) = self.workers.due(now) {
            self.expire_leases(&name, now);
            let silent = |worker: &Worker| worker.connected && self.silence_ends(worker) <= now;
            if self.workers.get(&name).is_some_and(silent) {
                self.disconnect(&name, now);
            }
            self.schedule_check(&name);
            debug_assert_ne!(self.workers.due(now), Some(name), "a worker is looked at once, not for ever");
        }
    }

    /// Takes from a worker what it has not renewed in time. One that was silent for as long as a lease lasts gets
    /// nothing new until it is heard again: whatever it got would only be lost too.
    pub(crate) fn expire_leases(&mut self, name: &Name, now: Moment) {
        let Some(worker) = self.workers.get(name) else { return };
        let (seen, connected) = (worker.seen, worker.connected);
        let expired = |task: &TaskId| {
            let running = self.work(*task).and_then(Work::running)?;
            (self.lease_ends(running) <= now).then_some((*task, running.length))
        };
        let expired: Vec<(TaskId, Span)> = worker.attempts.keys().filter_map(expired).collect();
        if connected && expired.iter().any(|(_, length)| seen + *length <= now) {
            self.disconnect(name, now);
        }
        for (task, _) in expired {
            self.lose_attempt(task, now);
        }
    }

    /// An attempt was lost with its worker: its task stands in line again, unless it was to stop, or has lost too
    /// many.
    fn lose_attempt(&mut self, task: TaskId, now: Moment) {
        let Some(running) = self.work(task).and_then(Work::running) else { return };
        if let Some(stop) = running.stop {
            return self.end_stopped(task, stop, now);
        }
        let charged = !running.excused && !self.planted.has(Bug::LossesNotCounted);
        let mut tally = self.tally(task);
        tally.losses += u32::from(charged);
        self.counts.lost += 1;
        let verdict = if tally.losses > self.terms(task.node).max_losses {
            let error = match tally.losses {
                1 => "its worker was lost".to_owned(),
                losses => format!("its workers were lost {losses} times"),
            };
            Verdict::End { state: State::Failed, output: None, error: Some(error) }
        } else {
            Verdict::Again { due: None, error: None }
        };
        self.conclude(task, tally, verdict, now);
    }

    /// The worker gets nothing new; what it has lives on until its leases end.
    fn disconnect(&mut self, name: &Name, now: Moment) {
        let Some(worker) = self.workers.get_mut(name) else { return };
        worker.connected = false;
        let is_empty = worker.attempts.is_empty();
        if let Some(known) = self.admission.slots().get(name.as_str()) {
            let skills = known.skills.clone();
            self.admission.set_worker(name, skills, Default::default(), now);
        }
        if is_empty {
            self.workers.remove(name);
            self.admission.remove_worker(name, now);
        }
        self.write(Write::WorkerGone { worker: name.clone(), at: now });
    }

    /// The worker is gone for good, with everything it had.
    pub(crate) fn lose_worker(&mut self, name: &Name, now: Moment) {
        let Some(worker) = self.workers.get(name) else { return };
        let attempts: Vec<TaskId> = worker.attempts.keys().copied().collect();
        self.disconnect(name, now);
        for task in attempts {
            if self.work(task).is_some_and(|work| matches!(work.at, WorkState::Running(_))) {
                self.lose_attempt(task, now);
            }
        }
        self.workers.remove(name);
        self.admission.remove_worker(name, now);
    }
}

#[cfg(test)]
mod tests {
    use crate::ids::TaskId;
    use crate::model::{LimitsDocument, Pool};
    use crate::protocol::{Answer, Command, Effect, Outcome, Refusal};
    use crate::state::State;
    use crate::testkit::{Kit, WORKER, action};
    use crate::time::Span;

    #[test]
    fn a_silent_worker_gets_nothing_new_and_keeps_what_it_has_until_that_ends() {
        let mut kit = Kit::new(2);
        kit.now = kit.now + Span::seconds(10);
        let job = TaskId::node(kit.job("work"));
        kit.advance(Span::seconds(20));
        assert_eq!(kit.state(job), Some(State::Running), "its lease has ten seconds left");
        let second = TaskId::node(kit.job("work"));
        assert_eq!(kit.state(second), Some(State::Waiting));
        assert!(matches!(kit.heartbeat(WORKER, 1, vec![]), Answer::Refused(Refusal::UnknownWorker(_))));
        kit.succeed(job);
        assert_eq!(kit.core.next_wake(), Some(kit.now + Span::hours(1)), "only `start_within`");
    }

    #[test]
    fn patience_begins_only_when_the_core_was_very_late() {
        for (late, patient) in [(9_999, false), (10_000, true)] {
            let mut kit = Kit::new(1);
            let job = TaskId::node(kit.job("work"));
            let first = kit.lease(job);
            kit.advance(Span::seconds(30) + Span::millis(late));
            assert_eq!(kit.core.is_live(first), patient, "late by {late}");
            if patient {
                let quiet = kit.now + Span::seconds(10);
                assert_eq!(kit.core.next_wake(), Some(quiet));
                kit.advance(Span::seconds(10));
                assert!(!kit.core.is_live(first));
            }
        }
    }

    #[test]
    fn patience_lasts_no_longer_than_the_lease() {
        let mut kit = Kit::new(2);
        let mut brief = action("work", None, &[]);
        brief.policy.pools = vec![("brief".into(), 1)];
        let (lease, origin) = (Some(Span::seconds(2)), Default::default());
        let pool = Pool { name: "brief".into(), slots: 9, lease, origin };
        let limits = LimitsDocument { pools: vec![pool], ..LimitsDocument::default() };
        kit.declare(Vec::new(), vec![brief], Some(limits));
        let brief = TaskId::node(kit.job("work"));
        kit.declare(Vec::new(), vec![action("work", None, &[])], None);
        let long = TaskId::node(kit.job("work"));
        let (brief, long) = (kit.lease(brief), kit.lease(long));
        kit.now = kit.now + Span::seconds(60);
        kit.apply(Command::Wake);
        kit.advance(Span::millis(1_999));
        assert!(kit.core.is_live(brief), "it may still be renewed");
        kit.advance(Span::millis(1));
        assert!(!kit.core.is_live(brief) && kit.core.is_live(long));
        kit.advance(Span::seconds(8));
        assert!(!kit.core.is_live(long));
    }

    #[test]
    fn losses_are_counted_one_by_one_and_patience_is_free() {
        let mut kit = Kit::new(1);
        let job = kit.job("work");
        for incarnation in 2..5 {
            kit.join(WORKER, incarnation, 1);
            assert_eq!(kit.ended(job), None, "three losses are borne");
        }
        let lease = kit.lease(TaskId::node(job));
        kit.advance(Span::seconds(50));
        kit.heartbeat(WORKER, 4, Vec::new());
        kit.advance(Span::seconds(10));
        assert!(!kit.core.is_live(lease), "lost, and nobody's fault");
        assert_eq!(kit.ended(job), None);
        kit.join(WORKER, 5, 1);
        let error = Some("its workers were lost 4 times".to_owned());
        assert_eq!(kit.ended(job), Some((State::Failed, error)));
    }

    #[test]
    fn time_never_goes_back() {
        let mut kit = Kit::new(1);
        let first = kit.core.now();
        kit.now = first - Span::seconds(5);
        kit.apply(Command::Wake);
        assert_eq!(kit.core.now(), first);
    }

    #[test]
    fn a_job_is_bound_by_what_its_action_says() {
        let mut kit = Kit::new(1);
        let mut careful = action("work", None, &[]);
        (careful.policy.timeout, careful.policy.max_losses) = (Some(Span::seconds(5)), 0);
        kit.declare(Vec::new(), vec![careful], None);
        let job = kit.job("work");
        let lease = kit.lease(TaskId::node(job));
        kit.advance(Span::seconds(5));
        assert!(kit.effects.contains(&Effect::Stop { worker: WORKER.into(), lease }), "it ran long enough");
        kit.finish(lease, Outcome::Stopped);
        assert_eq!(kit.ended(job).map(|(state, _)| state), Some(State::TimedOut));
        let job = kit.job("work");
        kit.join(WORKER, 2, 1);
        assert_eq!(kit.ended(job), Some((State::Failed, Some("its worker was lost".to_owned()))));
    }
}
