//! What is known of one run, or of one job: a model that committed writes keep up to date. It knows no terminal and no clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::model::{Action, ActionPolicy, Flow, Step as Definition, Work};
use tidegate_core::protocol::Stop;
use tidegate_core::state::State;
use tidegate_core::time::Moment;

/// Lines of output kept of each step.
pub const LINES_KEPT: usize = 5;

/// A run and the flows that run inside it, or a job.
#[derive(Clone, Debug)]
pub struct View {
    pub(super) flows: BTreeMap<Name, Arc<Flow>>,
    /// Attempts that each action allows, where a step does not say.
    attempts: BTreeMap<Name, u32>,
    pub root: NodeId,
    pub runs: BTreeMap<NodeId, Run>,
    /// The root, if it is an action by itself.
    pub job: Option<Job>,
    /// That the store cannot be written, as long as it cannot.
    pub outage: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Run {
    pub flow: Arc<Flow>,
    pub state: State,
    pub started: Option<Moment>,
    pub ended: Option<Moment>,
    pub stopping: Option<Stop>,
    pub steps: Vec<Step>,
    /// What comes before the names of its steps: `outer/`, or nothing.
    pub path: String,
    /// It is inside an item that has ended: it is known so that what it wrote has a name, and is not shown.
    pub is_past: bool,
    /// What it waits for, as the engine explains it.
    pub waits: Option<String>,
}

/// An action that was submitted by itself. It lives as a step does.
#[derive(Clone, Debug)]
pub struct Job {
    pub action: Name,
    /// Attempts that it may take.
    pub attempts: u32,
    pub step: Step,
}

#[derive(Clone, Default, Debug)]
pub struct Step {
    /// None until its turn has come.
    pub state: Option<State>,
    pub started: Option<Moment>,
    pub ended: Option<Moment>,
    /// When its time comes: a pause, or the next try.
    pub due: Option<Moment>,
    /// Attempts started.
    pub tries: u32,
    pub failures: u32,
    /// Of the last failure.
    pub error: Option<String>,
    pub stopping: bool,
    pub waits: Option<String>,
    pub items: Option<Items>,
    /// The run of the flow inside it.
    pub inside: Option<NodeId>,
    /// It ended in another run.
    pub reused: Option<Reused>,
    /// The end of what it wrote.
    pub log: VecDeque<String>,
}

/// Where a step ended that was not run again.
#[derive(Clone, Copy, Debug)]
pub struct Reused {
    pub run: RunId,
    /// That run, and with it what the step put out, was deleted since.
    pub is_gone: bool,
}

/// The items of a loop.
#[derive(Clone, Default, Debug)]
pub struct Items {
    pub count: u32,
    /// Items told of so far, from the first on.
    pub listed: u32,
    pub succeeded: u32,
    pub failed: u32,
    pub cancelled: u32,
    pub waiting: BTreeSet<u32>,
    pub running: BTreeMap<u32, Moment>,
    /// Between two tries, until then.
    pub retrying: BTreeMap<u32, Moment>,
    /// Of the first that failed.
    pub error: Option<(u32, String)>,
    /// The runs of flows inside those that have not ended.
    pub inside: BTreeMap<u32, NodeId>,
}

impl Step {
    /// The runs inside it, or inside its items.
    pub fn runs_inside(&self) -> impl Iterator<Item = NodeId> {
        let of_items = self.items.iter().flat_map(|items| items.inside.values());
        of_items.chain(&self.inside).copied()
    }
}

impl Items {
    pub fn ended(&self) -> u32 {
        self.succeeded + self.failed + self.cancelled
    }

    /// Told of, and not about to start.
    fn has_started(&self, index: u32) -> bool {
        index < self.listed && !self.waiting.contains(&index) && !self.retrying.contains_key(&index)
    }

    pub(super) fn count_end(&mut self, state: State, n: u32) {
        match state {
            State::Succeeded => self.succeeded += n,
            state if state.is_failure() => self.failed += n,
            _ => self.cancelled += n,
        }
    }
}

impl Run {
    pub(super) fn new(flow: Arc<Flow>, path: String) -> Run {
        let steps = vec![Step::default(); flow.steps.len()];
        Run {
            flow,
            state: State::Waiting,
            started: None,
            ended: None,
            stopping: None,
            steps,
            path,
            is_past: false,
            waits: None,
        }
    }
}

impl View {
    /// Before anything is known of the run but its number.
    pub fn new(flows: &[Flow], actions: &[Action], root: NodeId) -> View {
        let flows = flows.iter().map(|flow| (flow.name.clone(), Arc::new(flow.clone()))).collect();
        let (attempts, runs) = Default::default();
        let mut view = View { flows, attempts, root, runs, job: None, outage: None };
        view.allow_attempts(actions);
        view
    }

    /// As many as these actions say now.
    pub fn allow_attempts(&mut self, actions: &[Action]) {
        let of_action = |Action { policy, .. }: &Action| (policy.action.clone(), policy.retry.attempts);
        self.attempts.extend(actions.iter().map(of_action));
    }

    pub fn of_job(policy: &ActionPolicy, root: NodeId) -> View {
        let (action, attempts) = (policy.action.clone(), policy.retry.attempts);
        let job = Job { action, attempts, step: Step::default() };
        View { job: Some(job), ..View::new(&[], &[], root) }
    }

    /// The same flows or action, before anything is known of a new root.
    pub fn again(self, root: NodeId) -> View {
        let new = |job: Job| Job { step: Step::default(), ..job };
        View { root, runs: BTreeMap::new(), job: self.job.map(new), ..self }
    }

    pub fn root_run(&self) -> Option<&Run> {
        self.runs.get(&self.root)
    }

