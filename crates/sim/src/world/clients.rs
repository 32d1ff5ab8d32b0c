//! Clients: they submit, cancel and change things, and ask again until they get an answer.

use super::{Asker, Event, World};
use crate::oracle::JobSpec;
use std::collections::BTreeMap;
use tidegate_core::admission::LimitKey;
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::{
    Answer, Command, Declare, LimitValue, Pausable, Payload, SetLimit, Submission, Submit,
};
use tidegate_core::time::Span;

/// A client that got no answer asks again after this time, perhaps elsewhere.
const PATIENCE: Span = Span::millis(1_500);

#[derive(Clone, Debug)]
pub(crate) enum Intent {
    Declare,
    SubmitJob {
        kind: usize,
    },
    SubmitRun {
        flow: usize,
    },
    CancelSomething,
    ChangeLimit,
    RestoreLimit(LimitKey),
    ChangePriority,
    PauseSomething,
    Resume(Pausable),
    /// Ask again, if there was no answer yet.
    Repeat(u64),
}

#[derive(Debug)]
struct Pending {
    command: Command,
    about: About,
}

/// What the answer means.
#[derive(Clone, Debug)]
enum About {
    Declared,
    Job(JobSpec),
    Run { flow: usize, tags: Vec<(Name, Name)>, id: RunId },
    Cancel(NodeId),
    Limit { key: LimitKey, value: Option<u32> },
    Other,
}

