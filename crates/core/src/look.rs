//! Looking things up by the names people use, and listing what waits. Reads only.

use crate::core::Core;
use crate::ids::{NodeId, RunId, TaskId};
use crate::nodes::{Kind, Node, RunState, Work, WorkState};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Something that waits: for a limit, or for its time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    pub task: TaskId,
    pub name: String,
    /// How many alike wait in a row, this one included: items of one loop.
    pub count: u32,
}

/// Why a name leads nowhere.
#[derive(Clone, PartialEq, Eq, Debug, Error, Serialize, Deserialize)]
pub enum Lost {
    #[error("there is no open run `{0}`")]
    NoRun(String),
    #[error("{count} open runs begin with `{prefix}`")]
    Ambiguous { prefix: String, count: usize },
    #[error("{around} has no step `{step}`")]
    NoStep { around: String, step: String },
    #[error("no flow runs inside {0}")]
    NothingInside(String),
    #[error("`{0}` is not the number of an item")]
    NotAnItem(String),
    #[error("{around} is a loop over flows; say which item, as in `{step}#0`")]
    WhichItem { around: String, step: String },
}

impl Core {
    /// Everything open that was submitted, oldest first.
    pub fn roots(&self) -> Vec<RunId> {
        let mut roots: Vec<(NodeId, RunId)> = self.by_id.iter().map(|(&id, &node)| (node, id)).collect();
        roots.sort_unstable();
        roots.into_iter().map(|(_, id)| id).collect()
    }

    /// Everything that waits, best-ranked first.
    pub fn waiting(&self) -> Vec<Waiting> {
        let mut ranked: Vec<_> = self.admission.classes().flat_map(|(_, class)| class.ranges()).collect();
        for (node, record) in self.nodes.iter() {
            let outside = self.outside_of_lines(node, record);
            ranked.extend(outside.into_iter().map(|(task, count)| (self.rank(task), count)));
        }
        ranked.sort_unstable();
        let named = ranked.into_iter().map(|(rank, count)| {
            let task = rank.task();
            Waiting { task, name: self.name(task), count }
        });
        named.collect()
    }

    /// What of a node waits without standing in a line: its time has not come, or it is paused.
    fn outside_of_lines(&self, node: NodeId, record: &Node) -> Vec<(TaskId, u32)> {
        let paused = self.is_paused(node);
        let outside = |work: &Work| match work.at {
            WorkState::Scheduled(_) => true,
            WorkState::Waiting => paused,
            WorkState::Running(_) | WorkState::Inside(_) => false,
        };
        let this = |holds: bool| if holds { vec![(TaskId::node(node), 1)] } else { Vec::new() };
        match record {
            Node::Job(job) => this(outside(&job.work)),
            Node::Run(run) => this(match run.state {
                RunState::Scheduled(_) => true,
                RunState::Waiting => paused,
                RunState::Running => false,
            }),
            Node::Step(step) if !step.entered => this(paused),
            Node::Step(step) => match &step.kind {
                Kind::Plain { work, .. } => this(work.as_ref().is_some_and(outside)),
                Kind::Wait { .. } => this(true),
                Kind::SubFlow { .. } => Vec::new(),
                Kind::Loop(items) => {
                    let single = items.items.iter().filter(|(_, item)| outside(&item.work));
                    let single = single.map(|(&index, _)| (TaskId::item(node, index), 1));
                    let parked = items.segments.values().flat_map(|segment| &segment.parked);
                    single.chain(parked.map(|&(from, count)| (TaskId::item(node, from), count))).collect()
                }
            },
        }
    }

    /// The task that people call `run_…`, `run_…/step`, `run_…/step#3`, `run_…/outer/inner` or `run_…/outer#3/inner`. So
    /// much of the run's id is enough as no other open run shares. The step need not be open.
    pub fn find(&self, name: &str) -> Result<TaskId, Lost> {
        let mut parts = name.split('/').peekable();
        let mut run = self.find_root(parts.next().unwrap_or_default())?;
        while let Some(part) = parts.next() {
            let (step, item) = match part.split_once('#') {
                Some((step, item)) => (step, Some(item)),
                None => (part, None),
            };
            let node = self.find_step(run, step)?;
            let task = match item.map(|item| (item, item.parse::<u32>())) {
                None => TaskId::node(node),
                Some((_, Ok(index))) if index < u32::MAX => TaskId::item(node, index),
                Some((item, _)) => return Err(Lost::NotAnItem(item.to_owned())),
            };
            if parts.peek().is_none() {
                return Ok(task);
            }
            run = self.inside(task).ok_or_else(|| {
                let name = format!("{}/{part}", self.name(TaskId::node(run)));
                let is_whole_loop = item.is_none() && self.loop_of(node).is_some();
                match is_whole_loop && self.called_flow(node).is_some() {
                    true => Lost::WhichItem { around: name, step: step.to_owned() },
                    false => Lost::NothingInside(name),
                }
            })?;
        }
        Ok(TaskId::node(run))
    }

