//! The judge. It knows what was asked for, sees what workers physically did and what callers were told, and reads
//! the durable rows; it knows nothing of how the core decides.
//!
//! Rules about order are judged only over stretches in which nothing was disturbed, because only then does what is
//! seen on the workers tell everything about what was granted.

mod ahead;
mod ends;
mod grants;
mod limits;
mod order;
mod pauses;
mod workers;

use crate::world::{GRACE, JobKind, Plan};
use ahead::Ahead;
use limits::Limits;
use pauses::Pauses;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use tidegate_core::Asked;
use tidegate_core::admission::LimitKey;
use tidegate_core::ids::{Epoch, Name, NodeId, RunId, TaskId};
use tidegate_core::model::{Flow, LEASE, Line, WhenBusy};
use tidegate_core::protocol::{Lease, Payload};
use tidegate_core::time::{Moment, Span};

/// Clocks and messages may differ by this much before it means anything.
pub(crate) const SLACK: Span = Span::millis(60);

/// A promise that was broken.
#[derive(Clone, Debug)]
pub struct Violation {
    pub invariant: &'static str,
    pub what: String,
    pub at: Moment,
}

impl Violation {
    pub fn new(invariant: &'static str, what: String, at: Moment) -> Self {
        Violation { invariant, what, at }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} broken at {:?}: {}", self.invariant, self.at, self.what)
    }
}

/// A job as its submitter understands it.
#[derive(Clone, Debug)]
pub struct JobSpec {
    pub label: String,
    pub action: Name,
    pub demands: Vec<(LimitKey, u32)>,
    pub priority: i8,
    attempts: u32,
    max_losses: u32,
    pause: Span,
    when_busy: WhenBusy,
    line: Line,
    delayed: bool,
    has_timeout: bool,
    /// It needs nothing but its limits: workers for it are never short.
    ample: bool,
}

impl JobSpec {
    pub fn new(id: RunId, kind: &JobKind, key: Option<Name>, priority: i8, _now: Moment) -> Self {
        JobSpec {
            label: format!("job/{}/{id}", kind.action),
            action: kind.action.clone(),
            demands: kind.demands(key.as_ref()),
            priority,
            attempts: kind.attempts,
            max_losses: kind.max_losses,
            pause: Span::millis(700),
            when_busy: kind.when_busy,
            line: kind.line,
            delayed: kind.delayed,
            has_timeout: kind.timeout.is_some(),
            ample: kind.queue == "ample",
        }
    }
}

/// What is known of an accepted job.
#[derive(Debug)]
pub(crate) struct Job {
    pub spec: JobSpec,
    pub node: NodeId,
    pub accepted: Moment,
    /// Order is not judged: it was cancelled, re-ranked or paused, or took another's place.
    pub odd: bool,
    pub cancel_asked: Option<Moment>,
    pub cancel_done: Option<Moment>,
    /// In line again from this time, after a failure.
    pub again: Option<Moment>,
    /// The first grant of it that a server sent on its way, or that the store had before any was.
    pub first: Option<(Epoch, Moment)>,
}

/// What physically happened to one label.
#[derive(Debug, Default)]
pub(crate) struct Deeds {
    pub starts: u32,
    pub failures: u32,
    pub handed_back: u32,
    pub lost: u32,
    pub maybe_lost: u32,
    /// Starts that were aborted, or whose grants were never made durable.
    pub undone: u32,
    /// Its worker gave it up because nobody renewed its lease.
    pub given_up: u32,
    pub succeeded: bool,
    pub succeeded_told: bool,
}

#[derive(Debug)]
pub(crate) struct Root {
    pub when_busy: WhenBusy,
    pub has_timeout: bool,
    pub cancel_asked: Option<Moment>,
    pub cancel_done: Option<Moment>,
}

/// Something to be looked at later.
#[derive(Clone, Debug)]
pub enum Deferred {
    /// The worker of this lease died; by now it must have been noticed.
    LeaseIsOver { lease: Lease, worker: Name, since: Moment },
    /// This root was cancelled; by now it must have ended, if nothing was disturbed for long enough.
    CancelIsOver { node: NodeId, since: Moment, calm: Moment },
}

#[derive(Debug)]
pub(crate) struct Handed {
    pub label: String,
    pub worker: Name,
    pub at: Moment,
    pub length: Span,
    /// Which attempt of its task it is.
    pub number: u32,
    pub started: bool,
    /// When it was first reported.
    pub over: Option<Moment>,
    /// The report was answered, or lost with its worker.
    pub answered: bool,
}

