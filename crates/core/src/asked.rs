//! What somebody who renders templates has to know about a question.

use crate::core::Core;
use crate::ids::{NodeId, TaskId};
use crate::model::{Action, Flow, Work};
use crate::nodes::{Run, StepState};
use crate::protocol::Question;
use crate::state::State;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A question with everything around it, except what only the store has.
#[derive(Clone, Debug)]
pub struct Asked {
    pub question: Question,
    pub flow: Arc<Flow>,
    pub run: NodeId,
    /// The id that people know the run by; a sub-flow has that of its root.
    pub run_name: String,
    /// The task whose payload holds the run's inputs.
    pub inputs: TaskId,
    /// The step it is about, unless it is about the run's outputs.
    pub step: Option<u32>,
    /// For each step, how it ended, if it has.
    pub ended: Vec<Option<State>>,
    /// Steps that ended in another run, and which ones there.
    pub reused: BTreeMap<u32, NodeId>,
    pub callee: Option<Called>,
}

/// The definition that a step names.
#[derive(Clone, PartialEq, Debug)]
pub enum Called {
    Action(Arc<Action>),
    Flow(Arc<Flow>),
}

impl Asked {
    /// The task that was the step at `index` of the run, which may be that of another run.
    pub fn step_task(&self, index: u32) -> TaskId {
        let own = || self.run.step(index as usize);
        TaskId::node(self.reused.get(&index).copied().unwrap_or_else(own))
    }
}

impl Core {
    /// What to know about a question; nothing if it is not open any more.
    pub fn asked(&self, question: Question) -> Option<Asked> {
        let (run_node, step) = match question {
            Question::Step { run, step } => (run, Some(step)),
            Question::Items { step, .. } => self.step(step).map(|record| (record.run, Some(record.index)))?,
            Question::Outputs { run } => (run, None),
        };
        let run = self.run(run_node)?;
        let ended = |state: &StepState| match state {
            StepState::Ended(state) => Some(*state),
            _ => None,
        };
        let root = self.root_name(run_node, run);
        Some(Asked {
            question,
            flow: run.plan.flow.clone(),
            run: run_node,
            run_name: root,
            inputs: run.parent.unwrap_or(TaskId::node(run_node)),
            step,
            ended: run.steps.iter().map(ended).collect(),
            reused: run.reused.clone(),
            callee: step.and_then(|step| self.called(run, step)),
        })
    }

    fn root_name(&self, node: NodeId, run: &Run) -> String {
        match run.parent.and_then(|task| self.step(task.node)) {
            Some(step) => {
                self.run(step.run).map_or_else(String::new, |outer| self.root_name(step.run, outer))
            }
            None => self.name(TaskId::node(node)),
        }
    }

    fn called(&self, run: &Run, step: u32) -> Option<Called> {
        match &run.plan.flow.steps.get(step as usize)?.work {
            Work::Action { action, .. } => {
                self.catalog.definition_at(action, run.version).cloned().map(Called::Action)
            }
            Work::Flow { flow, .. } => self.flow(flow, run.version).map(Called::Flow),
            Work::Order(_) | Work::Wait(_) => None,
        }
    }
}
