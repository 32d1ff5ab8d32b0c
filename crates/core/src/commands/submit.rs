//! A job or a run is submitted: accepted into the line, or refused with the reason.

use crate::admission::{ClassId, Rank};
use crate::catalog::{AttemptSource, Source};
use crate::core::Core;
use crate::crowd::Crowd;
use crate::digest::Digest;
use crate::ids::{Name, NodeId, TaskId};
use crate::model::{WhenBusy, queue_of};
use crate::names;
use crate::nodes::{Job, Node, Run, RunState, Seldom, Work, WorkState};
use crate::progress::resident;
use crate::protocol::{
    Answer, Body, Idempotency, JobBody, Life, NodeRow, PastStep, Payload, Refusal, RunBody, Submission,
    Submit, Tally, Write, check_size,
};
use crate::state::State;
use crate::time::Moment;
use crate::timers::Alarm;
use std::borrow::Cow;

/// What a submission needs besides itself.
struct Newcomer {
    submit: Submit,
    origin: Origin,
    again: Option<Again>,
}

/// A run that goes on where an earlier one ended.
pub(crate) struct Again {
    /// That of the earlier one.
    pub version: u32,
    pub reused: Vec<PastStep>,
}

/// What the demands of a newcomer are resolved from; nearly always that was done before.
enum Origin {
    Known(ClassId),
    New(Source),
}

impl Core {
    pub(crate) fn submit(&mut self, submit: Submit, now: Moment) -> Result<Answer, Refusal> {
        names::of_submission(&submit)?;
        check_size(submit.size())?;
        if let Some(known) = self.known_key(submit.idempotency.as_ref())? {
            return Ok(Answer::Accepted { node: known, again: true });
        }
        // Ids are never chosen twice: under one that is known it can only be the same submission, repeated.
        if let Some(&node) = self.by_id.get(&submit.id) {
            return Ok(Answer::Accepted { node, again: true });
        }
        self.admit(submit, None, now)
    }

    /// Into the line, if nothing speaks against it.
    pub(crate) fn admit(
        &mut self,
        submit: Submit,
        again: Option<Again>,
        now: Moment,
    ) -> Result<Answer, Refusal> {
        let (origin, when_busy) = self.origin_of_submission(&submit)?;
        let is_later = submit.due.is_some_and(|due| due > now);
        if let Some(refusal) = self.refusal_of_newcomer(&origin, is_later, now) {
            return Err(refusal);
        }
        let crowd = match self.source_of_newcomer(&origin) {
            Some(source) if when_busy != WhenBusy::Queue && !is_later => {
                let rank = Rank::new(submit.priority, self.next, TaskId::node(NodeId(self.next)));
                self.crowd(source, when_busy, rank, now)?
            }
            _ => Crowd::Nobody,
        };
        let line = match &submit.what {
            Submission::Job { action, .. } => Some(action.clone()),
            Submission::Run { .. } => None,
        };
        let full = line.as_ref().and_then(|action| self.full_line(action));
        // A refusal changes nothing: who gives way does so when nothing can be refused any more.
        match &full {
            Some(full) if !crowd.leaves_the_line() && !full.drops_oldest => {
                return Err(full.refusal());
            }
            _ => {}
        }
        let taken_root = self.give_way(crowd, now);
        if let (Some(action), Some(_)) = (&line, full) {
            self.make_room_in_line(action, now);
        }
        let node = self.accept(Newcomer { submit, origin, again }, taken_root, now);
        Ok(Answer::Accepted { node, again: false })
    }

    fn known_key(&self, idempotency: Option<&Idempotency>) -> Result<Option<NodeId>, Refusal> {
        let Some(idempotency) = idempotency else { return Ok(None) };
        match self.by_key.get(&idempotency.key) {
            Some(&(node, content)) if content == idempotency.content => Ok(Some(node)),
            Some(_) => Err(Refusal::KeyConflict(idempotency.key.clone())),
            None => Ok(None),
        }
    }

