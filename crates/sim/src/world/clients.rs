//! Clients: they submit, cancel and change things, and ask again until they get an answer.

use super::{Asker, Event, World};
use crate::oracle::JobSpec;
use std::collections::BTreeMap;
use tidegate_core::admission::LimitKey;
use tidegate_core::ids::{Name, NodeId, RunId};
use tidegate_core::protocol::{Answer, Command, Declare, Pausable, Payload, Retry, Submission, Submit};
use tidegate_core::time::{Moment, Span};

/// A client that got no answer asks again after this time, perhaps elsewhere.
const PATIENCE: Span = Span::millis(1_500);
/// Roots cancelled at once.
const STORM: usize = 20;

#[derive(Clone, Debug)]
pub(crate) enum Intent {
    Declare,
    SubmitJob {
        kind: usize,
    },
    SubmitRun {
        flow: usize,
    },
    RetryRun,
    CancelSomething,
    CancelMany,
    ChangeLimit,
    RestoreLimit(LimitKey),
    /// A value that was set for a time is no longer in force.
    LimitIsOver(LimitKey),
    ChangePriority,
    /// Declares the action anew whose limit comes and goes.
    Rescope,
    PauseSomething,
    Resume(Pausable),
    /// Ask again, if there was no answer yet.
    Repeat(u64),
}

#[derive(Debug)]
struct Pending {
    command: Command,
    about: About,
    /// When to ask again; repetitions planned for another time do nothing.
    again_at: Moment,
}

/// What the answer means.
#[derive(Clone, Debug)]
pub(super) enum About {
    Declared,
    Job(JobSpec),
    Run { flow: usize, tags: Vec<(Name, Name)>, id: RunId },
    Cancel(NodeId),
    Limit,
    Paused { what: Pausable, asked: Moment },
    Resumed,
    Other,
}

/// A run that was accepted: of which flow of the plan, and with which tags.
#[derive(Clone, Debug)]
struct PastRun {
    id: RunId,
    flow: usize,
    tags: Vec<(Name, Name)>,
}

#[derive(Debug, Default)]
pub(crate) struct Clients {
    pending: BTreeMap<u64, Pending>,
    next: u64,
    next_id: u128,
    /// Roots that were accepted, and may still be open.
    roots: Vec<NodeId>,
    /// Those of them that are runs.
    runs: Vec<PastRun>,
    pub planned: u64,
    declared: bool,
    pub changed: Vec<LimitKey>,
    pub paused: Vec<Pausable>,
}

impl Clients {
    pub fn is_done(&self) -> bool {
        self.pending.is_empty() && self.planned == 0
    }
}

impl World {
    pub(super) fn plan_clients(&mut self) {
        self.after(Span::millis(1), Event::Client(Intent::Declare));
        for _ in 0..self.plan.jobs {
            let kind = self.random.index(self.plan.kinds.len());
            self.clients.planned += 1;
            self.sometime(Event::Client(Intent::SubmitJob { kind }));
        }
        for _ in 0..self.plan.runs {
            let flow = self.random.index(self.plan.flows.len());
            self.clients.planned += 1;
            self.sometime(Event::Client(Intent::SubmitRun { flow }));
        }
        for _ in 0..self.random.below(4) {
            self.clients.planned += 1;
            self.sometime(Event::Client(Intent::RetryRun));
        }
        self.plan_streams();
    }

    /// Bursts of one kind, and steady streams of narrow tasks around wide ones: where order goes wrong if it does.
    fn plan_streams(&mut self) {
        let kind = |world: &World, name: &str| {
            world.plan.kinds.iter().position(|kind| kind.action.as_str() == name).unwrap_or(0)
        };
        let begin = Span::millis(self.random.between(1_000, 5_000));
        // Saturating both pools of the widest tasks takes many narrow ones: a quarter of the seeds has them.
        let narrow = if self.random.chance(25) { 190 } else { 8 };
        for (name, count, gap) in
            [("left1", narrow, 30), ("right1", narrow, 30), ("gate1", 16, 60), ("retried", 6, 120)]
        {
            let kind = kind(self, name);
            for n in 0..count {
                self.clients.planned += 1;
                self.after(begin + Span::millis(gap).times(n), Event::Client(Intent::SubmitJob { kind }));
            }
        }
        for (name, at) in
            [("both", 700), ("both", 1_900), ("gateall", 900), ("gate2", 1_100), ("gateall", 1_500)]
        {
            let kind = kind(self, name);
            self.clients.planned += 1;
            self.after(begin + Span::millis(at), Event::Client(Intent::SubmitJob { kind }));
        }
    }

    pub(super) fn client_acts(&mut self, intent: Intent) {
        match intent {
            Intent::Declare => {
                let declare = Declare {
                    flows: self.plan.flows.clone(),
                    actions: self.plan.actions.clone(),
                    limits: Some(self.plan.limits.clone()),
                    files: Vec::new(),
                };
                self.ask(Command::Declare(declare), About::Declared);
            }
            Intent::SubmitJob { .. } | Intent::SubmitRun { .. } if !self.clients.declared => {
                self.after(Span::millis(100), Event::Client(intent));
            }
            Intent::SubmitJob { kind } => self.submit_job(kind),
            Intent::SubmitRun { flow } => self.submit_run(flow),
            Intent::RetryRun => self.retry_run(),
            Intent::CancelSomething => self.cancel_something(),
            Intent::CancelMany => (0..STORM).for_each(|_| self.cancel_something()),
            Intent::ChangeLimit => self.change_limit(),
            Intent::RestoreLimit(key) => self.set_limit(key, None, None),
            Intent::LimitIsOver(key) => self.oracle.limit_is_changing(&key, None, self.now),
            Intent::ChangePriority => {
                if let Some(node) = self.some_root() {
                    let priority = self.random.between(0, 2) as i8;
                    self.oracle.reranked(node);
                    self.ask(Command::SetPriority { node, priority }, About::Other);
                }
            }
            Intent::Rescope => {
                let limit = *self.random.pick(&[None, Some(1), Some(2), Some(5)]);
                self.rescope(limit);
            }
            Intent::PauseSomething => self.pause_something(),
            Intent::Resume(what) => self.resume(what),
            Intent::Repeat(number) => self.repeat(number),
        }
    }

