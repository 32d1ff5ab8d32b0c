//! Time has passed: what is due is done, in slices.

use crate::admission::Rank;
use crate::catalog::Source;
use crate::core::{Core, SLICE};
use crate::crowd::Crowd;
use crate::ids::TaskId;
use crate::model::WhenBusy;
use crate::nodes::{Kind, Node, RunState, WorkState};
use crate::protocol::{Answer, Refusal, Stop, Write};
use crate::state::State;
use crate::time::Moment;
use crate::timers::Alarm;

impl Core {
    pub(crate) fn wake(&mut self, now: Moment) -> Result<Answer, Refusal> {
        for _ in 0..SLICE {
            let Some((task, alarm)) = self.timers.pop_due(now) else { break };
            match alarm {
                Alarm::Due => self.come_due(task, now),
                Alarm::StartBy => self.expire_unstarted(task, now),
                Alarm::Timeout => self.stop_running(task, Stop::TimedOut, now),
                Alarm::Deadline => self.stop_run(task.node, Stop::TimedOut, now),
            }
        }
        while self.override_ends.first().is_some_and(|(at, _)| *at <= now)
            && let Some((_, key)) = self.override_ends.pop_first()
        {
            self.change_setting(key, None, now);
        }
        self.check_workers(now);
        Ok(Answer::Done)
    }

    fn come_due(&mut self, task: TaskId, now: Moment) {
        match self.nodes.get(&task.node) {
            Some(Node::Run(run)) if matches!(run.state, RunState::Scheduled(_)) => {
                self.root_is_due(task, now)
            }
            Some(Node::Job(job)) if job.work.tally.started == 0 => self.root_is_due(task, now),
            Some(Node::Step(step)) if task.index().is_none() && matches!(step.kind, Kind::Wait { .. }) => {
                self.end_step(task.node, State::Succeeded, None, None, now);
            }
            Some(_) => self.retry_is_due(task, now),
            None => {}
        }
    }

    /// A delayed root gets its place in line when it comes due, and meets what any newcomer meets.
    fn root_is_due(&mut self, task: TaskId, now: Moment) {
        let (source, priority, when_busy) = match self.nodes.get(&task.node) {
            Some(Node::Job(job)) => {
                let source = Source::Attempt(self.job_source(&job.action, &job.key, job.queue()));
                (source, job.priority, self.catalog.action(&job.action).when_busy)
            }
            Some(Node::Run(run)) => {
                let source = self.run_source(&run.plan.flow.name, &run.key, &run.tags);
                (source, run.priority, run.plan.flow.when_busy)
            }
            _ => return,
        };
        let root = self.next_number();
        let root = match self.meet(&source, when_busy, Rank::new(priority, root, task), now) {
            Ok(crowd) => self.give_way(crowd, now).unwrap_or(root),
            Err(refusal) => {
                return self.end_unstarted(task.node, State::Refused, Some(refusal.to_string()), now);
            }
        };
        match self.nodes.get_mut(&task.node) {
            Some(Node::Job(job)) => job.root = root,
            Some(Node::Run(run)) => run.root = root,
            _ => {}
        }
        self.write(Write::Ranked { node: task.node, priority, root });
        self.write(Write::Entered { node: task.node, state: State::Waiting, at: now });
        let class = self.class_for(source);
        self.ask_for_root(task.node, class, now);
    }

    fn meet(&self, source: &Source, when_busy: WhenBusy, rank: Rank, now: Moment) -> Result<Crowd, Refusal> {
        match self.refusal(source, now) {
            Some(refusal) => Err(refusal),
            None => self.crowd(source, when_busy, rank, now),
        }
    }

    fn retry_is_due(&mut self, task: TaskId, now: Moment) {
        let Some(work) = self.work(task) else { return };
        if !matches!(work.at, WorkState::Scheduled(_)) {
            return;
        }
        let tally = work.tally;
        let source = self.source_of(task);
        self.queue_again(task, source);
        if let Some(work) = self.work_mut(task) {
            work.since = now;
        }
        let state = State::Waiting;
        self.write(Write::Moved { task, state, due: None, tally, error: None, at: now });
    }

