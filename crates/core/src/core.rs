//! The core itself: commands in, decisions out.

use crate::admission::{Admission, Level, LimitKey, Rank, Rules};
use crate::catalog::Catalog;
use crate::classes::Classes;
use crate::counts::Counts;
use crate::ended_ids::EndedIds;
use crate::ids::{Epoch, Name, NodeId, RunId, TaskId};
use crate::lines::ActionLine;
use crate::model::{Action, EXPAND_SLICE, Flow};
use crate::nodes::{Node, Run, Step, Work};
use crate::open::Open;
use crate::planted::Planted;
use crate::protocol::{Answer, Command, Effect, Lease, Output, Refusal, Write};
use crate::time::Moment;
use crate::timers::Timers;
use crate::workers::Workers;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many steps or items one command opens, skips or cancels; the rest follows with the next.
pub const SLICE: u32 = 256;
/// Writes and effects for which there is room from the beginning, at most.
const OUTPUT_RESERVED: usize = 1_024;

/// Everything open, and the rules that move it. A cache of the store: it can be dropped and loaded again.
#[derive(Debug, Default)]
pub struct Core {
    pub(crate) admission: Admission,
    pub(crate) catalog: Catalog,
    pub(crate) classes: Classes,
    pub(crate) nodes: Open,
    /// Runs that have begun, also those inside others.
    pub(crate) begun: BTreeSet<NodeId>,
    /// Ids sort by their time, so that here, too, only the two ends are touched.
    pub(crate) by_id: BTreeMap<RunId, NodeId>,
    pub(crate) by_key: BTreeMap<Name, (NodeId, u64)>,
    pub(crate) ended_ids: EndedIds,
    pub(crate) workers: Workers,
    pub(crate) lines: FxHashMap<Name, ActionLine>,
    pub(crate) counts: Counts,
    pub(crate) timers: Timers,
    pub(crate) override_ends: BTreeSet<(Moment, LimitKey)>,
    /// Runs and loops with more to do than one command may.
    pub(crate) busy: BTreeSet<NodeId>,
    /// Items of a loop that are expanded together.
    pub(crate) slice: u32,
    /// The next number for a node or a place in line.
    pub(crate) next: u64,
    pub(crate) incarnation: u32,
    pub(crate) grants: u64,
    /// When workers could last begin to be heard, after nobody could hear them.
    pub(crate) patient_since: Moment,
    pub(crate) now: Moment,
    pub(crate) out: Output,
    pub(crate) planted: Planted,
}

impl Core {
    /// An empty core. `incarnation` must be higher than that of any core loaded from the same store before.
    pub fn new(incarnation: u32) -> Self {
        Core::with_rules(incarnation, Rules::default())
    }

    pub fn with_rules(incarnation: u32, rules: Rules) -> Self {
        Core {
            admission: Admission::new(rules),
            incarnation,
            next: 1,
            slice: EXPAND_SLICE,
            ..Core::default()
        }
    }

    /// Expands so many items of a loop at a time. Tests want few, so that it happens often.
    pub fn expanding_by(self, items: u32) -> Self {
        Core { slice: items, ..self }
    }

    #[cfg(feature = "planted-bugs")]
    pub fn plant(&mut self, bug: crate::planted::Bug) {
        self.planted = Planted::bug(bug);
        self.admission.planted = Planted::bug(bug);
    }

    /// Carries out a command. Never fails: a refusal is an answer, and changes nothing.
    ///
    /// What it wants written and done is collected until [`Core::take_output`].
    pub fn apply(&mut self, command: Command, now: Moment) -> Answer {
        // Clocks of leaders differ; time never goes back for a task.
        let now = now.max(self.now);
        self.notice_lateness(now);
        self.now = now;
        let mut budget = self.admission.begin();
        // Any command may be the first after a rate has refilled, and nobody may be overlooked by it.
        self.admission.wake(now);
        let is_submission =
            matches!(command.plain(), Command::Submit(_) | Command::Post { .. } | Command::Retry(_));
        let answer = self.carry_out(command, now).unwrap_or_else(|refusal| {
            self.counts.refused += u64::from(is_submission);
            self.counts.fenced += u64::from(refusal == Refusal::Stale);
            Answer::Refused(refusal)
        });
        self.settle(now, &mut budget);
        self.admission.settle_wakes(now);
        #[cfg(debug_assertions)]
        self.check();
        answer
    }