    fn origin_of_submission(&self, submit: &Submit) -> Result<(Origin, WhenBusy), Refusal> {
        let (source, when_busy) = match &submit.what {
            Submission::Job { action, key, .. } => {
                let when_busy = self.catalog.action(action).when_busy;
                let queue = queue_of(&submit.tags);
                if let Some(class) = self.classes.of_job(action, key).filter(|_| queue.is_none()) {
                    return Ok((Origin::Known(class), when_busy));
                }
                (Source::Attempt(self.job_source(action, key, queue)), when_busy)
            }
            Submission::Run { flow, key, .. } => {
                let plan =
                    self.catalog.newest(flow.as_str()).ok_or_else(|| Refusal::UnknownFlow(flow.clone()))?.1;
                (self.run_source(flow, key, &submit.tags), plan.flow.when_busy)
            }
        };
        Ok((self.classes.find(&source).map_or(Origin::New(source), Origin::Known), when_busy))
    }

    /// Why it can never be granted, or, unless it is to start later, not now.
    fn refusal_of_newcomer(&self, origin: &Origin, is_later: bool, now: Moment) -> Option<Refusal> {
        let entrance = match origin {
            Origin::Known(class) => Cow::Borrowed(&self.classes.entry(*class)?.entrance),
            Origin::New(source) => self.entrance(source),
        };
        if is_later { entrance.never() } else { self.refusal_at(&entrance, now) }
    }

    fn source_of_newcomer<'a>(&'a self, origin: &'a Origin) -> Option<&'a Source> {
        match origin {
            Origin::Known(class) => Some(&self.classes.entry(*class)?.source),
            Origin::New(source) => Some(source),
        }
    }

    pub(crate) fn run_source(&self, flow: &Name, key: &Option<Name>, tags: &[(Name, Name)]) -> Source {
        let newest = |flow: &Name| self.catalog.newest(flow.as_str()).map(|(_, plan)| plan);
        let is_keyed = |_: &&Name| newest(flow).is_some_and(|plan| plan.flow.key.is_some());
        let tags = self.catalog.tags_that_count(tags);
        Source::Run { flow: flow.clone(), key: key.as_ref().filter(is_keyed).cloned(), tags }
    }