    /// How the run ended, if it has.
    pub fn end(&self) -> Option<State> {
        let state = match &self.job {
            Some(job) => job.step.state,
            None => self.root_run().map(|run| run.state),
        };
        state.filter(|state| state.is_end())
    }

    /// The run a step's number belongs to, and the step's place in it.
    pub fn place(&self, node: NodeId) -> Option<(NodeId, usize)> {
        let (&run, record) = self.runs.range(..node).next_back()?;
        let index = usize::try_from(node.0 - run.0 - 1).ok()?;
        (index < record.steps.len()).then_some((run, index))
    }

    fn step(&self, node: NodeId) -> Option<&Step> {
        if let Some(job) = self.job.as_ref().filter(|_| node == self.root) {
            return Some(&job.step);
        }
        let (run, index) = self.place(node)?;
        self.runs.get(&run)?.steps.get(index)
    }

    pub(super) fn step_mut(&mut self, node: NodeId) -> Option<&mut Step> {
        if self.job.is_some() && node == self.root {
            return self.job.as_mut().map(|job| &mut job.step);
        }
        let (run, index) = self.place(node)?;
        self.runs.get_mut(&run)?.steps.get_mut(index)
    }

    /// How many attempts a task may take.
    pub(super) fn attempts(&self, node: NodeId) -> Option<u32> {
        if let Some(job) = self.job.as_ref().filter(|_| node == self.root) {
            return Some(job.attempts);
        }
        let (run, index) = self.place(node)?;
        Some(self.attempts_of(self.runs.get(&run)?.flow.steps.get(index)?))
    }

    /// How many attempts a step may take: as it says itself, or as its action does.
    pub fn attempts_of(&self, step: &Definition) -> u32 {
        match (&step.retry, &step.work) {
            (None, Work::Action { action, .. }) => self.attempts.get(action).copied().unwrap_or(1),
            _ => step.attempts(),
        }
    }

    /// The flow of this name, as it was when the run began.
    pub fn flow(&self, name: &Name) -> Option<&Flow> {
        self.flows.get(name).map(|flow| &**flow)
    }

    /// The step of this name, if its run has begun: `outer/inner`.
    pub fn step_named(&self, name: &str) -> Option<&Step> {
        self.runs.values().find_map(|run| {
            let own = name.strip_prefix(&run.path)?;
            let index = run.flow.steps.iter().position(|step| step.name.as_str() == own)?;
            run.steps.get(index)
        })
    }

    /// `outer/inner#2`; the root is its flow's or action's name. Nothing for what is not part of this run.
    pub fn name(&self, task: TaskId) -> Option<String> {
        if let Some(job) = self.job.as_ref().filter(|_| task.node == self.root) {
            return Some(job.action.to_string());
        }
        if let Some(run) = self.runs.get(&task.node) {
            return Some(match run.path.trim_end_matches('/') {
                "" => run.flow.name.to_string(),
                path => path.to_owned(),
            });
        }
        let (run, index) = self.place(task.node)?;
        let run = self.runs.get(&run)?;
        let name = &run.flow.steps.get(index)?.name;
        Some(match task.index() {
            Some(item) => format!("{}{name}#{item}", run.path),
            None => format!("{}{name}", run.path),
        })
    }

    /// A line that an attempt wrote. Says whose it is, if the start of that attempt is known.
    pub fn heard(&mut self, task: TaskId, text: &str) -> Option<String> {
        let name = self.name(task).filter(|_| self.has_started(task))?;
        let line = match task.index() {
            Some(index) => format!("#{index} {text}"),
            None => text.to_owned(),
        };
        let step = self.step_mut(task.node)?;
        if step.log.len() == LINES_KEPT {
            step.log.pop_front();
        }
        step.log.push_back(line);
        Some(name)
    }

    /// Whether the start of its attempt is known.
    pub fn has_started(&self, task: TaskId) -> bool {
        self.step(task.node).is_some_and(|step| match (task.index(), &step.items) {
            (Some(index), Some(items)) => items.has_started(index),
            _ => !matches!(step.state, None | Some(State::Scheduled | State::Waiting)),
        })
    }

    /// The steps of the run and of flows inside it, with their names.
    pub fn steps(&self) -> impl Iterator<Item = (String, &Step)> {
        let shown = self.runs.values().filter(|run| !run.is_past);
        let inside = shown.flat_map(|run| {
            let named = run.flow.steps.iter().zip(&run.steps);
            named.map(|(definition, step)| (format!("{}{}", run.path, definition.name), step))
        });
        inside.chain(self.job.iter().map(|job| (job.action.to_string(), &job.step)))
    }

    /// Tasks worth asking the engine about: what they wait for is not in the writes. Of a loop, the next item.
    pub fn waiting(&self) -> Vec<TaskId> {
        let is_waiting = |job: &Job| job.step.state == Some(State::Waiting);
        let mut tasks = Vec::new();
        if self.job.as_ref().is_some_and(is_waiting) {
            tasks.push(TaskId::node(self.root));
        }
        for (&node, run) in &self.runs {
            if run.state == State::Waiting {
                tasks.push(TaskId::node(node));
            }
            for (index, step) in run.steps.iter().enumerate() {
                let node = node.step(index);
                match (step.state, &step.items) {
                    (Some(State::Running), Some(items)) => {
                        tasks.extend(items.waiting.first().map(|&item| TaskId::item(node, item)));
                    }
                    (Some(State::Waiting), _) => tasks.push(TaskId::node(node)),
                    _ => {}
                }
            }
        }
        tasks
    }

    /// What a task waits for, or that it does not.
    pub fn waits(&mut self, task: TaskId, why: Option<String>) {
        if let Some(run) = self.runs.get_mut(&task.node) {
            run.waits = why;
        } else if let Some(step) = self.step_mut(task.node) {
            step.waits = why;
        }
    }
}
