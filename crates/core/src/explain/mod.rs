//! Why a task waits: from the same code that decides. Every limit that refuses it now, who holds it, its place in
//! line, what it waited for so far, and when it is expected to start.

mod blockers;
mod render;
#[cfg(test)]
mod tests;

pub use render::{brief, describe, render};

use crate::admission::{ClassId, Gauge, LimitKey};
use crate::core::Core;
use crate::ids::{Name, NodeId, TaskId};
use crate::model::Origin;
use crate::nodes::{Kind, Node, RunState, Step, StepState, Work, WorkState};
use crate::protocol::Override;
use crate::state::State;
use crate::time::{Moment, Span};
use serde::{Deserialize, Serialize};

/// Steps of a flow inside something that are told.
const STEPS_INSIDE: usize = 8;

/// Everything there is to say about a task that is open.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Explanation {
    pub name: String,
    pub state: State,
    pub since: Moment,
    pub now: Moment,
    pub priority: i8,
    pub tags: Vec<(Name, Name)>,
    pub reason: Reason,
    /// Limits that refuse it now, in the order in which they are tried.
    pub blockers: Vec<Blocker>,
    pub estimate: Option<Estimate>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Reason {
    /// Something refuses it: see the blockers.
    Blocked,
    /// Nothing refuses it; so many of its kind stand before it.
    InLine {
        ahead: u64,
    },
    Paused,
    /// It or its run starts at this time.
    Scheduled {
        until: Moment,
    },
    /// Steps that have to end before.
    After(Vec<Name>),
    /// Its condition and inputs are being worked out.
    Evaluating,
    Running {
        worker: Option<Name>,
        lease_left: Option<Span>,
        stopping: bool,
    },
    /// A loop: what is left of it.
    Items {
        count: u32,
        ended: u32,
        running: u32,
    },
    /// A flow runs inside it: its steps that are open or may be soon.
    Inside(Vec<StepInside>),
}