    fn accept(&mut self, newcomer: Newcomer, taken_root: Option<u64>, now: Moment) -> NodeId {
        let Newcomer { submit, origin, again } = newcomer;
        let newest = || Again { version: self.catalog.version, reused: Vec::new() };
        let Again { version, reused } = again.unwrap_or_else(newest);
        let idempotency = submit.idempotency;
        let due = submit.due.filter(|&due| due > now);
        let steps = match &submit.what {
            Submission::Job { .. } => 0,
            Submission::Run { flow, .. } => {
                self.catalog.flow(flow.as_str(), version).map_or(0, |(_, plan)| plan.flow.steps.len())
            }
        };
        let node = self.take_numbers(steps);
        let root = taken_root.unwrap_or(node.0);
        self.by_id.insert(submit.id, node);
        if let Some(idempotency) = &idempotency {
            self.by_key.insert(idempotency.key.clone(), (node, idempotency.content));
        }
        let life = Life { due, ..Life::new(if due.is_some() { State::Scheduled } else { State::Waiting }) };
        let priority = submit.priority;
        let (body, payload, origin) = match submit.what {
            Submission::Job { action, key, order } => {
                let start_by =
                    self.catalog.action(&action).line.start_within.map(|within| due.unwrap_or(now) + within);
                let tags = submit.tags;
                let body = JobBody { id: submit.id, action, key, tags, start_by, idempotency };
                let class = self.add_job(node, root, priority, &body, Some(&order), due, now);
                (Body::Job(body), order, Origin::Known(class))
            }
            Submission::Run { flow, key, inputs } => {
                let (id, tags) = (Some(submit.id), submit.tags);
                let body = RunBody { id, flow, version, depth: 0, key, tags, idempotency };
                self.add_run(node, root, priority, body.clone(), due, now);
                (Body::Run(body), inputs, origin)
            }
        };
        let payload = Some(payload);
        let row = NodeRow { node, parent: None, root, priority, accepted: now, body, payload, life };
        self.write(Write::NodeAdded(Box::new(row)));
        self.reuse_steps(node, &reused, now);
        match due {
            Some(due) => self.timers.set(due, TaskId::node(node), Alarm::Due),
            None => {
                let class = match origin {
                    Origin::Known(class) => class,
                    Origin::New(source) => self.class_for(source),
                };
                self.ask_for_root(node, class, now);
            }
        }
        node
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "the parts of a row, none of which belong together elsewhere"
    )]
    pub(crate) fn add_job(
        &mut self,
        node: NodeId,
        root: u64,
        priority: i8,
        body: &JobBody,
        order: Option<&Payload>,
        due: Option<Moment>,
        now: Moment,
    ) -> ClassId {
        if let Some(at) = body.start_by {
            self.timers.set(at, TaskId::node(node), Alarm::StartBy);
        }
        self.joined_line(&body.action, node);
        let class = self.job_class(&body.action, &body.key, queue_of(&body.tags));
        self.left(class);
        let (action, key) = self.shared_names(class, body);
        let at = due.map_or(WorkState::Waiting, WorkState::Scheduled);
        let job = Job {
            id: body.id.into(),
            root,
            priority,
            paused: false,
            action,
            key,
            accepted: now,
            start_by: body.start_by,
            order: order.and_then(resident),
            seldom: Seldom::of(body),
            work: Work { class, tally: Tally::default(), since: now, at },
        };
        self.nodes.insert(node, Node::Job(Box::new(job)));
        class
    }

    /// The names of a job, as its class has them: a million waiting jobs do not keep a million copies.
    fn shared_names(&self, class: ClassId, body: &JobBody) -> (Name, Option<Name>) {
        let source = self.classes.entry(class).map(|entry| &*entry.source);
        let Some(Source::Attempt(AttemptSource { action: Some(action), key, .. })) = source else {
            return (body.action.clone(), body.key.clone());
        };
        (action.clone(), if *key == body.key { key.clone() } else { body.key.clone() })
    }

    pub(crate) fn add_run(
        &mut self,
        node: NodeId,
        root: u64,
        priority: i8,
        body: RunBody,
        due: Option<Moment>,
        now: Moment,
    ) {
        let Some((_, plan)) = self.catalog.flow(body.flow.as_str(), body.version) else { return };
        let state = due.map_or(RunState::Waiting, RunState::Scheduled);
        let run = Run { root, priority, state, ..Run::new(body, plan, now) };
        self.nodes.insert(node, Node::Run(Box::new(run)));
    }

    /// A root task stands in line; a run that needs nothing starts at once.
    pub(crate) fn ask_for_root(&mut self, node: NodeId, class: ClassId, now: Moment) {
        self.enqueue_in(TaskId::node(node), class);
        match self.nodes.get_mut(&node) {
            Some(Node::Job(job)) => {
                job.work.class = class;
                job.work.at = WorkState::Waiting;
                job.work.since = now;
            }
            Some(Node::Run(run)) => {
                run.class = Some(class);
                run.state = RunState::Waiting;
                run.since = now;
            }
            _ => {}
        }
    }
}

impl Submit {
    /// The same under a key, where what is submitted is all that is known of its content.
    pub fn under(self, key: impl Into<Name>) -> Submit {
        let (name, key_of_limit, payload) = match &self.what {
            Submission::Job { action, key, order } => (action, key, order),
            Submission::Run { flow, key, inputs } => (flow, key, inputs),
        };
        let mut content = Digest::new();
        content.text_or_nothing(key_of_limit.as_ref().map(Name::as_str));
        content.number(Idempotency::of(Name::new(""), name, payload).content);
        let idempotency = Idempotency { key: key.into(), content: content.finish() };
        Submit { idempotency: Some(idempotency), ..self }
    }
}

