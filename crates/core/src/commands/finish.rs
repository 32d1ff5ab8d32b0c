//! A worker reports how an attempt ended. Only the live lease counts.

use crate::core::Core;
use crate::ids::TaskId;
use crate::nodes::Work;
use crate::planted::Bug;
use crate::protocol::{Answer, Finish, Lease, Outcome, Payload, Refusal, Stop, Tally};
use crate::state::State;
use crate::time::Moment;
use crate::works::Verdict;

impl Core {
    pub(crate) fn finish(&mut self, finish: Finish, now: Moment) -> Result<Answer, Refusal> {
        let Lease { task, epoch } = finish.lease;
        let fenced = !self.planted.has(Bug::FencingOff);
        let live =
            self.work(task).and_then(Work::running).filter(|running| !fenced || running.epoch == epoch);
        let Some(running) = live else { return Err(Refusal::Stale) };
        let stop = running.stop;
        if let Some(slots) = finish.offer {
            self.set_slots(&finish.worker, slots, now);
        }
        match (finish.outcome.within_bounds(), stop) {
            // A finish that arrives before the stop is confirmed wins.
            (Outcome::Succeeded(output), _) => {
                let tally = self.tally(task);
                // An output that says nothing is as good as none, and most have none.
                let output = Some(output).filter(|output| !output.is_null());
                let verdict = Verdict::End { state: State::Succeeded, output, error: None };
                self.conclude(task, tally, verdict, now);
            }
            (Outcome::Failed { .. } | Outcome::Stopped | Outcome::HandedBack, Some(stop)) => {
                self.end_stopped(task, stop, now);
            }
            (Outcome::Failed { error, output }, None) => self.failed(task, State::Failed, error, output, now),
            (Outcome::Stopped | Outcome::HandedBack, None) => {
                if self.planted.has(Bug::HandBackCharged) {
                    self.failed(task, State::Failed, "handed back".to_owned(), None, now);
                } else {
                    let tally = self.tally(task);
                    self.conclude(task, tally, Verdict::Again { due: None, error: None }, now);
                }
            }
        }
        Ok(Answer::Done)
    }

    pub(crate) fn tally(&self, task: TaskId) -> Tally {
        self.work(task).map(|work| work.tally).unwrap_or_default()
    }

    /// An attempt that was told to stop has: a timed-out one may be tried again, any other ends its task.
    pub(crate) fn end_stopped(&mut self, task: TaskId, stop: Stop, now: Moment) {
        match stop {
            Stop::TimedOut => {
                self.failed(task, State::TimedOut, "ran longer than its timeout".to_owned(), None, now)
            }
            _ => {
                let tally = self.tally(task);
                self.conclude(
                    task,
                    tally,
                    Verdict::End { state: stop.end(), output: None, error: None },
                    now,
                );
            }
        }
    }

    /// One more failed try: again after a pause, or the end.
    fn failed(&mut self, task: TaskId, state: State, error: String, output: Option<Payload>, now: Moment) {
        let retry = self.terms(task.node).retry;
        let mut tally = self.tally(task);
        tally.failures += 1;
        let verdict = if tally.failures < retry.attempts {
            Verdict::Again { due: Some(now + retry.pause(tally.failures)), error: Some(error) }
        } else {
            Verdict::End { state, output, error: Some(error) }
        };
        self.conclude(task, tally, verdict, now);
    }
}

#[cfg(test)]
mod tests {
    use crate::admission::SlotCounts;
    use crate::ids::{Epoch, NodeId, TaskId};
    use crate::protocol::{
        Answer, Command, Finish, LARGEST_PAYLOAD, Lease, Outcome, Payload, Refusal, Write,
    };
    use crate::state::State;
    use crate::testkit::{Kit, WORKER};
    use crate::time::Span;

    fn finish(lease: Lease, outcome: Outcome) -> Command {
        Command::Finish(Finish { worker: WORKER.into(), lease, outcome, offer: None })
    }