pub struct Oracle {
    pub commands: u64,
    pub faults: BTreeMap<&'static str, u64>,
    pub tested: BTreeMap<&'static str, u64>,
    kinds: BTreeMap<Name, JobKind>,
    pub(crate) jobs: BTreeMap<String, Job>,
    /// Jobs seen on workers before their submitter was answered.
    labels: BTreeMap<NodeId, String>,
    pub(crate) roots: BTreeMap<NodeId, Root>,
    root_ids: BTreeMap<String, NodeId>,
    pub(crate) deeds: BTreeMap<String, Deeds>,
    pub(crate) handed: BTreeMap<Lease, Handed>,
    /// The same for jobs whose submitters were not answered yet.
    first: BTreeMap<String, (Epoch, Moment)>,
    newest: BTreeMap<TaskId, Epoch>,
    pub(crate) limits: Limits,
    shut_down: BTreeMap<Name, Moment>,
    /// When a worker last asked to join or to leave, or ended.
    turned: BTreeMap<Name, Moment>,
    last_disturbance: Moment,
    server_troubles: u32,
    lossless: bool,
    begun: BTreeSet<String>,
    pauses: Pauses,
    ahead: Ahead,
    embedded: bool,
    /// What was submitted, whether or not its submitter was answered.
    specs: BTreeMap<String, JobSpec>,
}

impl Oracle {
    pub fn new(plan: &Plan) -> Self {
        let trouble = plan.trouble;
        Oracle {
            commands: 0,
            faults: BTreeMap::new(),
            tested: BTreeMap::new(),
            kinds: plan.kinds.iter().map(|kind| (kind.action.clone(), kind.clone())).collect(),
            jobs: BTreeMap::new(),
            labels: BTreeMap::new(),
            roots: BTreeMap::new(),
            root_ids: BTreeMap::new(),
            deeds: BTreeMap::new(),
            handed: BTreeMap::new(),
            first: BTreeMap::new(),
            newest: BTreeMap::new(),
            limits: Limits::new(plan),
            shut_down: BTreeMap::new(),
            turned: BTreeMap::new(),
            last_disturbance: Moment(0),
            server_troubles: 0,
            lossless: trouble.lost
                + trouble.late
                + trouble.server_pauses
                + trouble.worker_pauses
                + trouble.worker_cuts
                == 0,
            begun: BTreeSet::new(),
            pauses: Pauses::default(),
            ahead: Ahead::default(),
            embedded: plan.embedded,
            specs: BTreeMap::new(),
        }
    }

    pub fn kind_of(&self, label: &str) -> Option<&JobKind> {
        self.kinds.get(label.strip_prefix("job/")?.split('/').next()?)
    }

    pub(crate) fn test(&mut self, invariant: &'static str) {
        *self.tested.entry(invariant).or_default() += 1;
    }

    pub fn count_fault(&mut self, what: &'static str) {
        *self.faults.entry(what).or_default() += 1;
    }

    pub(crate) fn disturb(&mut self, now: Moment) {
        self.last_disturbance = now;
        self.server_troubles += 1;
    }

    /// Nothing was disturbed since then.
    pub(crate) fn calm_since(&self, since: Moment) -> bool {
        self.last_disturbance < since && self.pauses.under_way == 0
    }

    pub(crate) fn deeds(&mut self, label: &str) -> &mut Deeds {
        if !self.deeds.contains_key(label) {
            self.deeds.insert(label.to_owned(), Deeds::default());
        }
        self.deeds.entry(label.to_owned()).or_default()
    }

    // ---- what submitters were told

    pub fn submits(&mut self, spec: &JobSpec) {
        self.specs.insert(spec.label.clone(), spec.clone());
    }

    pub fn accepted_job(&mut self, node: NodeId, spec: JobSpec, now: Moment) {
        let label = spec.label.clone();
        let job = Job {
            odd: spec.when_busy != WhenBusy::Queue || spec.delayed,
            spec,
            node,
            accepted: now,
            cancel_asked: None,
            cancel_done: None,
            again: None,
            first: self.first.remove(&label),
        };
        self.labels.insert(node, label.clone());
        self.jobs.insert(label, job);
    }

