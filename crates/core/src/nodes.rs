//! What the core keeps in memory of everything open: jobs, runs, steps, and the items of loops in flight.

use crate::admission::ClassId;
use crate::catalog::Plan;
use crate::ids::{Epoch, Name, NodeId, RunId, TaskId};
use crate::model::{EXPAND_SLICE, queue_of};
use crate::progress::resident;
use crate::protocol::{Idempotency, JobBody, Payload, Stop, Tally};
use crate::state::State;
use crate::time::{Moment, Span};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) enum Node {
    Job(Box<Job>),
    Run(Box<Run>),
    Step(Box<Step>),
}

/// A public id in two halves: a number of 128 bits would round the size of every job up to a multiple of 16.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Halves(u64, u64);

impl From<RunId> for Halves {
    fn from(id: RunId) -> Self {
        Halves((id.0 >> 64) as u64, id.0 as u64)
    }
}

impl From<Halves> for RunId {
    fn from(Halves(high, low): Halves) -> Self {
        RunId(u128::from(high) << 64 | u128::from(low))
    }
}

/// A single action, submitted alone. What it waits for may be waited for by a million others: its size matters.
#[derive(Debug)]
pub(crate) struct Job {
    pub id: Halves,
    pub root: u64,
    pub priority: i8,
    pub paused: bool,
    pub action: Name,
    pub key: Option<Name>,
    pub accepted: Moment,
    pub start_by: Option<Moment>,
    /// Only if it is small; otherwise it is read from the store when needed.
    pub order: Option<Payload>,
    pub seldom: Option<Box<Seldom>>,
    pub work: Work,
}

/// What few jobs are submitted with.
#[derive(Debug)]
pub(crate) struct Seldom {
    idempotency: Option<Idempotency>,
    /// Instead of the default one.
    queue: Option<Name>,
}

impl Seldom {
    pub fn of(body: &JobBody) -> Option<Box<Seldom>> {
        let (idempotency, queue) = (body.idempotency.clone(), queue_of(&body.tags).cloned());
        let is_given = idempotency.is_some() || queue.is_some();
        is_given.then(|| Box::new(Seldom { idempotency, queue }))
    }
}

impl Job {
    pub fn idempotency(&self) -> Option<&Idempotency> {
        self.seldom.as_ref()?.idempotency.as_ref()
    }

    pub fn queue(&self) -> Option<&Name> {
        self.seldom.as_ref()?.queue.as_ref()
    }
}

/// What asks for a worker, or to have a flow run inside it: a job, a plain step or an item.
#[derive(Debug)]
pub(crate) struct Work {
    /// The class it waits in or holds by. While it is scheduled: the last one.
    pub class: ClassId,
    pub tally: Tally,
    /// Since when it is in its present state.
    pub since: Moment,
    pub at: WorkState,
}

#[derive(Debug)]
pub(crate) enum WorkState {
    Scheduled(Moment),
    Waiting,
    Running(Box<Running>),
    /// An item inside of which this run is under way: it holds a place in the window of its loop, and no worker.
    Inside(NodeId),
}

impl Work {
    pub fn state(&self) -> State {
        match self.at {
            WorkState::Scheduled(_) => State::Scheduled,
            WorkState::Waiting => State::Waiting,
            WorkState::Running(_) | WorkState::Inside(_) => State::Running,
        }
    }

    pub fn running(&self) -> Option<&Running> {
        match &self.at {
            WorkState::Running(running) => Some(running),
            _ => None,
        }
    }

    /// The run inside it.
    pub fn inside(&self) -> Option<NodeId> {
        match self.at {
            WorkState::Inside(run) => Some(run),
            _ => None,
        }
    }

    pub fn running_mut(&mut self) -> Option<&mut Running> {
        match &mut self.at {
            WorkState::Running(running) => Some(running),
            _ => None,
        }
    }
}