    pub(crate) fn carry_out(&mut self, command: Command, now: Moment) -> Result<Answer, Refusal> {
        match command {
            Command::Declare(declare) => self.declare(declare, now),
            Command::Submit(submit) => self.submit(submit, now),
            Command::Post { submit, flaw } => Ok(self.post(submit, flaw, now)),
            Command::Retry(retry) => self.retry(retry, now),
            Command::Cancel(task) => self.cancel(task, now),
            Command::Finish(finish) => self.finish(finish, now),
            Command::Heartbeat(heartbeat) => self.heartbeat(heartbeat, now),
            Command::Join(join) => self.join(join, now),
            Command::Leave(leave) => self.leave(leave, now),
            Command::Offer { worker, incarnation, slots } => self.offer(&worker, incarnation, slots, now),
            Command::SetLimit(set) => self.set_limit(set, now),
            Command::SetPriority { node, priority } => self.set_priority(node, priority, now),
            Command::Pause(what) => self.pause(what, now),
            Command::Resume(what) => self.resume(what, now),
            Command::Evaluated { question, evaluation } => self.evaluated(question, evaluation, now),
            Command::Wake => self.wake(now),
            Command::SetToken(token) => self.set_token(token, now),
            Command::RevokeToken { id } => self.revoke_token(id),
            Command::By { who, command } => self.by(who, *command, now),
        }
    }

    /// Lets everybody start who may, and follows up what that sets in motion. A level's grants only ever make
    /// deeper levels ask, so one pass over the levels is enough; long lists go on with the next command.
    fn settle(&mut self, now: Moment, budget: &mut u32) {
        let mut slice = SLICE;
        loop {
            self.go_on(now, &mut slice);
            let mut granted = false;
            for level in Level::ALL {
                while let Some(grant) = self.admission.next_grant(level, now, budget) {
                    granted = true;
                    self.granted(grant, now);
                }
            }
            if !granted && (self.busy.is_empty() || slice == 0) {
                break;
            }
        }
    }

    /// Works off what runs and loops have still to do, in slices.
    fn go_on(&mut self, now: Moment, slice: &mut u32) {
        while *slice > 0 {
            let Some(&node) = self.busy.first() else { return };
            let more = match self.nodes.get(&node) {
                Some(Node::Run(_)) => self.go_on_with_run(node, now, slice),
                Some(Node::Step(_)) => self.go_on_with_loop(node, now, slice),
                _ => false,
            };
            if !more {
                self.busy.remove(&node);
            }
        }
    }

    /// When the core wants to be woken, if nothing else happens before.
    pub fn next_wake(&self) -> Option<Moment> {
        if self.admission.is_pending() || !self.busy.is_empty() {
            return Some(self.now);
        }
        let overrides = self.override_ends.first().map(|&(at, _)| at);
        let leases = self.workers.next_check();
        [self.timers.next(), overrides, leases, self.admission.next_wake()].into_iter().flatten().min()
    }

    /// What the commands since the last call want written and done.
    pub fn take_output(&mut self) -> Output {
        // The next batch is mostly as long as the last one: it need not be copied while it grows.
        let writes = Vec::with_capacity(self.out.writes.len().min(OUTPUT_RESERVED));
        let effects = Vec::with_capacity(self.out.effects.len().min(OUTPUT_RESERVED));
        std::mem::replace(&mut self.out, Output { writes, effects })
    }

    /// How many writes wait to be taken.
    pub fn pending_writes(&self) -> usize {
        self.out.writes.len()
    }

    /// The next number that will be given out. An entry carries it, so that no number is given twice.
    pub fn next(&self) -> u64 {
        self.next
    }

    pub fn now(&self) -> Moment {
        self.now
    }

