//! What is written and done, said in a line each, with the names that the script gave.

use super::limits;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tidegate_core::Core;
use tidegate_core::explain::Reason;
use tidegate_core::ids::{NodeId, RunId, TaskId};
use tidegate_core::model::Flow;
use tidegate_core::protocol::{
    ActionRow, Body, DeclaredRow, ItemRunBody, LimitRow, NodeRow, StepBody, StepKind, Stop, Write,
};
use tidegate_core::state::State;
use tidegate_core::time::Moment;

/// Names of everything that ever was.
#[derive(Default)]
pub struct Names {
    roots: BTreeMap<RunId, String>,
    nodes: BTreeMap<NodeId, String>,
    tasks: BTreeMap<String, TaskId>,
    flows: BTreeMap<NodeId, Arc<Flow>>,
    /// Runs of sub-flows: the step around them says what there is to say.
    inner: BTreeSet<NodeId>,
    waits: BTreeMap<NodeId, Moment>,
}

impl Names {
    /// A root that is about to be submitted under a name. A name may be given again when its task has ended.
    pub fn root(&mut self, name: &str) -> RunId {
        let id = RunId(self.roots.len() as u128 + 1);
        self.roots.insert(id, name.to_owned());
        id
    }

    /// Of the root that had this name last.
    pub fn id(&self, name: &str) -> Result<RunId, String> {
        let known = self.roots.iter().rev().find(|(_, known)| *known == name);
        known.map(|(id, _)| *id).ok_or_else(|| format!("there never was a `{name}`"))
    }

    pub fn node(&self, node: NodeId) -> &str {
        self.nodes.get(&node).map_or("?", String::as_str)
    }

    pub fn name(&self, task: TaskId) -> String {
        match task.index() {
            Some(index) => format!("{}#{index}", self.node(task.node)),
            None => self.node(task.node).to_owned(),
        }
    }

    /// `a`, `r/step`, `r/loop#3`, `r/sub/step`, `r/loop#3/step`.
    pub fn task(&self, name: &str) -> Result<TaskId, String> {
        let known = |name: &str| {
            let task = self.tasks.get(name).copied().or_else(|| self.unopened(name));
            task.ok_or_else(|| format!("there never was a `{name}`"))
        };
        match name.rsplit_once('#').filter(|(_, index)| !index.contains('/')) {
            Some((step, index)) => {
                let index = index.parse().map_err(|_| format!("`{index}` is no index"))?;
                Ok(TaskId::item(known(step)?.node, index))
            }
            None => known(name),
        }
    }

    /// A step of a known run that is not a task of its own yet.
    fn unopened(&self, name: &str) -> Option<TaskId> {
        let (run, step) = name.rsplit_once('/')?;
        let run = self.nodes.iter().rev().find(|(node, name)| *name == run && self.flows.contains_key(node));
        let (run, _) = run?;
        let steps = &self.flows.get(run)?.steps;
        let index = steps.iter().position(|model| model.name.as_str() == step)?;
        Some(TaskId::node(run.step(index)))
    }

    /// Text with the names of the script instead of the ids it was written with.
    pub fn in_text(&self, text: &str) -> String {
        self.roots.iter().fold(text.to_owned(), |text, (id, name)| text.replace(&id.to_string(), name))
    }

    fn learn(&mut self, row: &NodeRow, core: &Core) {
        let name = match &row.body {
            Body::Job(job) => self.roots.get(&job.id).cloned(),
            Body::Run(run) | Body::ItemRun(ItemRunBody { run, .. }) => {
                self.flows.extend(core.flow(&run.flow, run.version).map(|flow| (row.node, flow)));
                self.inner.extend(row.parent.map(|_| row.node));
                let root = run.id.and_then(|id| self.roots.get(&id));
                root.cloned().or_else(|| row.around().map(|task| self.name(task)))
            }
            Body::Step(step) => row.parent.and_then(|run| {
                if let StepKind::Wait { until } = step.kind {
                    self.waits.insert(row.node, until);
                }
                let model = self.flows.get(&run)?.steps.get(step.index as usize)?;
                Some(format!("{}/{}", self.node(run), model.name))
            }),
        };
        let name = name.unwrap_or_else(|| format!("{:?}", row.node));
        if !self.inner.contains(&row.node) {
            self.tasks.insert(name.clone(), TaskId::node(row.node));
        }
        self.nodes.insert(row.node, name);
    }
}