impl Idempotency {
    /// What somebody asks for, before anything is rendered: definitions may change until it is asked for again. The
    /// digest is stored, so it may never change.
    pub fn of(key: Name, name: &Name, input: &Payload) -> Idempotency {
        let mut content = Digest::new();
        content.text(name.as_str());
        content.bytes(input.bytes());
        Idempotency { key, content: content.finish() }
    }
}

#[cfg(test)]
mod tests {
    use crate::ids::TaskId;
    use crate::model::{Action, ActionPolicy, Each, Origin, RatePolicy, WhenBusy, WhenExhausted};
    use crate::protocol::{Answer, Command, LARGEST_PAYLOAD, Payload, Refusal, Submission, Submit};
    use crate::state::State;
    use crate::testkit::{Kit, action, flow, job, limits, run, step};
    use crate::time::Span;

    #[test]
    fn every_reason_to_refuse() {
        let mut kit = Kit::new(1);
        let lost = action("lost", None, &[("nowhere", 1)]);
        let wide = action("wide", None, &[("db", 2), ("db", 1)]);
        let rejects = |name| {
            let mut action = action(name, Some(1), &[]);
            action.policy.when_busy = WhenBusy::Reject;
            action
        };
        let mut full = action("keyed", Some(1), &[]);
        full.policy.line.max_length = 0;
        kit.declare(Vec::new(), vec![lost, wide, rejects("other"), full], Some(limits(&[("db", 2)])));
        kit.job("other");
        let large = || {
            let order = Payload::new(vec![b'1'; LARGEST_PAYLOAD + 1]);
            Submission::Job { action: "work".into(), key: None, order }
        };
        let cases = [
            (run("nothing"), Refusal::UnknownFlow("nothing".into())),
            (job("lost"), Refusal::UnknownPool("nowhere".into())),
            (
                job("wide"),
                Refusal::TooWide {
                    limit: "pool db".to_owned(),
                    units: 3,
                    capacity: 2,
                    declared: Origin::default(),
                },
            ),
            (job("other"), Refusal::Busy { limit: "action other".to_owned(), declared: Origin::default() }),
            (
                job("keyed"),
                Refusal::LineFull { action: "keyed".into(), max_length: 0, declared: Origin::default() },
            ),
            (large(), Refusal::TooLarge { size: LARGEST_PAYLOAD + 1, most: LARGEST_PAYLOAD }),
        ];
        for (what, refusal) in cases {
            let submit = kit.submit(what);
            assert_eq!(kit.refused(Command::Submit(submit)), refusal);
        }
    }

    #[test]
    fn what_costs_more_than_a_burst_never_starts() {
        let mut kit = Kit::new(1);
        let rate = RatePolicy { limit: 1, per: Span::seconds(1), burst: 0, when_busy: WhenExhausted::Wait };
        let policy = |name: &str, rate| ActionPolicy {
            each: Each { rate: Some(rate), ..Each::default() },
            ..ActionPolicy::silent(name.into())
        };
        let paced = Action { policy: policy("work", rate), ..action("work", None, &[]) };
        kit.declare(Vec::new(), vec![paced], None);
        // A burst of nothing is a rate that is closed: it may be opened again.
        let job = kit.job("work");
        assert_eq!(kit.state(TaskId::node(job)), Some(State::Waiting));
    }

