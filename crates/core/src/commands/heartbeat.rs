//! A worker lists what it has. Exactly that is renewed; it is told what to stop; what it should have and has never
//! listed is delivered again.

use crate::core::Core;
use crate::ids::{Name, TaskId};
use crate::nodes::Work;
use crate::protocol::{Answer, Effect, Heartbeat, Lease, Refusal, Renewal, Write};
use crate::time::{Moment, Span};
use std::collections::BTreeMap;

/// Lists from which an attempt may be missing before it is delivered again.
const MISSING_MOST: u8 = 2;

impl Core {
    pub(crate) fn heartbeat(&mut self, heartbeat: Heartbeat, now: Moment) -> Result<Answer, Refusal> {
        let name = heartbeat.worker;
        match self.workers.get(&name) {
            Some(known) if known.incarnation > heartbeat.incarnation => {
                return Err(Refusal::WorkerReplaced(name));
            }
            Some(known) if known.incarnation == heartbeat.incarnation && known.connected => {}
            _ => return Err(Refusal::UnknownWorker(name)),
        }
        // A lease that has run out is gone, even if nobody has noticed yet.
        self.expire_leases(&name, now);
        let (mut renewal, mut by_length) = (Renewal::default(), BTreeMap::<Span, Vec<Lease>>::new());
        for lease in &heartbeat.has {
            match self.renew(*lease, &name, now) {
                Some(length) => {
                    renewal.renewed.push(*lease);
                    by_length.entry(length).or_default().push(*lease);
                }
                None => renewal.stop.push(*lease),
            }
        }
        for (length, leases) in by_length {
            self.write(Write::Renewed { leases, until: now + length });
        }
        self.deliver_missing(&name, &heartbeat.has);
        self.workers.heard_of(&name, now);
        self.schedule_check(&name);
        Ok(Answer::Renewal(renewal))
    }

    /// Renews a lease that is live, on this worker and not to be stopped; says for how long.
    fn renew(&mut self, lease: Lease, worker: &Name, now: Moment) -> Option<Span> {
        let running = self.work_mut(lease.task)?.running_mut()?;
        if running.epoch != lease.epoch || running.worker != *worker || running.stop.is_some() {
            return None;
        }
        running.until = now + running.length;
        running.missing = 0;
        (running.excused, running.unclaimed, running.received) = (false, false, true);
        Some(running.length)
    }

    fn deliver_missing(&mut self, name: &Name, has: &[Lease]) {
        let Some(worker) = self.workers.get(name) else { return };
        let absent = worker.attempts.iter().map(|(&task, &epoch)| Lease { task, epoch });
        let absent: Vec<Lease> = absent.filter(|lease| !has.contains(lease)).collect();
        for lease in absent {
            let Some(running) = self.work_mut(lease.task).and_then(Work::running_mut) else { continue };
            running.missing = running.missing.saturating_add(1);
            // Another start of the worker may have run it: to hand it over now would be a start that nobody counts.
            let is_known = running.unclaimed || running.received;
            if running.missing < MISSING_MOST || running.stop.is_some() || is_known {
                continue;
            }
            running.missing = 0;
            let (length, at) = (running.length, running.until - running.length);
            let number = self.tally(lease.task).started;
            let order = self.resident_order(lease.task);
            let worker = name.clone();
            self.effect(Effect::Deliver { worker, lease, order, length, number, at, ahead: false });
        }
    }

    /// The next time this worker must have been heard of, or one of its leases ends.
    pub(crate) fn schedule_check(&mut self, name: &Name) {
        let Some(worker) = self.workers.get(name) else { return };
        let running = |task: &TaskId| self.work(*task).and_then(Work::running);
        let attempts = worker.attempts.keys().filter_map(running);
        let leases = attempts.map(|running| self.lease_ends(running)).min();
        let silence = worker.connected.then(|| self.silence_ends(worker));
        let at = leases.into_iter().chain(silence).min().unwrap_or(Moment::MAX);
        self.workers.check_at(name, at);
    }
}

#[cfg(test)]
mod tests {
    use crate::ids::{Name, TaskId};
    use crate::protocol::{Answer, Command, Effect, Heartbeat, Refusal, Renewal, Write};
    use crate::state::State;
    use crate::testkit::{Kit, WORKER};
    use crate::time::Span;