/// A step of a flow that runs inside something.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StepInside {
    pub name: Name,
    /// What it waits for, in a few words; nothing if it runs.
    pub waits: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Blocker {
    pub limit: LimitKey,
    pub why: Why,
    pub units: u32,
    /// Tasks that come before it at this limit: of its own class, and heads of better-ranked ones.
    pub ahead: u64,
    /// How many of these have a higher priority: as long as such come, it waits.
    pub above: u64,
    pub holders: Vec<Holder>,
    pub origin: Origin,
    pub declared: Option<u64>,
    pub set: Option<Override>,
    /// How long its class was parked here since it waits.
    pub waited: Span,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Why {
    /// So many of so many units are used, and so many set aside for those before it.
    Full {
        capacity: u64,
        used: u64,
        set_aside: u64,
    },
    Paused,
    /// Lowered below what it needs, or closed.
    TooSmall {
        capacity: u64,
    },
    /// A rate or quota: more comes at this time.
    Pace {
        next: Moment,
    },
    /// No connected worker fits.
    NoWorker,
    /// All fitting slots are taken.
    SlotsTaken {
        slots: u64,
    },
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Holder {
    pub name: String,
    pub units: u32,
    pub since: Moment,
    pub worker: Option<Name>,
    pub lease_left: Option<Span>,
    /// A step that has its place among the steps of its run, and waits for something else.
    pub waits: bool,
}

/// From measured durations; nothing is promised.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    pub likely: Span,
    pub unlikely: Span,
}

impl Core {
    /// Explains a task that is open, or a step of an open run that is not yet.
    pub fn explain(&self, task: TaskId, now: Moment) -> Option<Explanation> {
        let Some(node) = self.nodes.get(&task.node) else { return self.explain_unopened(task.node, now) };
        let (state, since, reason, class) = match node {
            Node::Job(job) => self.explain_work(task, &job.work, now),
            Node::Run(run) => {
                let reason = match run.state {
                    RunState::Scheduled(until) => Reason::Scheduled { until },
                    RunState::Waiting => Reason::Blocked,
                    RunState::Running if self.is_paused(task.node) => Reason::Paused,
                    RunState::Running => {
                        Reason::Running { worker: None, lease_left: None, stopping: run.stop.is_some() }
                    }
                };
                (run.state.state(), run.since, reason, run.class)
            }
            Node::Step(step) => self.explain_step(task, step, now)?,
        };
        Some(self.explanation(task, state, since, reason, class, now))
    }

    fn explanation(
        &self,
        task: TaskId,
        state: State,
        since: Moment,
        reason: Reason,
        class: Option<ClassId>,
        now: Moment,
    ) -> Explanation {
        let rank = self.rank(task);
        let waits = state == State::Waiting && matches!(reason, Reason::Blocked);
        let class = class.filter(|_| waits);
        let blockers = class.map_or_else(Vec::new, |class| self.blockers(class, rank, since, now));
        let reason = match (reason, class) {
            (Reason::Blocked, _) if self.is_paused(task.node) => Reason::Paused,
            (Reason::Blocked, Some(class)) if blockers.is_empty() => {
                Reason::InLine { ahead: self.admission.class(class).ahead_of(rank) }
            }
            (reason, _) => reason,
        };
        let estimate = class.and_then(|_| self.estimate(task.node, &blockers, now));
        let (priority, tags) = (rank.priority(), self.tags_of(task.node));
        let name = self.name(task);
        Explanation { name, state, since, now, priority, tags, reason, blockers, estimate }
    }

    fn explain_work(
        &self,
        task: TaskId,
        work: &Work,
        now: Moment,
    ) -> (State, Moment, Reason, Option<ClassId>) {
        let reason = match &work.at {
            WorkState::Scheduled(until) => Reason::Scheduled { until: *until },
            WorkState::Waiting => Reason::Blocked,
            WorkState::Running(running) => Reason::Running {
                worker: Some(running.worker.clone()),
                lease_left: Some(running.until.since(now)),
                stopping: running.stop.is_some(),
            },
            WorkState::Inside(run) => self.explain_inside(*run, now),
        };
        // A job waits since it was accepted, whatever happened in between.
        let since = match self.nodes.get(&task.node) {
            Some(Node::Job(job)) if work.tally.started == 0 && matches!(work.at, WorkState::Waiting) => {
                job.accepted.max(work.since)
            }
            _ => work.since,
        };
        (work.state(), since, reason, Some(work.class))
    }

    fn explain_step(
        &self,
        task: TaskId,
        step: &Step,
        now: Moment,
    ) -> Option<(State, Moment, Reason, Option<ClassId>)> {
        if !step.entered {
            return Some((State::Waiting, step.since, Reason::Blocked, step.class));
        }
        Some(match (&step.kind, task.index()) {
            (Kind::Plain { work: Some(work), .. }, None) => self.explain_work(task, work, now),
            (Kind::Loop(items), Some(index)) => match items.items.get(&index) {
                Some(item) => self.explain_work(task, &item.work, now),
                None if (items.expanded..items.count).contains(&index) => {
                    // It will stand behind the last that does.
                    let class = items.segments.values().next_back().map(|segment| segment.class);
                    (State::Waiting, step.since, Reason::Blocked, class)
                }
                None => {
                    let segment = items.segment_of(index)?;
                    let rank = self.rank(task);
                    let parked = |&(from, count): &(u32, u32)| (from..from + count).contains(&index);
                    // A stretch keeps its bounds while its items leave it one by one.
                    if !self.admission.class(segment.class).holds(rank) && !segment.parked.iter().any(parked)
                    {
                        return None;
                    }
                    (State::Waiting, step.since, Reason::Blocked, Some(segment.class))
                }
            },
            (Kind::Loop(items), None) => {
                let running =
                    items.items.values().filter(|item| item.work.state() == State::Running).count() as u32;
                let reason = Reason::Items { count: items.count, ended: items.ended.total(), running };
                (State::Running, step.since, reason, None)
            }
            (Kind::Wait { until }, None) => {
                (State::Scheduled, step.since, Reason::Scheduled { until: *until }, None)
            }
            (Kind::SubFlow { child }, None) => {
                let inside = child.map(|child| self.explain_inside(child, now));
                (State::Running, step.since, inside.unwrap_or(Reason::Inside(Vec::new())), None)
            }
            _ => return None,
        })
    }

    /// What the steps of a run inside do or wait for. Those whose turn comes after others say nothing new, and what is
    /// deeper is explained by its own name.
    fn explain_inside(&self, node: NodeId, now: Moment) -> Reason {
        let Some(run) = self.run(node) else { return Reason::Inside(Vec::new()) };
        let has_more_inside = |node| {
            let step = self.step(node).filter(|step| step.entered);
            step.is_some_and(|step| matches!(step.kind, Kind::SubFlow { .. } | Kind::Loop(_)))
        };
        let waits = |node| match has_more_inside(node) {
            true => None,
            false => brief(&self.explain(TaskId::node(node), now)?),
        };
        let is_at_work =
            |state: &StepState| matches!(state, StepState::Open | StepState::Asking | StepState::Ready);
        let at_work = run.steps.iter().enumerate().filter(|(_, state)| is_at_work(state));
        let steps = at_work.take(STEPS_INSIDE).map(|(index, _)| StepInside {
            name: run.plan.flow.steps[index].name.clone(),
            waits: waits(node.step(index)),
        });
        Reason::Inside(steps.collect())
    }

    /// A step whose turn has not come.
    fn explain_unopened(&self, node: NodeId, now: Moment) -> Option<Explanation> {
        let (run_node, run) = self.run_around(node)?;
        let index = (node.0 - run_node.0 - 1) as usize;
        let flow = &run.plan.flow;
        let reason = match run.steps.get(index)? {
            StepState::Ended(_) => return None,
            StepState::Asking | StepState::Ready | StepState::Open => Reason::Evaluating,
            StepState::Blocked(_) => {
                let open = |&&before: &&u32| !matches!(run.steps[before as usize], StepState::Ended(_));
                let names = flow.steps[index].after.iter().filter(open);
                Reason::After(names.map(|&before| flow.steps[before as usize].name.clone()).collect())
            }
        };
        Some(Explanation {
            name: format!("{}/{}", self.name(TaskId::node(run_node)), flow.steps[index].name),
            state: State::Waiting,
            since: run.since,
            now,
            priority: run.priority,
            tags: run.tags.clone(),
            reason,
            blockers: Vec::new(),
            estimate: None,
        })
    }

    fn run_around(&self, node: NodeId) -> Option<(NodeId, &crate::nodes::Run)> {
        let &id = self.begun.range(..node).next_back()?;
        let run = self.run(id)?;
        (node.0 <= id.0 + run.steps.len() as u64).then_some((id, run))
    }

    /// The name that people use: `run_…/step#3`.
    pub fn name(&self, task: TaskId) -> String {
        match self.nodes.get(&task.node) {
            Some(Node::Job(job)) => crate::ids::RunId::from(job.id).to_string(),
            Some(Node::Run(run)) => match (run.id, run.parent) {
                (Some(id), _) => id.to_string(),
                (None, Some(outer)) => self.name(outer),
                (None, None) => format!("{task:?}"),
            },
            Some(Node::Step(step)) => {
                let outer = self.name(TaskId::node(step.run));
                let name = self.step_model(task.node).map_or("?", |model| model.name.as_str());
                match task.index() {
                    Some(index) => format!("{outer}/{name}#{index}"),
                    None => format!("{outer}/{name}"),
                }
            }
            None => format!("{task:?}"),
        }
    }

    fn tags_of(&self, node: NodeId) -> Vec<(Name, Name)> {
        match self.nodes.get(&node) {
            Some(Node::Run(run)) => match run.parent {
                Some(outer) => self.tags_of(outer.node),
                None => run.tags.clone(),
            },
            Some(Node::Step(step)) => self.tags_of(step.run),
            _ => Vec::new(),
        }
    }

    /// Time is known for paces; for units it follows from how long such work took so far, if it did.
    fn estimate(&self, node: NodeId, blockers: &[Blocker], now: Moment) -> Option<Estimate> {
        let durations =
            self.timed_as(node).and_then(|name| self.lines.get(&name)).map(|line| &line.durations);
        let mut longest = Estimate { likely: Span::ZERO, unlikely: Span::ZERO };
        for blocker in blockers {
            let (likely, unlikely) = match blocker.why {
                Why::Paused | Why::TooSmall { .. } | Why::NoWorker => return None,
                Why::Pace { next } => {
                    let wait = next.since(now) + self.pace_of(&blocker.limit, blocker.ahead);
                    (wait, wait)
                }
                Why::Full { capacity: slots, .. } | Why::SlotsTaken { slots } => {
                    let rounds = (blocker.ahead + 1).div_ceil(slots.max(1));
                    (durations?.percentile(50)?.times(rounds), durations?.percentile(90)?.times(rounds))
                }
            };
            longest.likely = longest.likely.max(likely);
            longest.unlikely = longest.unlikely.max(unlikely);
        }
        Some(longest)
    }

    /// How long a rate or quota takes to let so many start.
    fn pace_of(&self, key: &LimitKey, starts: u64) -> Span {
        let gauge = self.admission.find(key).map(|limit| &self.admission.limit(limit).gauge);
        match gauge {
            Some(Gauge::Rate(rate)) => {
                let policy = rate.policy();
                Span(policy.per.0.saturating_mul(starts) / u64::from(policy.limit.max(1)))
            }
            Some(Gauge::Quota(quota)) => {
                let policy = quota.policy();
                policy.window.roughly().times(starts / u64::from(policy.limit.max(1)))
            }
            _ => Span::ZERO,
        }
    }
}