    pub(super) fn some_root(&mut self) -> Option<NodeId> {
        let recent = self.clients.roots.len().saturating_sub(30);
        let roots = &self.clients.roots[recent..];
        (!roots.is_empty()).then(|| roots[self.random.index(roots.len())])
    }

    fn next_id(&mut self) -> RunId {
        self.clients.next_id += 1;
        RunId(self.clients.next_id)
    }

    pub(super) fn submit_job(&mut self, kind: usize) {
        let id = self.next_id();
        let priority = if self.random.chance(85) { 0 } else { self.random.between(1, 2) as i8 };
        let kind = &self.plan.kinds[kind];
        let key = kind.keyed.then(|| Name::from(*self.random.pick(&super::plan::KEYS)));
        let spec = JobSpec::new(id, kind, key.clone(), priority, self.now);
        self.oracle.submits(&spec);
        let what = Submission::Job {
            action: kind.action.clone(),
            key,
            order: Payload::new(format!("\"{}\"", spec.label)),
        };
        let due = kind.delayed.then(|| self.now + Span::millis(self.random.between(500, 5_000)));
        let submit =
            Submit { id, what, tags: Vec::new(), priority, due, idempotency: None }.under(id_key(id));
        self.ask(Command::Submit(submit), About::Job(spec));
    }

    fn submit_run(&mut self, flow: usize) {
        let id = self.next_id();
        let mut tags = Vec::new();
        if self.random.chance(40) {
            tags.push((Name::from("env"), Name::from("prod")));
        }
        if self.random.chance(60) {
            tags.push((Name::from("tenant"), Name::from(*self.random.pick(&super::plan::KEYS))));
        }
        let name = self.plan.flows[flow].name.clone();
        let what = Submission::Run { flow: name, key: None, inputs: Payload::new("{}") };
        let submit = Submit { id, what, tags: tags.clone(), priority: 0, due: None, idempotency: None }
            .under(id_key(id));
        self.ask(Command::Submit(submit), About::Run { flow, tags, id });
    }

    /// Whether it has ended, and how, is not known here: what cannot be retried is refused.
    fn retry_run(&mut self) {
        if self.clients.runs.is_empty() {
            self.clients.planned -= 1;
            return;
        }
        let which = self.random.index(self.clients.runs.len());
        let PastRun { id: of, flow, tags } = self.clients.runs[which].clone();
        let (id, from_start) = (self.next_id(), self.random.chance(30));
        let retry = Retry { id, of, from_start, queue: None, past: None };
        self.ask(Command::Retry(retry), About::Run { flow, tags, id });
    }

    // ---- asking until there is an answer

    pub(super) fn ask(&mut self, command: Command, about: About) {
        self.clients.next += 1;
        let number = self.clients.next;
        self.clients.pending.insert(number, Pending { command, about, again_at: self.now });
        self.repeat(number);
    }

    fn repeat(&mut self, number: u64) {
        let now = self.now;
        let Some(pending) = self.clients.pending.get_mut(&number).filter(|pending| pending.again_at == now)
        else {
            return;
        };
        pending.again_at = now + PATIENCE;
        let command = pending.command.clone();
        let server = self.random.index(self.servers.len());
        self.send(|| Event::Command { server, command: command.clone(), asker: Asker::Client(number) });
        self.after(PATIENCE, Event::Client(Intent::Repeat(number)));
    }

    pub(super) fn client_hears(&mut self, number: u64, answer: Option<Answer>) {
        let Some(answer) = answer else {
            // Nobody leads there: try another soon.
            let span = Span::millis(self.random.between(20, 200));
            let at = self.now + span;
            if let Some(pending) =
                self.clients.pending.get_mut(&number).filter(|pending| at < pending.again_at)
            {
                pending.again_at = at;
                self.after(span, Event::Client(Intent::Repeat(number)));
            }
            return;
        };
        let Some(pending) = self.clients.pending.remove(&number) else { return };
        let accepted = match answer {
            Answer::Accepted { node, .. } => Some(node),
            _ => None,
        };
        match pending.about {
            About::Declared => self.clients.declared = true,
            About::Other => {}
            About::Job(spec) => {
                self.clients.planned -= 1;
                if let Some(node) = accepted {
                    self.clients.roots.push(node);
                    self.oracle.accepted_job(node, spec, self.now);
                }
            }
            About::Run { flow, tags, id } => {
                self.clients.planned -= 1;
                if let Some(node) = accepted {
                    self.clients.roots.push(node);
                    self.clients.runs.push(PastRun { id, flow, tags: tags.clone() });
                    self.oracle.accepted_run(node, id, &self.plan.flows[flow], tags);
                }
            }
            About::Cancel(node) if answer == Answer::Done => {
                for (span, deferred) in self.oracle.cancelled(node, self.now) {
                    self.after(span, Event::Judge(deferred));
                }
            }
            About::Cancel(_) => {}
            About::Limit => self.oracle.limit_changed(self.now),
            About::Paused { what, asked } => self.oracle.paused(what, asked, self.now),
            About::Resumed => self.oracle.resumed(self.now),
        }
    }
}

fn id_key(id: RunId) -> Name {
    Name::from(id.to_string())
}