    #[test]
    fn only_the_incarnation_that_joined_is_heard() {
        let mut kit = Kit::new(1);
        let (unknown, replaced) =
            (Refusal::UnknownWorker as fn(Name) -> Refusal, Refusal::WorkerReplaced as _);
        for (worker, incarnation, refusal) in
            [("nobody", 1, unknown), (WORKER, 0, replaced), (WORKER, 2, unknown)]
        {
            let heartbeat = Heartbeat { worker: worker.into(), incarnation, has: Vec::new() };
            assert_eq!(kit.refused(Command::Heartbeat(heartbeat)), refusal(worker.into()));
        }
    }

    #[test]
    fn a_lease_that_ran_out_is_not_brought_back() {
        let mut kit = Kit::new(1);
        let job = TaskId::node(kit.job("work"));
        let lease = kit.lease(job);
        // Nobody woke the core meanwhile, and it is not late enough to be patient.
        kit.now = kit.now + Span::seconds(31);
        let stop = Renewal { renewed: Vec::new(), stop: vec![lease] };
        assert_eq!(kit.heartbeat(WORKER, 1, vec![lease]), Answer::Renewal(stop));
        assert!(!kit.core.is_live(lease), "it was taken away");
        assert_eq!(
            kit.state(job),
            Some(State::Waiting),
            "a silent worker gets nothing before it has joined again"
        );
        kit.join(WORKER, 1, 1);
        assert!(kit.lease(job).epoch > lease.epoch, "it was given out anew");
    }

    #[test]
    fn what_is_delivered_again_lasts_no_longer() {
        let mut kit = Kit::new(1);
        let job = TaskId::node(kit.job("work"));
        let (lease, granted) = (kit.lease(job), kit.now);
        for _ in 0..5 {
            kit.now = kit.now + Span::seconds(1);
            kit.heartbeat(WORKER, 1, Vec::new());
            assert_eq!(kit.writes, [], "nothing is renewed");
        }
        let delivered = kit.effects.iter().filter_map(|effect| match effect {
            Effect::Deliver { lease, at, number, .. } => Some((*lease, *at, *number)),
            _ => None,
        });
        assert_eq!(delivered.collect::<Vec<_>>(), [(lease, granted, 1); 3], "after every second list");
    }

    #[test]
    fn leases_of_one_length_are_renewed_in_one_write() {
        let mut kit = Kit::new(2);
        let jobs = [kit.job("work"), kit.job("work")];
        let leases = jobs.map(|job| kit.lease(TaskId::node(job))).to_vec();
        kit.now = kit.now + Span::seconds(5);
        kit.heartbeat(WORKER, 1, leases.clone());
        assert_eq!(kit.writes, [Write::Renewed { leases, until: kit.now + Span::seconds(30) }]);
        assert_eq!(kit.core.next_wake(), Some(kit.now + Span::seconds(30)));
    }

    #[test]
    fn what_was_listed_once_is_never_delivered_again() {
        let mut kit = Kit::new(1);
        let job = TaskId::node(kit.job("work"));
        let lease = kit.lease(job);
        kit.effects.clear();
        kit.heartbeat(WORKER, 1, Vec::new());
        kit.now = kit.now + Span::seconds(5);
        kit.heartbeat(WORKER, 1, vec![lease]);
        for _ in 0..3 {
            kit.now = kit.now + Span::seconds(5);
            kit.heartbeat(WORKER, 1, Vec::new());
        }
        assert_eq!(kit.effects, [], "the worker has given it up, and would begin it a second time");
        assert!(kit.core.is_live(lease));
        kit.advance(Span::seconds(15));
        assert!(kit.lease(job).epoch > lease.epoch, "it is granted anew, which is counted");
    }

    #[test]
    fn what_is_to_stop_may_be_missing_for_ever() {
        let mut kit = Kit::new(1);
        let job = TaskId::node(kit.job("work"));
        kit.apply(Command::Cancel(job));
        kit.effects.clear();
        for _ in 0..300 {
            kit.heartbeat(WORKER, 1, Vec::new());
        }
        assert_eq!(kit.effects, [], "it is not delivered again");
        assert_eq!(kit.state(job), Some(State::Running), "its lease has not ended");
    }
}
