//! What passes between servers and workers: attempts that are handed over, and reports about them. Nothing with an old
//! epoch counts, and no lease is over before its time.

use super::{Handed, Oracle, SLACK, Violation, label_of};
use tidegate_core::ids::{Epoch, Name};
use tidegate_core::model::LEASE;
use tidegate_core::protocol::{Answer, Attempt, Lease, Outcome};
use tidegate_core::time::{Moment, Span};

impl Oracle {
    /// A server sent a granted attempt on its way.
    pub fn handed_over(&mut self, attempt: &Attempt, worker: &Name, at: Moment) {
        let label = label_of(&attempt.order);
        let lease = attempt.lease;
        if self.handed.contains_key(&lease) {
            return;
        }
        let before = self.newest.get(&lease.task).map(|&epoch| Lease { epoch, ..lease });
        self.newest.insert(lease.task, before.map_or(lease.epoch, |before| before.epoch.max(lease.epoch)));
        if let Some(before) = before {
            self.not_before_its_end(before, at);
        }
        self.limits.note_pace(&label, lease.epoch, at);
        self.granted(&label, lease.epoch, at);
        self.handed.insert(
            lease,
            Handed {
                label,
                worker: worker.clone(),
                at,
                length: attempt.length,
                number: attempt.number,
                started: false,
                over: None,
                answered: false,
            },
        );
    }

    pub(super) fn granted(&mut self, label: &str, epoch: Epoch, at: Moment) {
        match self.jobs.get_mut(label) {
            Some(job) => job.first = job.first.or(Some((epoch, at))),
            None => drop(self.first.entry(label.to_owned()).or_insert((epoch, at))),
        }
    }

    /// Whatever a new leader's clock says: a lease that nobody gave back is not over before its time.
    fn not_before_its_end(&mut self, before: Lease, at: Moment) {
        let Some(old) = self.handed.get(&before) else { return };
        // A worker that ended or began anew has nothing of what it was given before.
        let steady = self.turned.get(&old.worker).is_none_or(|turned| *turned + LEASE < old.at);
        if old.over.is_some() || old.answered || !steady {
            return;
        }
        if at < old.at + old.length {
            let what = format!("{} was granted anew {} after {}", old.label, at.since(old.at), old.worker);
            self.limits.pending.push(Violation::new("I15", what, at));
        } else {
            self.test("I15");
        }
    }

    pub fn lease_of(&self, lease: Lease) -> Span {
        self.handed.get(&lease).map_or(LEASE, |handed| handed.length)
    }

    /// A worker reports how an attempt ended.
    pub fn reports(&mut self, lease: Lease, outcome: &Outcome, now: Moment) {
        let Some(handed) = self.handed.get_mut(&lease).filter(|handed| handed.over.is_none()) else { return };
        handed.over = Some(now);
        let label = handed.label.clone();
        let deeds = self.deeds(&label);
        match outcome {
            Outcome::Succeeded(_) => deeds.succeeded = true,
            Outcome::Failed(_) => deeds.failures += 1,
            Outcome::HandedBack => deeds.handed_back += 1,
            Outcome::Stopped => {}
        }
    }

    /// A worker's report was answered. `Done` means that it counted.
    pub fn reported(&mut self, lease: Lease, outcome: &Outcome, answer: &Answer, now: Moment) {
        self.handed.get_mut(&lease).into_iter().for_each(|handed| handed.answered = true);
        if *answer != Answer::Done {
            return;
        }
        let found = self.fenced(lease, now);
        self.limits.pending.extend(found);
        let Some(handed) = self.handed.get(&lease) else { return };
        let label = handed.label.clone();
        // Where nothing waits for a commit the next try may begin before this is heard.
        let stands_again =
            matches!(outcome, Outcome::Failed(_)) && self.newest.get(&lease.task) == Some(&lease.epoch);
        if let Some(job) = self.jobs.get_mut(&label).filter(|_| stands_again) {
            job.again = Some(now + job.spec.pause + SLACK);
        }
        self.deeds(&label).succeeded_told |= matches!(outcome, Outcome::Succeeded(_));
    }

    /// Nothing with an old epoch changes anything.
    fn fenced(&mut self, lease: Lease, now: Moment) -> Option<Violation> {
        let newest = self.newest.get(&lease.task).copied()?;
        let granted = self.handed.get(&Lease { epoch: newest, ..lease }).map(|handed| handed.at);
        // An answer may be long on its way: what was reported before the newer grant may have counted before it. The time
        // of a grant is the engine's, which is a little behind; within a process a report is faster than that.
        let behind = if self.embedded { SLACK } else { Span::ZERO };
        // Under what was handed to nobody nothing ran: it can only be reported as stopped.
        let reported = self.handed.get(&lease)?.over;
        let in_time =
            reported.is_some_and(|reported| granted.is_some_and(|granted| reported < granted + behind));
        if newest > lease.epoch && !in_time {
            let what = format!("a report with epoch {} counted, the task has epoch {newest}", lease.epoch);
            return Some(Violation::new("I7", what, now));
        }
        if self
            .handed
            .get(&lease)
            .is_some_and(|handed| self.deeds.get(&handed.label).is_some_and(|d| d.starts > 1))
        {
            self.test("I7");
        }
        None
    }
}