    #[test]
    fn an_id_and_a_key_are_known_for_a_while_after_their_task_has_ended() {
        let mut kit = Kit::new(1);
        let once = kit.submit(job("work")).under("once");
        let node = kit.accepted(once.clone());
        let again = Answer::Accepted { node, again: true };
        assert_eq!(kit.apply(Command::Submit(once.clone())), again, "its id is not looked at");
        assert_eq!(kit.writes, []);
        let other = Submission::Job { action: "work".into(), key: None, order: Payload::new("1") };
        let other = Submit { what: other, ..once.clone() }.under("once");
        assert_eq!(kit.refused(Command::Submit(other)), Refusal::KeyConflict("once".into()));
        let other_action = Submit { what: job("other"), ..once.clone() }.under("once");
        assert_eq!(kit.refused(Command::Submit(other_action)), Refusal::KeyConflict("once".into()));
        let same_id = Submit { idempotency: None, ..once.clone() };
        assert_eq!(kit.apply(Command::Submit(same_id)), again);
        assert_eq!(kit.core.node_of(once.id), Some(node));
        kit.succeed(TaskId::node(node));
        assert_eq!(kit.core.node_of(once.id), None);
        assert_eq!(kit.apply(Command::Submit(once.clone())), again, "a repetition may be late");
        kit.now = kit.now + Span::seconds(61);
        let other = kit.submit(job("work"));
        let other = kit.accepted(other);
        kit.succeed(TaskId::node(other));
        assert_ne!(kit.accepted(once), node, "by then a look-up in the store finds it");
    }

    #[test]
    fn a_time_that_has_come_is_no_delay() {
        let mut kit = Kit::new(2);
        let now = kit.now;
        let due = |kit: &mut Kit, due| Submit { due: Some(due), ..kit.submit(job("work")) };
        let (past, present) = (due(&mut kit, now - Span::seconds(1)), due(&mut kit, now));
        for submit in [past, present] {
            let node = kit.accepted(submit);
            assert_eq!(kit.state(TaskId::node(node)), Some(State::Running));
        }
        let later = due(&mut kit, now + Span::seconds(1));
        let later = kit.accepted(later);
        assert_eq!(kit.state(TaskId::node(later)), Some(State::Scheduled));
    }

    #[test]
    fn a_delayed_one_meets_the_crowd_when_it_comes_due() {
        let mut kit = Kit::new(1);
        let mut one = flow("one", vec![step("a")]);
        (one.concurrency, one.when_busy) = (Some(1), WhenBusy::Reject);
        kit.declare(vec![one], Vec::new(), None);
        kit.run("one");
        let due = Some(kit.now + Span::seconds(1));
        let later = Submit { due, ..kit.submit(run("one")) };
        let later = kit.accepted(later);
        kit.advance(Span::seconds(1));
        let busy =
            "runs of one: no more is allowed now, and `when_busy` says reject (flows.yaml:1)".to_owned();
        assert_eq!(kit.ended(later), Some((State::Refused, Some(busy))));
    }

    #[test]
    fn the_same_idempotency_key_with_another_concurrency_key_is_something_else() {
        let mut kit = Kit::new(0);
        kit.declare(vec![flow("one", vec![step("a")])], Vec::new(), None);
        let of_job = |key: &str| {
            let (action, key) = ("work".into(), Some(key.into()));
            Submission::Job { action, key, order: Payload::null() }
        };
        let of_run = |key: &str| {
            let (flow, key) = ("one".into(), Some(key.into()));
            Submission::Run { flow, key, inputs: Payload::null() }
        };
        for (once, acme, other) in
            [("job", of_job("acme"), of_job("other")), ("run", of_run("acme"), of_run("other"))]
        {
            let once_as = |what: Submission, kit: &mut Kit| kit.submit(what).under(once);
            let first = once_as(acme.clone(), &mut kit);
            let node = kit.accepted(first);
            let again = once_as(acme, &mut kit);
            assert_eq!(kit.apply(Command::Submit(again)), Answer::Accepted { node, again: true });
            let other = once_as(other, &mut kit);
            assert_eq!(kit.refused(Command::Submit(other)), Refusal::KeyConflict(once.into()));
        }
    }
}