    /// It should have started by now. What has started, or is over, took its alarm with it.
    fn expire_unstarted(&mut self, task: TaskId, now: Moment) {
        let error = Some("waited longer than `start_within`".to_owned());
        match self.nodes.get_mut(&task.node) {
            Some(Node::Job(job)) => job.start_by = None,
            Some(Node::Step(step)) => {
                step.start_by = None;
                if !step.entered {
                    let class = step.class;
                    if let Some(class) = class {
                        self.withdraw(task, class, now);
                    }
                    return self.end_step(task.node, State::Expired, None, error, now);
                }
            }
            _ => {}
        }
        self.end_waiting(task, State::Expired, error, now);
    }
}

#[cfg(test)]
mod tests {
    use crate::admission::{LimitKey, Skills, SlotCounts};
    use crate::core::Core;
    use crate::ids::{RunId, TaskId};
    use crate::model::{Flow, RatePolicy, Step, WhenExhausted, Work};
    use crate::protocol::{
        Answer, Command, Effect, Evaluation, Join, LimitValue, Payload, SetLimit, Submission, Submit,
    };
    use crate::testkit::{Kit, doing, flow, job, rendered, step, template};
    use crate::time::{Moment, Span};

    fn submit(id: u128, action: &str) -> Command {
        let what = Submission::Job { action: action.into(), key: None, order: Payload::null() };
        Command::Submit(Submit {
            id: RunId(id),
            what,
            tags: vec![],
            priority: 0,
            due: None,
            idempotency: None,
        })
    }

    #[test]
    fn whatever_comes_first_after_a_rate_has_refilled_starts_who_waits_for_it() {
        let mut core = Core::new(1);
        let now = Moment(1_000_000);
        let policy = RatePolicy { limit: 1, per: Span::seconds(1), burst: 1, when_busy: WhenExhausted::Wait };
        let key = LimitKey::Rate { of: "mail".into(), key: None };
        let value = Some(LimitValue::Rate(policy));
        core.apply(Command::SetLimit(SetLimit { key, value, by: "me".into(), until: None }), now);
        let slots = SlotCounts { process: 9, io: 9 };
        let skills = Skills { functions: vec!["mail".into(), "other".into()], ..Skills::plain() };
        core.apply(Command::Join(Join { worker: "w".into(), incarnation: 1, skills, slots }), now);
        core.apply(submit(1, "mail"), now);
        core.apply(submit(2, "mail"), now);
        core.take_output();
        core.apply(submit(3, "other"), now + Span::seconds(2));
        let effects = core.take_output().effects;
        let started = effects.iter().filter(|effect| matches!(effect, Effect::Deliver { .. })).count();
        assert_eq!(started, 2, "{effects:?}");
    }

    #[test]
    fn what_is_over_leaves_no_alarm_behind() {
        let mut kit = Kit::new(0);
        let hasty = Step { start_within: Some(Span::minutes(1)), ..step("hasty") };
        let wait = doing("wait", Work::Wait(template()));
        let inner = Flow { timeout: Some(Span::hours(2)), ..flow("one", vec![hasty, wait]) };
        kit.declare(vec![inner], Vec::new(), None);
        let run = kit.run("one");
        kit.answer_step(run, 0, Evaluation::Order(rendered(None)));
        kit.answer_step(run, 1, Evaluation::Until(kit.now + Span::minutes(5)));
        let waiting = kit.job("work");
        let delayed = Submit { due: Some(kit.now + Span::minutes(9)), ..kit.submit(job("work")) };
        let delayed = kit.accepted(delayed);
        assert!(kit.core.timers.next().is_some());
        for node in [run, waiting, delayed] {
            assert_eq!(kit.apply(Command::Cancel(TaskId::node(node))), Answer::Done);
        }
        assert!(kit.core.is_idle());
        assert_eq!(kit.core.timers.next(), None);
    }
}