    #[test]
    fn only_the_live_lease_counts_and_only_once() {
        let mut kit = Kit::new(1);
        let (job, waiting) = (TaskId::node(kit.job("work")), TaskId::node(kit.job("work")));
        let lease = kit.lease(job);
        let good = || Outcome::Succeeded(Payload::null());
        let others = [
            Lease { epoch: Epoch { grant: lease.epoch.grant + 1, ..lease.epoch }, ..lease },
            Lease { epoch: Epoch { incarnation: 0, ..lease.epoch }, ..lease },
            Lease { task: waiting, ..lease },
            Lease { task: TaskId::item(job.node, 0), ..lease },
            Lease { task: TaskId::node(NodeId(99)), ..lease },
        ];
        for other in others {
            assert_eq!(kit.refused(finish(other, good())), Refusal::Stale, "{other:?}");
            assert!(!kit.core.is_live(other));
        }
        assert!(kit.core.is_live(lease));
        kit.succeed(job);
        assert_eq!(kit.refused(finish(lease, good())), Refusal::Stale);
    }

    #[test]
    fn an_offer_counts_with_its_report_or_not_at_all() {
        let mut kit = Kit::new(1);
        let job = TaskId::node(kit.job("work"));
        let second = kit.job("work");
        let lease = Lease { epoch: Epoch { incarnation: 0, grant: 0 }, task: job };
        let offer = Some(SlotCounts { process: 2, io: 2 });
        let late = Finish { worker: WORKER.into(), lease, outcome: Outcome::Stopped, offer };
        assert_eq!(kit.apply(Command::Finish(late)), Answer::Refused(Refusal::Stale));
        assert_eq!(kit.state(TaskId::node(second)), Some(State::Waiting), "a refusal changes nothing");
        let lease = kit.lease(job);
        let live = Finish { worker: WORKER.into(), lease, outcome: Outcome::Stopped, offer };
        assert_eq!(kit.apply(Command::Finish(live)), Answer::Done);
        assert_eq!(kit.state(TaskId::node(second)), Some(State::Running));
    }

    #[test]
    fn one_that_stopped_without_being_told_is_tried_again() {
        let mut kit = Kit::new(1);
        let job = TaskId::node(kit.job("work"));
        let first = kit.lease(job);
        assert_eq!(kit.finish(first, Outcome::Stopped), Answer::Done);
        let second = kit.lease(job);
        assert!(second.epoch > first.epoch);
        let failed = Outcome::Failed { error: "boom".to_owned(), output: None };
        assert_eq!(kit.finish(second, failed), Answer::Done);
        assert_eq!(kit.ended(job.node), Some((State::Failed, Some("boom".to_owned()))));
    }

    #[test]
    fn what_the_last_try_put_out_is_kept_although_it_failed() {
        let mut kit = Kit::new(1);
        let job = TaskId::node(kit.job("work"));
        let lease = kit.lease(job);
        let said = Payload::new(r#"{"exit":3}"#);
        kit.finish(lease, Outcome::Failed { error: "boom".to_owned(), output: Some(said.clone()) });
        let kept =
            |write: &Write| matches!(write, Write::Ended { output: Some(output), .. } if *output == said);
        assert!(kit.writes.iter().any(kept), "{:?}", kit.writes);
    }

    #[test]
    fn an_output_that_is_too_large_is_a_failure_whoever_reports_it() {
        let mut kit = Kit::new(1);
        let job = TaskId::node(kit.job("work"));
        let large = Payload::new(vec![b'1'; LARGEST_PAYLOAD + 1]);
        kit.finish(kit.lease(job), Outcome::Succeeded(large));
        let error = "its output: it is too large, it has 16.1 MiB and 16 MiB are allowed";
        assert_eq!(kit.ended(job.node), Some((State::Failed, Some(error.to_owned()))));
    }

    #[test]
    fn a_report_of_who_is_gone_brings_no_slots() {
        let mut kit = Kit::new(1);
        kit.now = kit.now + Span::seconds(10);
        let job = TaskId::node(kit.job("work"));
        kit.advance(Span::seconds(20));
        assert_eq!(kit.core.incarnation(&WORKER.into()), None, "it was silent for as long as a lease");
        let offer = Some(SlotCounts { process: 9, io: 9 });
        let (lease, outcome) = (kit.lease(job), Outcome::Succeeded(Payload::null()));
        let finish = Finish { worker: WORKER.into(), lease, outcome, offer };
        assert_eq!(kit.apply(Command::Finish(finish)), Answer::Done);
        assert_eq!(kit.ended(job.node), Some((State::Succeeded, None)));
        let joined = |write: &Write| matches!(write, Write::WorkerJoined(_));
        assert!(!kit.writes.iter().any(joined), "it has to join again");
    }
}