/// What is being said about one command.
#[derive(Default)]
pub struct Speech {
    pub names: Names,
    pub lines: Vec<String>,
    /// Said before each line: when it happened, while time passes.
    pub stamp: String,
    /// Who began to wait and has not started since.
    waiting: BTreeSet<TaskId>,
    stops: BTreeMap<TaskId, Stop>,
    /// The items that were said to have ended last, as a range of a loop, and how many lines were said then.
    ended: Option<(NodeId, u32, u32, usize)>,
}

impl Speech {
    pub fn say(&mut self, line: String) {
        self.lines.push(format!("{}{line}", self.stamp));
    }

    pub fn write(&mut self, write: &Write, core: &Core) {
        let name = |task: &TaskId| self.names.name(*task);
        let line = match write {
            Write::NodeAdded(row) => {
                self.names.learn(row, core);
                self.added(row)
            }
            Write::ItemsAdded { step, from, items, .. } => {
                let last = *from as usize + items.len() - 1;
                Some(format!("{} has items {from} to {last}", self.names.node(*step)))
            }
            Write::Entered { node, state, at } => self.entered(*node, *state, *at),
            Write::Granted { task, grant, number } => {
                self.waiting.remove(task);
                let again = if *number > 1 { format!(", try {number}") } else { String::new() };
                Some(format!("started {} on {} ({}){again}", name(task), grant.worker, grant.epoch))
            }
            Write::ItemEntered { step, index, .. } => {
                Some(format!("started {}", self.names.name(TaskId::item(*step, *index))))
            }
            Write::Moved { task, due, error, at, .. } => {
                let error = error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
                let line = match due {
                    Some(due) => format!("{} retries in {}{error}", name(task), due.since(*at)),
                    None => format!("{} asks again{error}", name(task)),
                };
                if due.is_none() {
                    self.waiting.insert(*task);
                }
                Some(line)
            }
            Write::Ended { task, state, output, error, .. } => {
                self.waiting.remove(task);
                let is_run = self.names.flows.contains_key(&task.node);
                let output = output.as_ref().filter(|_| is_run).map(|output| format!(" {output:?}"));
                let error = error.as_ref().map(|error| format!(": {error}"));
                let what = output.or(error).unwrap_or_default();
                (!self.names.inner.contains(&task.node)).then(|| format!("{} {state}{what}", name(task)))
            }
            Write::ItemsEnded { step, from, to, state, .. } => {
                self.items_ended(*step, *from, *to, *state);
                None
            }
            Write::Stopping { task, why, .. } => {
                self.stops.insert(*task, *why);
                // A running task is told by its worker; what has no worker is said here.
                let quiet = core.explain(*task, core.now()).is_none_or(|explanation| {
                    matches!(explanation.reason, Reason::Running { worker: Some(_), .. })
                });
                let quiet = quiet || self.names.inner.contains(&task.node);
                (!quiet).then(|| format!("{} stops ({})", name(task), reason(*why)))
            }
            Write::Ranked { node, priority, .. } => (!self.names.inner.contains(node))
                .then(|| format!("{} has priority {priority}", self.names.node(*node))),
            Write::Paused { node, paused } => {
                Some(format!("{} {}", if *paused { "paused" } else { "resumed" }, self.names.node(*node)))
            }
            Write::LimitSet(row) => Some(limit_set(row, &self.names)),
            Write::Declared(row) => Some(declared(row)),
            Write::WorkerGone { worker, .. } => Some(format!("{worker} is gone")),
            Write::Renewed { .. }
            | Write::PaceTaken { .. }
            | Write::WorkerJoined(_)
            | Write::TokenSet(_)
            | Write::TokenGone { .. }
            | Write::Audited(_) => None,
        };
        line.into_iter().for_each(|line| self.say(line));
    }

