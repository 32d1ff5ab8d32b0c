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
        if let Some(slots) = finish.offer {
            self.set_slots(&finish.worker, slots, now);
        }
        let Lease { task, epoch } = finish.lease;
        let fenced = !self.planted.has(Bug::FencingOff);
        let live =
            self.work(task).and_then(Work::running).filter(|running| !fenced || running.epoch == epoch);
        let Some(running) = live else { return Err(Refusal::Stale) };
        let stop = running.stop;
        match (finish.outcome, stop) {
            // A finish that arrives before the stop is confirmed wins.
            (Outcome::Succeeded(output), _) => {
                let tally = self.tally(task);
                let verdict = Verdict::End { state: State::Succeeded, output: Some(output), error: None };
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