/// A live grant.
#[derive(Debug)]
pub(crate) struct Running {
    pub epoch: Epoch,
    pub worker: Name,
    pub granted: Moment,
    pub until: Moment,
    pub length: Span,
    pub timeout: Option<Moment>,
    pub stop: Option<Stop>,
    /// Heartbeats of its worker that did not list it.
    pub missing: u8,
    /// It was not renewed since nobody could renew it: losing it is nobody's fault.
    pub excused: bool,
    /// Its worker was gone before the core was loaded: nobody knows to which start of the worker it was given, until
    /// one lists it.
    pub unclaimed: bool,
    /// Its worker has listed it. If it is not on the list any more, it was given up: who delivered it again might have
    /// it started a second time.
    pub received: bool,
}

impl Running {
    /// Whether it was told nothing that says as much. After a timeout a task may be tried again; every other reason
    /// is final.
    pub fn is_news(&self, why: Stop) -> bool {
        match self.stop {
            None => true,
            Some(Stop::TimedOut) => why != Stop::TimedOut,
            Some(_) => false,
        }
    }
}

/// A run of a flow: a root, or the inside of a `flow` step or of an item of such a step.
#[derive(Debug)]
pub(crate) struct Run {
    pub id: Option<RunId>,
    /// The step or item that it is inside of.
    pub parent: Option<TaskId>,
    pub root: u64,
    pub priority: i8,
    pub paused: bool,
    pub plan: Arc<Plan>,
    pub version: u32,
    pub depth: u32,
    pub key: Option<Name>,
    pub tags: Vec<(Name, Name)>,
    pub idempotency: Option<Box<Idempotency>>,
    pub since: Moment,
    pub state: RunState,
    /// The class by which it waits or holds at run level; a sub-flow's run has none.
    pub class: Option<ClassId>,
    pub steps: Vec<StepState>,
    /// Steps that have not ended.
    pub open: u32,
    /// Steps that ended in another run, and which ones there.
    pub reused: BTreeMap<u32, NodeId>,
    /// Steps whose predecessors have all ended, to be looked at.
    pub ready: VecDeque<u32>,
    pub stop: Option<Stop>,
    /// While it is being stopped: the next step to be told.
    pub sweep: Option<u32>,
    pub deadline: Option<Moment>,
    /// Its outputs are being rendered.
    pub ending: bool,
    pub error: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RunState {
    Scheduled(Moment),
    Waiting,
    Running,
}

impl RunState {
    pub fn state(self) -> State {
        match self {
            RunState::Scheduled(_) => State::Scheduled,
            RunState::Waiting => State::Waiting,
            RunState::Running => State::Running,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StepState {
    /// So many predecessors have not ended.
    Blocked(u32),
    /// In the list of ready steps.
    Ready,
    /// Its condition and work are being rendered.
    Asking,
    /// It is a node of its own.
    Open,
    Ended(State),
}

/// A step that is open: its work is known.
#[derive(Debug)]
pub(crate) struct Step {
    pub run: NodeId,
    pub index: u32,
    pub start_by: Option<Moment>,
    /// What it holds at step level, or waits in before it has entered.
    pub class: Option<ClassId>,
    pub entered: bool,
    pub kind: Kind,
    pub since: Moment,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Plain {
        key: Option<Name>,
        order: Option<Payload>,
        work: Option<Work>,
        tally: Tally,
    },
    Loop(Box<Loop>),
    /// The inputs of the run inside are the step's payload.
    SubFlow {
        child: Option<NodeId>,
    },
    Wait {
        until: Moment,
    },
}

impl Kind {
    /// Whether it counts among the steps of its run at once. One that lets time pass does not: what it waits for
    /// comes whether or not there is room.
    pub fn takes_a_place(&self) -> bool {
        !matches!(self, Kind::Wait { .. })
    }
}

/// The items of a loop. Those that never started are ranges in the queue of their class; only those that did are
/// here one by one.
#[derive(Debug, Default)]
pub(crate) struct Loop {
    pub count: u32,
    /// Items whose rows exist.
    pub expanded: u32,
    /// A slice is being rendered.
    pub asking: bool,
    /// Stretches of items that have never started, by their first index.
    pub segments: BTreeMap<u32, Segment>,
    pub items: BTreeMap<u32, Item>,
    /// What items that have not ended are to do, of as many as there is room for. The others' is in the store.
    pub orders: BTreeMap<u32, Payload>,
    pub ended: LoopTally,
    pub stop: Option<Stop>,
    /// Why its items could not be rendered.
    pub error: Option<String>,
}

/// An item that has started once and has not ended.
#[derive(Debug)]
pub(crate) struct Item {
    pub work: Work,
    pub key: Option<Name>,
}

/// Items in a row that share a class. Where it is not yet empty the class exists.
#[derive(Debug)]
pub(crate) struct Segment {
    pub to: u32,
    pub class: ClassId,
    pub key: Option<Name>,
    /// Items of it that have never started.
    pub unstarted: u32,
    /// While the run is paused: what was in the class's queue, as (first index, count). No ranks: its priority may
    /// change meanwhile.
    pub parked: Vec<(u32, u32)>,
}

/// How many items ended, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoopTally {
    pub succeeded: u32,
    pub failed: u32,
    pub cancelled: u32,
}

impl LoopTally {
    pub fn total(&self) -> u32 {
        self.succeeded + self.failed + self.cancelled
    }

    pub fn count(&mut self, state: State) {
        match state {
            State::Succeeded => self.succeeded += 1,
            state if state.is_failure() => self.failed += 1,
            _ => self.cancelled += 1,
        }
    }
}

/// Orders of one loop that are kept in memory.
const ORDERS: usize = 4 * EXPAND_SLICE as usize;

impl Loop {
    /// Items that are expanded and have never started.
    pub fn unstarted(&self) -> u32 {
        self.segments.values().map(|segment| segment.unstarted).sum()
    }

    /// Keeps what these items are to do, if there is room.
    pub fn keep_orders<'a>(&mut self, from: u32, orders: impl Iterator<Item = Option<&'a Payload>>) {
        let room = ORDERS.saturating_sub(self.orders.len());
        let kept = (from..).zip(orders).filter_map(|(index, order)| Some((index, resident(order?)?)));
        self.orders.extend(kept.take(room));
    }

    pub fn segment_of(&self, index: u32) -> Option<&Segment> {
        self.segments
            .range(..=index)
            .next_back()
            .map(|(_, segment)| segment)
            .filter(|segment| index < segment.to)
    }

    /// Item `index` starts for the first time: it is no longer part of its segment, and has a record of its own.
    pub fn open(&mut self, index: u32, work: Work) {
        let Some((&first, segment)) = self.segments.range_mut(..=index).next_back() else { return };
        let key = segment.key.clone();
        segment.unstarted -= 1;
        if segment.unstarted == 0 {
            self.segments.remove(&first);
        }
        self.items.insert(index, Item { work, key });
    }
}

impl Node {
    pub fn work(&self, task: TaskId) -> Option<&Work> {
        match (self, task.index()) {
            (Node::Job(job), None) => Some(&job.work),
            (Node::Step(step), index) => match (&step.kind, index) {
                (Kind::Plain { work, .. }, None) => work.as_ref(),
                (Kind::Loop(items), Some(index)) => items.items.get(&index).map(|item| &item.work),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn work_mut(&mut self, task: TaskId) -> Option<&mut Work> {
        match (self, task.index()) {
            (Node::Job(job), None) => Some(&mut job.work),
            (Node::Step(step), index) => match (&mut step.kind, index) {
                (Kind::Plain { work, .. }, None) => work.as_mut(),
                (Kind::Loop(items), Some(index)) => items.items.get_mut(&index).map(|item| &mut item.work),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn run(&self) -> Option<&Run> {
        match self {
            Node::Run(run) => Some(run),
            _ => None,
        }
    }

    pub fn step(&self) -> Option<&Step> {
        match self {
            Node::Step(step) => Some(step),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_job_is_small() {
        assert!(std::mem::size_of::<Job>() <= 152, "{}", std::mem::size_of::<Job>());
        let id = RunId(0x0199_0000_0000_7000_8000_0000_0000_0001);
        assert_eq!(RunId::from(Halves::from(id)), id);
    }
}
