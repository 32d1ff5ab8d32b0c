//! A worker lists what it has. Exactly that is renewed; it is told what to stop; what it should have and does not
//! is delivered again.

use crate::core::Core;
use crate::ids::{Name, TaskId};
use crate::model::LEASE;
use crate::nodes::Work;
use crate::protocol::{Answer, Effect, Heartbeat, Lease, Refusal, Renewal, Write};
use crate::time::{Moment, Span};
use std::collections::BTreeMap;

/// Lists from which an attempt may be missing before it is delivered again.
const MISSING_MOST: u8 = 2;

impl Core {
    pub(crate) fn heartbeat(&mut self, heartbeat: Heartbeat, now: Moment) -> Result<Answer, Refusal> {
        let name = heartbeat.worker;
        let known = self
            .workers
            .get(&name)
            .is_some_and(|worker| worker.incarnation == heartbeat.incarnation && worker.connected);
        if !known {
            return Err(Refusal::UnknownWorker(name));
        }
        // A lease that has run out is gone, even if nobody has noticed yet.
        if now >= self.quiet_until {
            self.expire_leases(&name, now);
        }
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
        if let Some(worker) = self.workers.get_mut(&name) {
            worker.seen = now;
        }
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
        running.excused = false;
        Some(running.length)
    }

    fn deliver_missing(&mut self, name: &Name, has: &[Lease]) {
        let Some(worker) = self.workers.get(name) else { return };
        let absent = worker.attempts.iter().map(|(&task, &epoch)| Lease { task, epoch });
        let absent: Vec<Lease> = absent.filter(|lease| !has.contains(lease)).collect();
        for lease in absent {
            let Some(running) = self.work_mut(lease.task).and_then(Work::running_mut) else { continue };
            running.missing += 1;
            if running.missing < MISSING_MOST || running.stop.is_some() {
                continue;
            }
            running.missing = 0;
            let (length, at) = (running.length, running.until - running.length);
            let number = self.tally(lease.task).started;
            let order = self.resident_order(lease.task);
            self.effect(Effect::Deliver { worker: name.clone(), lease, order, length, number, at });
        }
    }

    /// The next time this worker must have been heard of, or one of its leases ends.
    pub(crate) fn schedule_check(&mut self, name: &Name) {
        let Some(worker) = self.workers.get(name) else { return };
        let until = |task: &TaskId| self.work(*task).and_then(Work::running).map(|running| running.until);
        let leases = worker.attempts.keys().filter_map(until).min();
        let silence = worker.connected.then(|| worker.seen + LEASE);
        let at = leases.into_iter().chain(silence).min().unwrap_or(Moment::MAX);
        self.workers.check_at(name, at);
    }
}
