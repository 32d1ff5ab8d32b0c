//! What has ended is done again, as a new run or job. A run goes on where the old one ended: steps that ended well are
//! reused, by reference. It is a submission like any other, of the version of the flow that the old one ran on.

use super::submit::Again;
use crate::core::Core;
use crate::ids::{Name, RunId};
use crate::model::{QUEUE_TAG, RETRY_TAG};
use crate::names;
use crate::progress::reusable;
use crate::protocol::{Answer, Body, NodeRow, Past, Refusal, Retry, Submission, Submit};
use crate::state::State;
use crate::time::Moment;

impl Core {
    pub(crate) fn retry(&mut self, retry: Retry, now: Moment) -> Result<Answer, Refusal> {
        let Retry { id, of, from_start, queue, past } = retry;
        if let Some(&node) = self.by_id.get(&id) {
            return Ok(Answer::Accepted { node, again: true });
        }
        if self.node_of(of).is_some() {
            return Err(Refusal::StillOpen(of));
        }
        let Past { root, steps } = *past.ok_or(Refusal::UnknownRun(of))?;
        check(of, &root, from_start)?;
        let tags = tags(root.body.tags(), of, queue);
        // Only of what was too large to be accepted nothing is kept.
        let payload = root.payload.ok_or(Refusal::NeverAccepted(of))?;
        let (what, again) = match root.body {
            Body::Job(job) => (Submission::Job { action: job.action, key: job.key, order: payload }, None),
            Body::Run(run) => {
                let plan = self.catalog.flow(run.flow.as_str(), run.version);
                let (_, plan) =
                    plan.ok_or_else(|| Refusal::VersionGone { run: of, flow: run.flow.clone() })?;
                let reused = if from_start { Vec::new() } else { reusable(&plan.flow, &steps) };
                let what = Submission::Run { flow: run.flow, key: run.key, inputs: payload };
                (what, Some(Again { version: run.version, reused }))
            }
            Body::Step(_) | Body::ItemRun(_) => return Err(Refusal::UnknownRun(of)),
        };
        let submit = Submit { id, what, tags, priority: root.priority, due: None, idempotency: None };
        names::of_submission(&submit)?;
        self.admit(submit, again, now)
    }
}

/// Whether there is anything to retry.
fn check(of: RunId, root: &NodeRow, from_start: bool) -> Result<(), Refusal> {
    match root.life.state {
        State::Succeeded if !from_start => Err(Refusal::NothingToRetry(of)),
        // What was left in a mailbox and refused there may never have been rendered.
        State::Refused if root.life.ended == Some(root.accepted) => Err(Refusal::NeverAccepted(of)),
        state if !state.is_end() => Err(Refusal::StillOpen(of)),
        _ => Ok(()),
    }
}