    fn find_root(&self, text: &str) -> Result<NodeId, Lost> {
        let prefix = text.to_ascii_lowercase();
        let mut found = self.by_id.iter().filter(|(id, _)| {
            let id = id.to_string();
            id.starts_with(&prefix) || id.trim_start_matches("run_").starts_with(&prefix)
        });
        match (found.next(), found.count()) {
            (Some((_, &node)), 0) => Ok(node),
            (Some(_), more) => Err(Lost::Ambiguous { prefix: text.to_owned(), count: more + 1 }),
            (None, _) => Err(Lost::NoRun(text.to_owned())),
        }
    }

    fn find_step(&self, run: NodeId, step: &str) -> Result<NodeId, Lost> {
        let lost = || Lost::NoStep { around: self.name(TaskId::node(run)), step: step.to_owned() };
        let steps = &self.run(run).ok_or_else(lost)?.plan.flow.steps;
        let index = steps.iter().position(|known| known.name.as_str() == step).ok_or_else(lost)?;
        Ok(run.step(index))
    }

    /// The run inside a step or an item.
    pub(crate) fn inside(&self, task: TaskId) -> Option<NodeId> {
        match (&self.step(task.node)?.kind, task.index()) {
            (Kind::SubFlow { child }, None) => *child,
            _ => self.work(task)?.inside(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::{self, Reason};
    use crate::ids::Name;
    use crate::model::{Loop, OnFailure, Step, Template};
    use crate::protocol::{Command, Declare, Effect, Evaluation, Payload, Question, Rendered};
    use crate::protocol::{NodeRow, Snapshot, Submission, Submit, Write};
    use crate::state::State;
    use crate::testkit::{doing, flow};
    use crate::time::{Moment, Span};

    fn step(name: &str, after: &[u32], work: crate::model::Work) -> Step {
        Step { after: after.to_vec(), ..doing(name, work) }
    }

    /// `outer` has a loop, a flow inside, a pause, a step after all of them, and a loop over flows; nobody works.
    fn core() -> Core {
        use crate::model::Work;
        let nothing = || Template("null".into());
        let process = || Work::Order(nothing());
        let inner = || Work::Flow { flow: Name::new("inner"), inputs: nothing() };
        let each = Loop { items: nothing(), window: Some(1), on_failure: OnFailure::STOP, window_line: None };
        let outer = flow(
            "outer",
            vec![
                Step { each: Some(each.clone()), ..step("load", &[], process()) },
                step("sub", &[], inner()),
                step("pause", &[], Work::Wait(nothing())),
                step("last", &[0, 1, 2], process()),
                Step { each: Some(each), ..step("flows", &[], inner()) },
            ],
        );
        let inner = flow("inner", vec![step("deep", &[], process())]);
        let mut core = Core::new(1);
        let flows = vec![outer, inner];
        core.apply(Command::Declare(Declare { flows, ..Declare::default() }), Moment(0));
        for id in [RunId(0), RunId(u128::MAX)] {
            let what = Submission::Run { flow: Name::new("outer"), key: None, inputs: Payload::null() };
            let submit = Submit { id, what, tags: Vec::new(), priority: 0, due: None, idempotency: None };
            core.apply(Command::Submit(submit), Moment(0));
        }
        loop {
            let effects = core.take_output().effects;
            if effects.is_empty() {
                return core;
            }
            for effect in effects {
                let Effect::Ask(question) = effect else { continue };
                let rendered = || Rendered { order: Payload::null(), key: None };
                let evaluation = match question {
                    Question::Step { step: 0, run } if core.run(run).is_some_and(|run| run.id.is_none()) => {
                        Evaluation::Order(rendered())
                    }
                    Question::Step { step: 0 | 4, .. } => {
                        Evaluation::List { items: Payload::null(), count: 3 }
                    }
                    Question::Step { step: 1, .. } => Evaluation::SubFlow { inputs: Payload::null() },
                    Question::Step { .. } => Evaluation::Until(Moment(9_000_000)),
                    Question::Items { from, to, .. } => {
                        Evaluation::Items((from..to).map(|_| Ok(rendered())).collect())
                    }
                    Question::Outputs { .. } => Evaluation::Outputs(Payload::null()),
                };
                core.apply(Command::Evaluated { question, evaluation }, Moment(0));
            }
        }
    }

    #[test]
    fn names_lead_to_tasks_and_back() {
        let core = core();
        let run = RunId(0).to_string();
        let parts = ["", "/load", "/load#2", "/sub/deep", "/flows#0", "/flows#2", "/flows#0/deep"];
        for name in parts.map(|part| format!("{run}{part}")) {
            assert_eq!(core.name(core.find(&name).unwrap()), name);
        }
        assert!(core.find(&format!("{run}/last")).is_ok(), "its turn has not come");
        assert_eq!(core.find("run_00"), core.find(&run), "a prefix is enough");
        assert_eq!(core.find("7Z"), core.find(&RunId(u128::MAX).to_string()), "and so is its number");
    }

    #[test]
    fn a_name_that_leads_nowhere_says_why() {
        let core = core();
        let lost = |name: &str| core.find(name).unwrap_err().to_string();
        assert_eq!(lost("run_1"), "there is no open run `run_1`");
        assert_eq!(lost("run_"), "2 open runs begin with `run_`");
        let run = RunId(0);
        assert_eq!(lost(&format!("{run}/laod")), format!("{run} has no step `laod`"));
        assert_eq!(lost(&format!("{run}/load/deep")), format!("no flow runs inside {run}/load"));
        assert_eq!(lost(&format!("{run}/load#x")), "`x` is not the number of an item");
        let each = format!("{run}/flows");
        assert_eq!(
            lost(&format!("{each}/deep")),
            format!("{each} is a loop over flows; say which item, as in `flows#0`")
        );
        assert_eq!(lost(&format!("{each}#1/deep")), format!("no flow runs inside {each}#1"), "it waits");
    }

    #[test]
    fn what_waits_is_listed_by_rank() {
        let core = core();
        let (first, second) = (RunId(0), RunId(u128::MAX));
        assert_eq!(core.roots(), [first, second]);
        let listed: Vec<(String, u32)> =
            core.waiting().into_iter().map(|waiting| (waiting.name, waiting.count)).collect();
        let expected = [first, second].map(|run| {
            [("load#0", 3), ("pause", 1), ("flows#1", 2), ("sub/deep", 1), ("flows#0/deep", 1)]
                .map(|(part, count)| (format!("{run}/{part}"), count))
        });
        assert_eq!(listed, expected.concat());
        let brief = |name: &str| {
            let task = core.find(&format!("{first}/{name}")).unwrap();
            explain::brief(&core.explain(task, Moment(0)).unwrap()).unwrap()
        };
        assert_eq!(brief("load#0"), "waits for workers (no connected worker of queue default can run it)");
        assert_eq!(brief("last"), "waits for load, sub and pause to end");
        assert_eq!(brief("pause"), "starts in 9s");
    }

    #[test]
    fn an_item_that_ended_is_not_said_to_wait() {
        let mut core = core();
        let item = core.find("run_00/load#1").unwrap();
        core.apply(Command::Cancel(item), Moment(0) + Span::seconds(1));
        assert_eq!(core.explain(item, Moment(1)), None);
        let other = core.find("run_00/load#2").unwrap();
        assert!(matches!(core.explain(other, Moment(1)).unwrap().reason, Reason::Blocked));
        assert_eq!(
            core.explain(core.find("run_00/load#7").unwrap(), Moment(1)),
            None,
            "there is no such item"
        );
    }

    #[test]
    fn after_a_restart_it_still_waits_since_it_was_accepted() {
        let mut core = Core::new(1);
        let what = Submission::Job { action: Name::new("work"), key: None, order: Payload::null() };
        let submit = Submit { id: RunId(0), what, tags: vec![], priority: 0, due: None, idempotency: None };
        core.apply(Command::Submit(submit), Moment(1));
        let nodes: Vec<NodeRow> = core
            .take_output()
            .writes
            .into_iter()
            .filter_map(|write| match write {
                Write::NodeAdded(row) => Some(*row),
                _ => None,
            })
            .collect();
        let snapshot = Snapshot { nodes, next: core.next(), now: Moment(1), ..Snapshot::default() };
        let later = Moment(1) + Span::minutes(1);
        let core = Core::load(snapshot, 2, later);
        let explanation = core.explain(core.find("run_0").unwrap(), later).unwrap();
        assert_eq!((explanation.state, explanation.since), (State::Waiting, Moment(1)));
    }
}
