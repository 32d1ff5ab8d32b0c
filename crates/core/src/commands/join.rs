//! A worker joins, or comes back. A new incarnation has nothing of the old one's.

use crate::core::Core;
use crate::ids::Name;
use crate::model::LEASE;
use crate::names;
use crate::nodes::Work;
use crate::protocol::{Answer, Effect, Join, Lease, Refusal, WorkerRow, Write};
use crate::time::Moment;
use crate::workers::{UNKNOWN, Worker};

impl Core {
    pub(crate) fn join(&mut self, join: Join, now: Moment) -> Result<Answer, Refusal> {
        names::of_worker(&join.worker)?;
        let name = join.worker;
        // Also one that is not heard of any more may still run what it has.
        if self.workers.get(&name).is_some_and(|known| known.incarnation > join.incarnation) {
            return Err(Refusal::WorkerReplaced(name));
        }
        // Of a worker that was gone before this core was loaded nobody knows which start it was. If it is this one,
        // it lists what it has; if not, its leases end by themselves.
        let is_it = |known: &Worker| [join.incarnation, UNKNOWN].contains(&known.incarnation);
        if self.workers.get(&name).is_some_and(is_it) {
            if let Some(worker) = self.workers.get_mut(&name) {
                (worker.incarnation, worker.connected) = (join.incarnation, true);
            }
            self.repeat_stops(&name);
        } else {
            self.charge(&name);
            self.lose_worker(&name, now);
            self.workers.insert(&name, join.incarnation, now, now + LEASE);
        }
        self.workers.heard_of(&name, now);
        self.admission.set_worker(&name, join.skills.clone(), join.slots, now);
        self.schedule_check(&name);
        self.write(Write::WorkerJoined(Box::new(WorkerRow {
            worker: name,
            incarnation: join.incarnation,
            skills: join.skills,
            slots: join.slots,
        })));
        Ok(Answer::Done)
    }

    /// Whoever comes back may not have heard what to stop: another led when it was said, or the way was lost.
    fn repeat_stops(&mut self, name: &Name) {
        let attempts = self.workers.get(name).into_iter().flat_map(|worker| &worker.attempts);
        let is_to_stop = |lease: &Lease| {
            self.work(lease.task).and_then(Work::running).is_some_and(|running| running.stop.is_some())
        };
        let leases = attempts.map(|(&task, &epoch)| Lease { task, epoch });
        let stops: Vec<Lease> = leases.filter(is_to_stop).collect();
        for lease in stops {
            self.effect(Effect::Stop { worker: name.clone(), lease });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ids::TaskId;
    use crate::protocol::{Answer, Command, Effect};
    use crate::testkit::{Kit, WORKER};
    use crate::time::Span;

    #[test]
    fn a_join_that_was_long_on_its_way_takes_nothing_from_who_came_after() {
        let mut kit = Kit::new(1);
        kit.join(WORKER, 3, 1);
        let job = TaskId::node(kit.job("work"));
        let lease = kit.lease(job);
        kit.join(WORKER, 2, 9);
        assert_eq!(kit.writes, []);
        assert!(kit.core.is_live(lease));
    }

    #[test]
    fn who_comes_back_is_told_again_what_to_stop() {
        let mut kit = Kit::new(2);
        let [stopped, other] = [kit.job("work"), kit.job("work")].map(TaskId::node);
        let (lease, _) = (kit.lease(stopped), kit.lease(other));
        kit.apply(Command::Cancel(stopped));
        kit.effects.clear();
        kit.join(WORKER, 1, 2);
        let stops: Vec<&Effect> =
            kit.effects.iter().filter(|effect| matches!(effect, Effect::Stop { .. })).collect();
        assert_eq!(stops, [&Effect::Stop { worker: WORKER.into(), lease }]);
    }

    #[test]
    fn nor_from_who_is_not_heard_of_and_may_still_run_something() {
        let mut kit = Kit::new(1);
        kit.join(WORKER, 3, 2);
        kit.job("work");
        kit.advance(Span::seconds(20));
        let second = TaskId::node(kit.job("work"));
        let lease = kit.lease(second);
        kit.advance(Span::seconds(10));
        assert!(matches!(kit.heartbeat(WORKER, 3, Vec::new()), Answer::Refused(_)), "it was silent too long");
        kit.join(WORKER, 2, 9);
        assert_eq!(kit.writes, []);
        assert!(kit.core.is_live(lease));
    }

    #[test]
    fn who_comes_back_keeps_what_it_has_and_is_heard_of() {
        let mut kit = Kit::new(1);
        let job = TaskId::node(kit.job("work"));
        let lease = kit.lease(job);
        kit.now = kit.now + Span::seconds(20);
        kit.heartbeat(WORKER, 1, vec![lease]);
        kit.now = kit.now + Span::seconds(20);
        kit.join(WORKER, 1, 3);
        assert!(kit.core.is_live(lease));
        kit.advance(Span::seconds(9));
        assert!(kit.core.is_live(lease), "its lease has one second left");
        assert!(matches!(kit.heartbeat(WORKER, 1, vec![lease]), Answer::Renewal(_)));
        kit.advance(Span::seconds(29));
        assert!(matches!(kit.heartbeat(WORKER, 1, vec![lease]), Answer::Renewal(_)), "it is still connected");
        let (second, third) = (kit.job("work"), kit.job("work"));
        assert_ne!(kit.lease(TaskId::node(second)), kit.lease(TaskId::node(third)), "it has three slots now");
    }

    #[test]
    fn joining_again_is_being_heard_of() {
        let mut kit = Kit::new(1);
        kit.advance(Span::seconds(20));
        kit.join(WORKER, 1, 1);
        kit.advance(Span::seconds(11));
        assert!(matches!(kit.heartbeat(WORKER, 1, Vec::new()), Answer::Renewal(_)), "it is still connected");
    }
}