#[derive(Debug, Default)]
pub(crate) struct Clients {
    pending: BTreeMap<u64, Pending>,
    next: u64,
    next_id: u128,
    /// Roots that were accepted, and may still be open.
    roots: Vec<NodeId>,
    planned: u64,
    declared: bool,
    changed: Vec<LimitKey>,
    paused: Vec<Pausable>,
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
        self.plan_streams();
    }

    /// Bursts of one kind, and steady streams of narrow tasks around wide ones: where order goes wrong if it does.
    fn plan_streams(&mut self) {
        let kind = |world: &World, name: &str| {
            world.plan.kinds.iter().position(|kind| kind.action.as_str() == name).unwrap_or(0)
        };
        let begin = Span::millis(self.random.between(1_000, 5_000));
        for (name, count, gap) in
            [("left1", 80, 50), ("right1", 80, 50), ("gate1", 16, 60), ("retried", 6, 120)]
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
                };
                self.ask(Command::Declare(declare), About::Declared);
            }
            Intent::SubmitJob { .. } | Intent::SubmitRun { .. } if !self.clients.declared => {
                self.after(Span::millis(100), Event::Client(intent));
            }
            Intent::SubmitJob { kind } => self.submit_job(kind),
            Intent::SubmitRun { flow } => self.submit_run(flow),
            Intent::CancelSomething => {
                if let Some(node) = self.some_root() {
                    self.oracle.cancelling(node, self.now);
                    self.ask(Command::Cancel(TaskId::node(node)), About::Cancel(node));
                }
            }
            Intent::ChangeLimit => self.change_limit(),
            Intent::RestoreLimit(key) => self.set_limit(key, None),
            Intent::ChangePriority => {
                if let Some(node) = self.some_root() {
                    let priority = self.random.between(0, 2) as i8;
                    self.oracle.reranked(node);
                    self.ask(Command::SetPriority { node, priority }, About::Other);
                }
            }
            Intent::PauseSomething => {
                if let Some(node) = self.some_root() {
                    self.oracle.reranked(node);
                    self.clients.paused.push(Pausable::Node(node));
                    self.ask(Command::Pause(Pausable::Node(node)), About::Other);
                    let span = Span::millis(self.random.between(100, 9_000));
                    self.after(span, Event::Client(Intent::Resume(Pausable::Node(node))));
                }
            }
            Intent::Resume(what) => self.ask(Command::Resume(what), About::Other),
            Intent::Repeat(number) => self.repeat(number),
        }
    }

    /// What was lowered is raised again, what was paused goes on.
    pub(super) fn clients_heal(&mut self) {
        // Twice, because what was sent before may still be on its way.
        for wait in [Span::ZERO, Span::seconds(6)] {
            for key in self.clients.changed.clone() {
                self.after(wait, Event::Client(Intent::RestoreLimit(key)));
            }
            for what in self.clients.paused.clone() {
                self.after(wait, Event::Client(Intent::Resume(what)));
            }
        }
    }

    /// Claims every pool as a whole and every narrow action once: what leaked is missed now.
    pub(super) fn probe(&mut self) {
        for name in ["gateall", "leftall", "rightall", "toolall", "retried", "solo"] {
            let kind = self.plan.kinds.iter().position(|kind| kind.action.as_str() == name);
            if let Some(kind) = kind {
                self.clients.planned += 1;
                self.submit_job(kind);
            }
        }
    }

    fn some_root(&mut self) -> Option<NodeId> {
        let recent = self.clients.roots.len().saturating_sub(30);
        let roots = &self.clients.roots[recent..];
        (!roots.is_empty()).then(|| roots[self.random.index(roots.len())])
    }

    fn next_id(&mut self) -> RunId {
        self.clients.next_id += 1;
        RunId(self.clients.next_id)
    }

    fn submit_job(&mut self, kind: usize) {
        let id = self.next_id();
        let priority = if self.random.chance(85) { 0 } else { self.random.between(1, 2) as i8 };
        let kind = &self.plan.kinds[kind];
        let key = kind.keyed.then(|| Name::from(*self.random.pick(&super::plan::KEYS)));
        let spec = JobSpec::new(id, kind, key.clone(), priority, self.now);
        let what = Submission::Job {
            action: kind.action.clone(),
            key,
            order: Payload::new(format!("\"{}\"", spec.label)),
        };
        let submit =
            Submit { id, what, tags: Vec::new(), priority, due: None, idempotency: Some(id_key(id)) };
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
        let submit =
            Submit { id, what, tags: tags.clone(), priority: 0, due: None, idempotency: Some(id_key(id)) };
        self.ask(Command::Submit(submit), About::Run { flow, tags, id });
    }

    fn change_limit(&mut self) {
        let pools = ["tool", "right", "left", "gate"];
        let pool = *self.random.pick(&pools);
        let key = LimitKey::Pool(Name::from(pool));
        let value = self.random.below(8) as u32;
        self.set_limit(key.clone(), Some(value));
        self.clients.changed.push(key.clone());
        let span = Span::millis(self.random.between(500, 8_000));
        self.after(span, Event::Client(Intent::RestoreLimit(key)));
    }

    fn set_limit(&mut self, key: LimitKey, value: Option<u32>) {
        *self.oracle.faults.entry("limit changed").or_default() += 1;
        self.oracle.limit_is_changing(&key, value, self.now);
        let set = SetLimit {
            key: key.clone(),
            value: value.map(LimitValue::Units),
            by: "operator".into(),
            until: None,
        };
        self.ask(Command::SetLimit(set), About::Limit { key, value });
    }

    // ---- asking until there is an answer

    fn ask(&mut self, command: Command, about: About) {
        self.clients.next += 1;
        let number = self.clients.next;
        self.clients.pending.insert(number, Pending { command, about });
        self.repeat(number);
    }

    fn repeat(&mut self, number: u64) {
        let Some(pending) = self.clients.pending.get(&number) else { return };
        let command = pending.command.clone();
        let server = self.random.index(self.servers.len());
        self.send(|| Event::Command { server, command: command.clone(), asker: Asker::Client(number) });
        self.after(PATIENCE, Event::Client(Intent::Repeat(number)));
    }

    pub(super) fn client_hears(&mut self, number: u64, answer: Option<Answer>) {
        let Some(answer) = answer else {
            // Nobody leads there: try another soon.
            let span = Span::millis(self.random.between(20, 200));
            return self.after(span, Event::Client(Intent::Repeat(number)));
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
                    self.oracle.accepted_run(node, id, &self.plan.flows[flow], &tags, self.now);
                }
            }
            About::Cancel(node) => {
                let done = answer == Answer::Done;
                if let Some(deferred) = self.oracle.cancelled(node, done, self.now) {
                    self.after(Span::seconds(40), Event::Judge(deferred));
                }
            }
            About::Limit { key, value } => self.oracle.limit_changed(&key, value, self.now),
        }
    }
}

fn id_key(id: RunId) -> Name {
    Name::from(id.to_string())
}