    /// Items that end alike, one stretch after the other, are said in one line.
    fn items_ended(&mut self, step: NodeId, from: u32, to: u32, state: State) {
        let first = match self.ended.take() {
            Some((known, first, next, said)) if known == step && next == from && said == self.lines.len() => {
                self.lines.pop();
                first
            }
            _ => from,
        };
        let name = self.names.node(step);
        let line = match to - first {
            1 => format!("{name}#{first} {state}"),
            _ => format!("{name}#{first} to #{} {state}", to - 1),
        };
        self.say(line);
        self.ended = Some((step, first, to, self.lines.len()));
    }

    fn added(&mut self, row: &NodeRow) -> Option<String> {
        let name = self.names.node(row.node);
        if let Some(due) = row.life.due {
            return Some(format!("{name} is due in {}", due.since(row.accepted)));
        }
        if let Body::Step(StepBody { kind: StepKind::Reused { of, .. }, .. }) = &row.body {
            return Some(format!("{name} {}, reused from {}", row.life.state, self.names.node(*of)));
        }
        if row.life.state.is_end() {
            let error = row.life.error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
            return Some(format!("{name} {}{error}", row.life.state));
        }
        if !self.names.inner.contains(&row.node) {
            self.waiting.insert(TaskId::node(row.node));
        }
        None
    }

    fn entered(&mut self, node: NodeId, state: State, at: Moment) -> Option<String> {
        let task = TaskId::node(node);
        if state == State::Waiting {
            self.waiting.insert(task);
            return None;
        }
        self.waiting.remove(&task);
        let name = self.names.node(node);
        match self.names.waits.get(&node) {
            Some(until) => Some(format!("{name} waits {}", until.since(at))),
            None => (!self.names.inner.contains(&node)).then(|| format!("started {name}")),
        }
    }

    /// Says that a worker was told to stop something.
    pub fn stop(&mut self, task: TaskId) {
        let why = self.stops.get(&task).map_or("", |why| reason(*why));
        self.say(format!("stop {} ({why})", self.names.name(task)));
    }

    /// Says of everybody who began to wait what it waits for.
    pub fn waiting(&mut self, core: &Core, now: Moment) {
        for task in std::mem::take(&mut self.waiting) {
            let Some(explanation) = core.explain(task, now) else { continue };
            let blockers: Vec<String> = explanation
                .blockers
                .iter()
                .map(|blocker| limits::blocker(blocker, &self.names, now))
                .collect();
            let why = match explanation.reason {
                Reason::Paused => "paused".to_owned(),
                Reason::InLine { ahead } => format!("{ahead} of its kind before it"),
                _ => blockers.join(", "),
            };
            self.say(format!("waiting {}: {why}", self.names.name(task)));
        }
    }
}

fn reason(why: Stop) -> &'static str {
    match why {
        Stop::Cancelled => "cancelled",
        Stop::TimedOut => "timed out",
        Stop::FailedFast => "failed fast",
        Stop::LoopFailed => "its loop failed",
        Stop::Superseded => "superseded",
    }
}

fn limit_set(row: &LimitRow, names: &Names) -> String {
    let mut text = limits::name(&row.key, names);
    match &row.set {
        Some(set) => {
            text += &format!(" is set to {}", limits::said_value(&set.value));
            let until = set.until.map(|until| format!(" for {}", until.since(set.at)));
            text += &until.unwrap_or_default();
        }
        None => text += " is as declared",
    }
    text + if row.paused { ", paused" } else { "" }
}

fn declared(row: &DeclaredRow) -> String {
    match row {
        DeclaredRow::Flow { version, flow } => format!("declared flow {}, version {version}", flow.name),
        DeclaredRow::Action(ActionRow { version, action }) => {
            format!("declared action {}, version {version}", action.policy.action)
        }
        DeclaredRow::Limits(_) => "declared limits".to_owned(),
    }
}