    /// What is open, in a line: for a message about something that should not be.
    pub fn describe_open(&self, now: Moment) -> String {
        let nodes = self.nodes.ids();
        let explained = nodes.iter().filter_map(|&node| self.explain(TaskId::node(node), now));
        let texts: Vec<String> =
            explained.take(8).map(|explanation| crate::explain::render(&explanation)).collect();
        format!("{} open: {}", nodes.len(), texts.join("; "))
    }

    /// Nothing is open, and nothing is held.
    pub fn is_idle(&self) -> bool {
        self.nodes.is_empty()
    }

    // ---- small things that everybody needs

    pub(crate) fn write(&mut self, write: Write) {
        self.out.writes.push(write);
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.out.effects.push(effect);
    }

    pub(crate) fn next_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    pub(crate) fn next_epoch(&mut self) -> Epoch {
        self.grants += 1;
        Epoch { incarnation: self.incarnation, grant: self.grants }
    }

    pub(crate) fn run(&self, node: NodeId) -> Option<&Run> {
        self.nodes.get(&node)?.run()
    }

    pub(crate) fn run_mut(&mut self, node: NodeId) -> Option<&mut Run> {
        match self.nodes.get_mut(&node) {
            Some(Node::Run(run)) => Some(run),
            _ => None,
        }
    }

    pub(crate) fn step(&self, node: NodeId) -> Option<&Step> {
        self.nodes.get(&node)?.step()
    }

    pub(crate) fn step_mut(&mut self, node: NodeId) -> Option<&mut Step> {
        match self.nodes.get_mut(&node) {
            Some(Node::Step(step)) => Some(step),
            _ => None,
        }
    }

    /// The rank of a task: priority and sequence are those of its root.
    pub(crate) fn rank(&self, task: TaskId) -> Rank {
        let (priority, root) = match self.nodes.get(&task.node) {
            Some(Node::Job(job)) => (job.priority, job.root),
            Some(Node::Run(run)) => (run.priority, run.root),
            Some(Node::Step(step)) => self.run(step.run).map_or((0, 0), |run| (run.priority, run.root)),
            None => (0, 0),
        };
        Rank::new(priority, root, task)
    }

    /// Whether a task, or the run around it, or a run around that, is paused.
    pub(crate) fn is_paused(&self, node: NodeId) -> bool {
        match self.nodes.get(&node) {
            Some(Node::Job(job)) => job.paused,
            Some(Node::Run(run)) => run.paused || run.parent.is_some_and(|task| self.is_paused(task.node)),
            Some(Node::Step(step)) => self.is_paused(step.run),
            None => false,
        }
    }

    /// The newest version of a flow that is not newer than `version`, for whoever renders its templates.
    pub fn flow(&self, name: &Name, version: u32) -> Option<Arc<Flow>> {
        self.catalog.flow(name.as_str(), version).map(|(_, plan)| plan.flow.clone())
    }

    pub fn action(&self, name: &Name) -> Option<Arc<Action>> {
        self.catalog.definition(name).cloned()
    }

    /// The workers that are connected, and which start of each.
    pub fn connected(&self) -> impl Iterator<Item = (&Name, u64)> {
        self.workers
            .iter()
            .filter(|(_, worker)| worker.connected)
            .map(|(name, worker)| (name, worker.incarnation))
    }

    /// Which start of a worker is connected here. Whatever is handed to a worker is handed to this one only: a
    /// server that no longer leads may know an earlier start, and have something for it that was given away since.
    pub fn incarnation(&self, worker: &Name) -> Option<u64> {
        self.workers.get(worker).filter(|worker| worker.connected).map(|worker| worker.incarnation)
    }

    /// Whether a lease is live. What waited for its worker to ask for it is handed over only if it still is: the
    /// worker that asks may have been started anew.
    pub fn is_live(&self, lease: Lease) -> bool {
        self.work(lease.task).and_then(Work::running).is_some_and(|running| running.epoch == lease.epoch)
    }

    /// The public id of the root that a node belongs to.
    pub fn root_id(&self, node: NodeId) -> Option<RunId> {
        match self.nodes.get(&node)? {
            Node::Job(job) => Some(job.id.into()),
            Node::Run(run) => run.id.or_else(|| self.root_id(run.parent?.node)),
            Node::Step(step) => self.root_id(step.run),
        }
    }
}
