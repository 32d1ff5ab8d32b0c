//! A worker reports how an attempt ended. Only the live lease counts.

use crate::core::Core;
use crate::digest::Digest;
use crate::ids::TaskId;
use crate::model::Cause;
use crate::nodes::Work;
use crate::planted::Bug;
use crate::protocol::{Answer, Failure, Finish, Lease, Outcome, Refusal, Stop, Tally};
use crate::state::State;
use crate::time::{Moment, Span};
use crate::works::Verdict;

/// How long others can make us wait before the next try: long enough for a quota of a day.
const LONGEST_ASKED: Span = Span::hours(24);

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
            (Outcome::Failed(_) | Outcome::Stopped | Outcome::HandedBack, Some(stop)) => {
                self.end_stopped(task, stop, now);
            }
            (Outcome::Failed(failure), None) => self.failed(task, State::Failed, failure, now),
            (Outcome::Stopped | Outcome::HandedBack, None) => {
                if self.planted.has(Bug::HandBackCharged) {
                    self.failed(task, State::Failed, Failure::new("handed back"), now);
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
                let failure = Failure::new("ran longer than its timeout").caused_by(Cause::TIMEOUT);
                self.failed(task, State::TimedOut, failure, now);
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
    fn failed(&mut self, task: TaskId, state: State, failure: Failure, now: Moment) {
        let Failure { error, output, cause, retry_after } = failure;
        let mut tally = self.tally(task);
        tally.failures += 1;
        let retry = self.terms(task.node).retry;
        let verdict = if tally.failures < retry.attempts && retry.is_for(cause.as_ref()) {
            let pause = retry.pause(tally.failures, chance(task, tally.failures));
            let due = now + pause.max(retry_after.unwrap_or(Span::ZERO).min(LONGEST_ASKED));
            Verdict::Again { due: Some(due), error: Some(error) }
        } else {
            Verdict::End { state, output, error: Some(error) }
        };
        self.conclude(task, tally, verdict, now);
    }
}

/// Differs between tasks, and between the tries of one; the same after a restart.
fn chance(task: TaskId, failures: u32) -> u64 {
    let mut digest = Digest::new();
    digest.number(task.node.0);
    digest.number(task.index().map_or(0, |index| u64::from(index) + 1));
    digest.number(u64::from(failures));
    digest.finish()
}

#[cfg(test)]
mod tests {
    use crate::admission::SlotCounts;
    use crate::ids::{Epoch, NodeId, TaskId};
    use crate::model::{Action, ActionPolicy, Cause, Retry, Step};
    use crate::protocol::{
        Answer, Command, Evaluation, Failure, Finish, LARGEST_OUTPUT, Lease, Outcome, Payload, Refusal, Write,
    };
    use crate::state::State;
    use crate::testkit::{Kit, WORKER, flow, rendered, step};
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
        let failed = Outcome::failed("boom");
        assert_eq!(kit.finish(second, failed), Answer::Done);
        assert_eq!(kit.ended(job.node), Some((State::Failed, Some("boom".to_owned()))));
    }

    #[test]
    fn what_the_last_try_put_out_is_kept_although_it_failed() {
        let mut kit = Kit::new(1);
        let job = TaskId::node(kit.job("work"));
        let lease = kit.lease(job);
        let said = Payload::new(r#"{"exit":3}"#);
        kit.finish(lease, Outcome::Failed(Failure { output: Some(said.clone()), ..Failure::new("boom") }));
        let kept =
            |write: &Write| matches!(write, Write::Ended { output: Some(output), .. } if *output == said);
        assert!(kit.writes.iter().any(kept), "{:?}", kit.writes);
    }

    #[test]
    fn an_output_that_is_too_large_is_a_failure_whoever_reports_it() {
        let mut kit = Kit::new(1);
        let job = TaskId::node(kit.job("work"));
        let large = Payload::new(vec![b'1'; LARGEST_OUTPUT + 1]);
        kit.finish(kit.lease(job), Outcome::Succeeded(large));
        let error = "its output: it is too large, it has 64.1 MiB and 64 MiB are allowed";
        assert_eq!(kit.ended(job.node), Some((State::Failed, Some(error.to_owned()))));
    }

    #[test]
    fn only_what_may_get_better_is_tried_again_and_not_before_somebody_asked() {
        let mut kit = Kit::new(1);
        let retry = Retry { attempts: 4, on: vec![Cause("status:5xx".into())], ..Retry::ONCE };
        let policy = ActionPolicy { retry, ..ActionPolicy::silent("work".into()) };
        kit.declare(Vec::new(), vec![Action::function(policy)], None);
        let job = TaskId::node(kit.job("work"));
        let busy =
            Failure { retry_after: Some(Span::seconds(5)), ..Failure::new("busy").caused_by("status:503") };
        kit.finish(kit.lease(job), Outcome::Failed(busy));
        kit.advance(Span::seconds(4));
        assert_eq!(kit.state(job), Some(State::Scheduled), "the usual pause of a second is over");
        kit.advance(Span::seconds(1));
        let closed = Failure { retry_after: Some(Span(u64::MAX)), ..Failure::new("closed") };
        kit.finish(kit.lease(job), Outcome::Failed(closed.caused_by("status:503")));
        kit.advance(Span::hours(24));
        let wrong = Failure::new("no such page").caused_by("status:404");
        kit.finish(kit.lease(job), Outcome::Failed(wrong));
        assert_eq!(kit.ended(job.node), Some((State::Failed, Some("no such page".to_owned()))));
    }

    #[test]
    fn a_step_says_what_its_action_does_not_and_the_other_way_round() {
        let mut kit = Kit::new(1);
        let retry = |attempts| Retry { attempts, ..Retry::ONCE };
        let policy = ActionPolicy { retry: retry(2), max_losses: 7, ..ActionPolicy::silent("work".into()) };
        let call = |name, retry| Step { retry, ..step(name) };
        let steps = vec![call("silent", None), call("loud", Some(retry(5)))];
        kit.declare(vec![flow("demo", steps)], vec![Action::function(policy)], None);
        let run = kit.run("demo");
        (0..2).for_each(|step| drop(kit.answer_step(run, step, Evaluation::Order(rendered(None)))));
        let terms = |index| kit.core.terms(run.step(index));
        assert_eq!((terms(0).retry.attempts, terms(0).max_losses), (2, 7));
        assert_eq!((terms(1).retry.attempts, terms(1).max_losses), (5, 7));
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
