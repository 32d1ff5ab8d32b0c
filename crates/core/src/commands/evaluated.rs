//! The answer to a question the core asked. One that nobody asked, or that came twice, changes nothing.

use crate::core::Core;
use crate::ids::NodeId;
use crate::nodes::StepState;
use crate::protocol::{Answer, Evaluation, Question, Refusal, Stop};
use crate::state::State;
use crate::time::Moment;

impl Core {
    pub(crate) fn evaluated(
        &mut self,
        question: Question,
        evaluation: Evaluation,
        now: Moment,
    ) -> Result<Answer, Refusal> {
        match question {
            Question::Step { run, step } => {
                let asked = self.run(run).and_then(|run| run.steps.get(step as usize));
                if asked != Some(&StepState::Asking) {
                    return Err(Refusal::NotAsked);
                }
                self.step_evaluated(run, step, evaluation, now);
            }
            Question::Items { step, from, to } => {
                let asked = self
                    .loop_of(step)
                    .is_some_and(|items| items.asking && (items.expanded == from || items.stop.is_some()));
                if !asked {
                    return Err(Refusal::NotAsked);
                }
                match evaluation {
                    Evaluation::Items(items) if items.len() as u32 == to - from => {
                        self.items_evaluated(step, from, items, now);
                    }
                    other => self.items_not_rendered(step, other, now),
                }
            }
            Question::Outputs { run } => {
                if !self.run(run).is_some_and(|run| run.ending) {
                    return Err(Refusal::NotAsked);
                }
                let (state, output, error) = match evaluation {
                    Evaluation::Outputs(output) => (State::Succeeded, Some(output), None),
                    Evaluation::Failed { error } => (State::Failed, None, Some(format!("outputs: {error}"))),
                    other => (State::Failed, None, Some(format!("outputs: unexpected {other:?}"))),
                };
                self.end_run(run, state, output, error, now);
            }
        }
        Ok(Answer::Done)
    }

    /// Items that cannot be rendered end their loop: it would never be whole.
    fn items_not_rendered(&mut self, node: NodeId, evaluation: Evaluation, now: Moment) {
        let error = match evaluation {
            Evaluation::Failed { error } => error,
            other => format!("its items cannot be rendered: {other:?}"),
        };
        let Some(items) = self.loop_mut(node) else { return };
        items.asking = false;
        items.error.get_or_insert(error);
        self.stop_loop(node, Stop::LoopFailed, now);
        self.loop_may_be_done(node, now);
    }
}