/// The same tags, and what it is a retry of.
fn tags(before: &[(Name, Name)], of: RunId, queue: Option<Name>) -> Vec<(Name, Name)> {
    let own = [(RETRY_TAG, Some(Name::from(of.to_string()))), (QUEUE_TAG, queue)];
    let is_replaced = |tag: &Name| own.iter().any(|(own, value)| *own == tag.as_str() && value.is_some());
    let kept = before.iter().filter(|(tag, _)| !is_replaced(tag)).cloned();
    let new = own.iter().filter_map(|(tag, value)| Some((Name::from(*tag), value.clone()?)));
    kept.chain(new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{NodeId, TaskId};
    use crate::model::{Flow, Step};
    use crate::protocol::{
        Command, DeclaredRow, Effect, Evaluation, Life, Outcome, PastStep, Payload, Question, Snapshot,
        StepBody, StepKind, Write,
    };
    use crate::testkit::{Kit, flow, rendered, step, template};
    use std::sync::Arc;

    const OF: RunId = RunId(77);
    const AGAIN: RunId = RunId(78);

    /// `a`, then `b`, then `c`.
    fn chain() -> Flow {
        let after = |name, before| Step { after: vec![before], ..step(name) };
        flow("chain", vec![step("a"), after("b", 0), after("c", 1)])
    }

    fn kit(flow: Flow) -> Kit {
        let mut kit = Kit::new(4);
        kit.declare(vec![flow], Vec::new(), None);
        kit
    }

    /// A run of `chain` that ended, with how its steps did.
    fn past(state: State, steps: &[State]) -> Past {
        let body = crate::protocol::RunBody {
            id: Some(OF),
            flow: "chain".into(),
            version: 1,
            depth: 0,
            key: Some("eu".into()),
            tags: vec![(RETRY_TAG.into(), "an older one".into()), ("team".into(), "data".into())],
            idempotency: Some(crate::protocol::Idempotency { key: "once".into(), content: 1 }),
        };
        let node = NodeId(1_000);
        let ended = state.is_end().then_some(crate::time::Moment(50));
        let root = NodeRow {
            node,
            parent: None,
            root: node.0,
            priority: 7,
            accepted: crate::time::Moment(1),
            body: Body::Run(body),
            payload: Some(Payload::new(r#"{"x":1}"#)),
            life: Life { ended, ..Life::new(state) },
        };
        let step = |(index, &state): (usize, &State)| PastStep {
            index: index as u32,
            state,
            ran: node.step(index),
            run: OF,
        };
        Past { root, steps: steps.iter().enumerate().map(step).collect() }
    }

    fn retry(past: Option<Past>) -> Retry {
        Retry { id: AGAIN, of: OF, from_start: false, queue: None, past: past.map(Box::new) }
    }

    fn accepted(kit: &mut Kit, retry: Retry) -> NodeId {
        match kit.apply(Command::Retry(retry)) {
            Answer::Accepted { node, again: false } => node,
            other => panic!("not accepted but {other:?}"),
        }
    }

    fn rows(kit: &Kit) -> Vec<NodeRow> {
        let row = |write: &Write| match write {
            Write::NodeAdded(row) => Some((**row).clone()),
            _ => None,
        };
        kit.writes.iter().filter_map(row).collect()
    }

    fn asked(kit: &Kit) -> Vec<Question> {
        let question = |effect: &Effect| match effect {
            Effect::Ask(question) => Some(*question),
            _ => None,
        };
        kit.effects.iter().filter_map(question).collect()
    }

    #[test]
    fn it_goes_on_where_the_other_one_ended() {
        let mut kit = kit(chain());
        let run = accepted(&mut kit, retry(Some(past(State::Failed, &[State::Succeeded, State::Failed]))));
        let rows = rows(&kit);
        let [root, reused] = &rows[..] else { panic!("{rows:?}") };
        let Body::Run(body) = &root.body else { panic!("{root:?}") };
        let tag = |tag: &str, value: &str| (Name::from(tag), Name::from(value));
        let tags = [tag("team", "data"), tag(RETRY_TAG, &OF.to_string())];
        assert_eq!((body.id, &body.tags[..], &body.key), (Some(AGAIN), &tags[..], &Some("eu".into())));
        assert_eq!((root.priority, &body.idempotency), (7, &None));
        assert_eq!(root.payload, Some(Payload::new(r#"{"x":1}"#)));
        let kind = StepKind::Reused { of: NodeId(1_001), run: OF };
        assert_eq!(reused.body, Body::Step(StepBody { index: 0, kind, start_by: None }));
        assert_eq!(
            (reused.node, reused.parent, reused.life.state),
            (run.step(0), Some(run), State::Succeeded)
        );
        assert_eq!(asked(&kit), [Question::Step { run, step: 1 }]);
        let question = kit.core.asked(Question::Step { run, step: 1 }).expect("it is open");
        assert_eq!(question.step_task(0), TaskId::node(NodeId(1_001)));
        assert_eq!(question.step_task(1), TaskId::node(run.step(1)));
        for index in [1, 2] {
            kit.answer_step(run, index, Evaluation::Order(rendered(None)));
            kit.succeed(TaskId::node(run.step(index as usize)));
        }
        assert_eq!(kit.ended(run), Some((State::Succeeded, None)));
    }

    #[test]
    fn a_retry_of_a_retry_leads_to_the_step_that_ran() {
        let mut kit = kit(chain());
        let mut past = past(State::Failed, &[State::Succeeded, State::Succeeded, State::Failed]);
        (past.steps[0].ran, past.steps[0].run) = (NodeId(501), RunId(5));
        let run = accepted(&mut kit, retry(Some(past)));
        let kinds: Vec<StepKind> = rows(&kit)
            .into_iter()
            .filter_map(|row| match row.body {
                Body::Step(step) => Some(step.kind),
                _ => None,
            })
            .collect();
        let reused = |of, run| StepKind::Reused { of: NodeId(of), run };
        assert_eq!(kinds, [reused(501, RunId(5)), reused(1_002, OF)]);
        let reuses = |index, kind| Body::Step(StepBody { index, kind, start_by: None }).reuses();
        assert_eq!(reuses(0, kinds[0].clone()), Some(NodeId(500)));
        assert_eq!(reuses(1, kinds[1].clone()), Some(NodeId(1_000)));
        assert_eq!(asked(&kit), [Question::Step { run, step: 2 }]);
    }

    #[test]
    fn a_run_all_of_whose_steps_are_reused_has_only_its_outputs_to_render() {
        let mut kit = kit(Flow { outputs: Some(template()), ..chain() });
        let run = accepted(&mut kit, retry(Some(past(State::Failed, &[State::Succeeded; 3]))));
        assert_eq!(asked(&kit), [Question::Outputs { run }]);
    }

    #[test]
    fn from_the_start_nothing_is_reused() {
        for state in [State::Succeeded, State::Failed] {
            let mut kit = kit(chain());
            let past = past(state, &[State::Succeeded; 3]);
            let run = accepted(&mut kit, Retry { from_start: true, ..retry(Some(past)) });
            assert_eq!(asked(&kit), [Question::Step { run, step: 0 }]);
            assert_eq!(rows(&kit).len(), 1);
        }
    }

    #[test]
    fn another_queue_may_be_given() {
        let queues = |before: &[&str], given: Option<&str>| -> Vec<String> {
            let before: Vec<_> = before.iter().map(|&queue| (QUEUE_TAG.into(), queue.into())).collect();
            let tags = tags(&before, OF, given.map(Name::from));
            let queues = tags.iter().filter(|(tag, _)| tag.as_str() == QUEUE_TAG);
            queues.map(|(_, queue)| queue.to_string()).collect()
        };
        assert_eq!(queues(&["old"], None), ["old"]);
        assert_eq!(queues(&["old"], Some("new")), ["new"]);
        assert_eq!(queues(&[], Some("new")), ["new"]);
        assert!(queues(&[], None).is_empty());
    }

    #[test]
    fn it_runs_on_the_version_of_the_other_one() {
        let mut kit = kit(chain());
        kit.declare(vec![flow("chain", vec![step("new")])], Vec::new(), None);
        let run = accepted(&mut kit, retry(Some(past(State::Failed, &[State::Succeeded]))));
        assert!(matches!(&rows(&kit)[0].body, Body::Run(body) if body.version == 1));
        assert_eq!(asked(&kit), [Question::Step { run, step: 1 }]);
        assert_eq!(kit.job("work"), NodeId(run.0 + 4), "there is a number for each of its steps");
    }

    #[test]
    fn every_reason_to_refuse() {
        let mut gone = past(State::Failed, &[]);
        if let Body::Run(body) = &mut gone.root.body {
            body.version = 0;
        }
        let mut at_the_door = past(State::Refused, &[]);
        at_the_door.root.life.ended = Some(at_the_door.root.accepted);
        let mut too_large = past(State::Refused, &[]);
        too_large.root.payload = None;
        let mut step = past(State::Failed, &[]);
        step.root.body = Body::Step(StepBody { index: 0, kind: StepKind::Nothing, start_by: None });
        let cases = [
            (None, Refusal::UnknownRun(OF)),
            (Some(step), Refusal::UnknownRun(OF)),
            (Some(past(State::Running, &[])), Refusal::StillOpen(OF)),
            (Some(past(State::Succeeded, &[])), Refusal::NothingToRetry(OF)),
            (Some(at_the_door), Refusal::NeverAccepted(OF)),
            (Some(too_large), Refusal::NeverAccepted(OF)),
            (Some(gone), Refusal::VersionGone { run: OF, flow: "chain".into() }),
        ];
        for (past, refusal) in cases {
            assert_eq!(kit(chain()).refused(Command::Retry(retry(past))), refusal);
        }
        let long = Retry { queue: Some("x".repeat(300).into()), ..retry(Some(past(State::Failed, &[]))) };
        assert!(matches!(kit(chain()).refused(Command::Retry(long)), Refusal::NameTooLong(_)));
    }

    #[test]
    fn what_is_open_is_not_retried_whatever_the_store_says() {
        let mut kit = kit(chain());
        let submit = kit.submit(crate::testkit::run("chain"));
        let of = submit.id;
        kit.accepted(submit);
        let retry = Retry { of, ..retry(Some(past(State::Failed, &[]))) };
        assert_eq!(kit.refused(Command::Retry(retry)), Refusal::StillOpen(of));
    }

    #[test]
    fn one_that_is_asked_for_twice_is_made_once() {
        let mut kit = kit(chain());
        let node = accepted(&mut kit, retry(Some(past(State::Failed, &[]))));
        let again = kit.apply(Command::Retry(retry(None)));
        assert_eq!((again, kit.writes.len()), (Answer::Accepted { node, again: true }, 0));
    }

    #[test]
    fn limits_count_it_like_any_other() {
        let mut kit =
            kit(Flow { concurrency: Some(1), when_busy: crate::model::WhenBusy::Reject, ..chain() });
        kit.run("chain");
        let refused = kit.refused(Command::Retry(retry(Some(past(State::Failed, &[])))));
        assert!(matches!(refused, Refusal::Busy { .. }), "{refused:?}");
    }

    #[test]
    fn a_job_is_submitted_anew() {
        let mut kit = Kit::new(1);
        let job = kit.job("work");
        let Some(row) = rows(&kit).pop() else { panic!() };
        let lease = kit.lease(TaskId::node(job));
        kit.finish(lease, Outcome::failed("boom"));
        let (state, error) = kit.ended(job).expect("it failed");
        let life = Life { ended: Some(kit.now), error, ..Life::new(state) };
        let past = Past { root: NodeRow { life, ..row.clone() }, steps: Vec::new() };
        let of = row.body.id().expect("a job has an id");
        let again = accepted(&mut kit, Retry { of, ..retry(Some(past)) });
        let [root] = &rows(&kit)[..] else { panic!("{:?}", kit.writes) };
        assert_eq!((root.body.name(), &root.payload), (row.body.name(), &row.payload));
        kit.succeed(TaskId::node(again));
    }

    /// The rows of a retry, loaded before or after it began, go on as the retry itself does.
    #[test]
    fn after_a_crash_it_goes_on_as_it_would_have() {
        for begins in [false, true] {
            let concurrency = (!begins).then_some(0);
            let flow = Flow { concurrency, ..chain() };
            let mut kit = kit(flow.clone());
            let past = past(State::Failed, &[State::Succeeded, State::Succeeded, State::Failed]);
            let run = accepted(&mut kit, retry(Some(past)));
            let mut nodes = rows(&kit);
            if begins {
                nodes[0].life = Life { started: Some(kit.now), entered: true, ..Life::new(State::Running) };
            }
            let declared = vec![DeclaredRow::Flow { version: 1, flow: Arc::new(flow) }];
            let (next, now) = (kit.core.next(), kit.now);
            let snapshot = Snapshot { nodes, declared, next, now, ..Snapshot::default() };
            let digest = kit.core.durable_digest();
            kit.core = Core::load(snapshot, 2, now);
            assert_eq!(kit.core.durable_digest(), digest);
            kit.effects.clear();
            kit.declare(vec![chain()], Vec::new(), None);
            assert_eq!(asked(&kit), [Question::Step { run, step: 2 }], "begins: {begins}");
            let question = kit.core.asked(Question::Step { run, step: 2 }).expect("it is open");
            assert_eq!(question.step_task(1), TaskId::node(NodeId(1_002)));
        }
    }
}