    pub fn accepted_run(&mut self, node: NodeId, id: RunId, flow: &Flow, tags: Vec<(Name, Name)>) {
        self.limits.run_accepted(id.to_string(), flow.name.clone(), tags);
        self.root_ids.insert(id.to_string(), node);
        let (when_busy, has_timeout) = (flow.when_busy, flow.timeout.is_some());
        self.roots.insert(node, Root { when_busy, has_timeout, cancel_asked: None, cancel_done: None });
    }

    pub fn cancelling(&mut self, node: NodeId, now: Moment) {
        if let Some(job) = self.labels.get(&node).and_then(|label| self.jobs.get_mut(label)) {
            job.odd = true;
            job.cancel_asked.get_or_insert(now);
        }
        if let Some(root) = self.roots.get_mut(&node) {
            root.cancel_asked.get_or_insert(now);
        }
    }

    /// A cancel was confirmed. Says when to look whether it is so: soon where all workers are well and have been for
    /// a while, after a lease where one may be dead.
    pub fn cancelled(&mut self, node: NodeId, now: Moment) -> [(Span, Deferred); 2] {
        if let Some(job) = self.labels.get(&node).and_then(|label| self.jobs.get_mut(label)) {
            job.cancel_done.get_or_insert(now);
        }
        if let Some(root) = self.roots.get_mut(&node) {
            root.cancel_done.get_or_insert(now);
        }
        let ended = |calm| Deferred::CancelIsOver { node, since: now, calm };
        // Where a commit may take its time, so may the end.
        let soon = GRACE + Span::seconds(if self.embedded { 14 } else { 2 });
        [(soon, ended(now - LEASE.times(2))), (LEASE + Span::seconds(10), ended(now))]
    }

    pub fn reranked(&mut self, node: NodeId) {
        if let Some(job) = self.labels.get(&node).and_then(|label| self.jobs.get_mut(label)) {
            job.odd = true;
        }
    }

    pub fn limit_is_changing(&mut self, key: &LimitKey, value: Option<u32>, now: Moment) {
        self.limits.is_changing(key, value, now);
        // Who was parked may be aside for a while: order is judged anew.
        self.last_disturbance = now;
    }

    pub fn limit_changed(&mut self, now: Moment) {
        self.last_disturbance = now;
    }

    /// A step's work was rendered: what it needs is known from now on.
    pub fn step_begins(&mut self, run: &str, label: &str, asked: &Asked, step: u32) {
        self.limits.step_begins(run, label, asked, step);
        self.begun.insert(label.to_owned());
    }

    // ---- what physically happened

    pub fn started(
        &mut self,
        label: &str,
        lease: Lease,
        worker: &Name,
        running: usize,
        slots: u32,
        now: Moment,
    ) -> Result<(), Violation> {
        if let Some(violation) = self.limits.pending.pop() {
            return Err(violation);
        }
        self.deeds(label).starts += 1;
        if self.deeds[label].starts > 1 {
            self.test("I8");
        }
        if running > slots as usize {
            return Err(Violation::new(
                "I1",
                format!("{running} processes on {worker}, which has {slots} slots"),
                now,
            ));
        }
        self.no_start_after_shutdown(worker, now)?;
        self.no_start_after_cancel(label, lease, now)?;
        self.no_start_while_paused(label, lease, now)?;
        self.no_start_too_late(label, lease, now)?;
        self.no_start_ahead_of_its_time(label, lease, now)?;
        self.bounded_starts(label, now)?;
        let granted = self.handed.get(&lease).map_or(now, |handed| handed.at);
        let root = self.root_of(label);
        let demands = self.demands_of(label);
        let tests = self.limits.started(label, lease, granted, demands, root, now)?;
        tests.into_iter().for_each(|invariant| self.test(invariant));
        self.judge_order(label, lease, granted, now)
    }

    pub fn ended(&mut self, label: &str, lease: Lease, _now: Moment) {
        self.limits.ended(label, lease);
    }

    fn demands_of(&self, label: &str) -> Vec<(LimitKey, u32)> {
        match self.specs.get(label) {
            Some(spec) => spec.demands.clone(),
            None => self.limits.step_demands(label),
        }
    }

    /// The run that a step's label belongs to, by its public id.
    fn root_of(&self, label: &str) -> Option<String> {
        if label.starts_with("job/") { None } else { label.split(':').next().map(str::to_owned) }
    }
}

/// The label in an order: how what a worker runs is recognised.
pub(crate) fn label_of(order: &Payload) -> String {
    String::from_utf8_lossy(order.bytes()).trim_matches('"').to_owned()
}
