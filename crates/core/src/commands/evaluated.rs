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
                    // Of large items only the first are rendered, and the others are asked for again.
                    Evaluation::Items(items) if (1..=to - from).contains(&(items.len() as u32)) => {
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
                    Evaluation::Failed { error } => (State::Failed, None, Some(error)),
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

#[cfg(test)]
mod tests {
    use crate::ids::TaskId;
    use crate::model::{EXPAND_SLICE, OnFailure, Step, Work};
    use crate::protocol::{Answer, Command, Evaluation, Outcome, Payload, Question, Refusal};
    use crate::state::State;
    use crate::testkit::{Kit, doing, flow, looping, rendered, step, template};
    use crate::time::Moment;

    fn evaluated(question: Question, evaluation: Evaluation) -> Command {
        Command::Evaluated { question, evaluation }
    }

    #[test]
    fn only_what_was_asked_is_answered_and_only_once() {
        let mut kit = Kit::new(1);
        let mut one = flow("one", vec![step("a")]);
        one.outputs = Some(template());
        kit.declare(vec![one], Vec::new(), None);
        let run = kit.run("one");
        let order = || Evaluation::Order(rendered(None));
        let nobody_asked = [
            Question::Step { run, step: 1 },
            Question::Step { run: run.step(0), step: 0 },
            Question::Items { step: run.step(0), from: 0, to: 1 },
            Question::Outputs { run },
        ];
        for question in nobody_asked {
            assert_eq!(kit.refused(evaluated(question, order())), Refusal::NotAsked, "{question:?}");
        }
        let asked = Question::Step { run, step: 0 };
        assert_eq!(kit.apply(evaluated(asked, order())), Answer::Done);
        assert_eq!(kit.refused(evaluated(asked, order())), Refusal::NotAsked, "it was answered");
    }

    #[test]
    fn a_step_whose_templates_gave_something_else_fails() {
        let sub = doing("a", Work::Flow { flow: "one".into(), inputs: template() });
        let wait = doing("a", Work::Wait(template()));
        let each = looping("a", None, OnFailure::STOP).each;
        let list = || Evaluation::List { items: Payload::new("[]"), count: 0 };
        let order = || Evaluation::Order(rendered(None));
        let wrong = [
            (step("a"), list()),
            (step("a"), Evaluation::Until(Moment(0))),
            (step("a"), Evaluation::SubFlow { inputs: Payload::null() }),
            (looping("a", None, OnFailure::STOP), order()),
            (sub.clone(), order()),
            (wait.clone(), order()),
            (wait.clone(), Evaluation::Outputs(Payload::null())),
            (sub.clone(), Evaluation::Until(Moment(0))),
            (Step { each: each.clone(), ..sub }, Evaluation::SubFlow { inputs: Payload::null() }),
            (Step { each, ..wait.clone() }, Evaluation::Until(Moment(0))),
        ];
        for (step, evaluation) in wrong {
            let mut kit = Kit::new(1);
            kit.declare(vec![flow("one", vec![step])], Vec::new(), None);
            let run = kit.run("one");
            kit.answer_step(run, 0, evaluation);
            let (state, error) = kit.ended(run.step(0)).expect("it failed");
            assert_eq!(state, State::Failed);
            assert!(error.is_some_and(|error| error.starts_with("its templates gave something else")));
            assert_eq!(kit.ended(run).map(|(state, _)| state), Some(State::Failed));
        }
    }

    #[test]
    fn a_slice_of_nothing_or_too_much_ends_the_loop() {
        let wrong = [
            (Evaluation::Items(Vec::new()), "its items cannot be rendered: Items"),
            (Evaluation::Items(vec![Ok(rendered(None)); 3]), "its items cannot be rendered: Items"),
            (Evaluation::Skipped, "its items cannot be rendered: Skipped"),
            (Evaluation::Failed { error: "no such name".to_owned() }, "no such name"),
        ];
        for (evaluation, said) in wrong {
            let mut kit = Kit::new(1);
            kit.declare(vec![flow("one", vec![looping("a", None, OnFailure::STOP)])], Vec::new(), None);
            let run = kit.run("one");
            kit.answer_step(run, 0, Evaluation::List { items: Payload::new("[1, 2]"), count: 2 });
            let step = run.step(0);
            let not_the_slice = Question::Items { step, from: 1, to: 2 };
            assert_eq!(kit.refused(evaluated(not_the_slice, Evaluation::Skipped)), Refusal::NotAsked);
            let question = Question::Items { step, from: 0, to: 2 };
            kit.apply(evaluated(question, evaluation.clone()));
            let (state, error) = kit.ended(step).expect("it failed");
            assert_eq!(state, State::Failed);
            assert!(error.is_some_and(|error| error.starts_with(said)), "{said}");
            assert_eq!(kit.refused(evaluated(question, evaluation)), Refusal::NotAsked);
        }
    }

    #[test]
    fn the_rest_of_a_slice_is_asked_for_again() {
        let mut kit = Kit::new(1);
        kit.declare(vec![flow("one", vec![looping("a", None, OnFailure::STOP)])], Vec::new(), None);
        let run = kit.run("one");
        kit.answer_step(run, 0, Evaluation::List { items: Payload::new("[1, 2, 3]"), count: 3 });
        let step = run.step(0);
        for from in 0..3 {
            let question = Question::Items { step, from, to: 3 };
            let first = Evaluation::Items(vec![Ok(rendered(None))]);
            assert_eq!(kit.apply(evaluated(question, first)), Answer::Done);
        }
        for index in 0..3 {
            assert_eq!(kit.ended(step), None, "{index} has not ended");
            kit.succeed(TaskId::item(step, index));
        }
        assert_eq!(kit.ended(step), Some((State::Succeeded, None)));
    }

    #[test]
    fn outputs_that_are_none_fail_the_run() {
        let mut kit = Kit::new(1);
        let mut one = flow("one", vec![step("a")]);
        one.outputs = Some(template());
        kit.declare(vec![one], Vec::new(), None);
        let run = kit.run("one");
        kit.answer_step(run, 0, Evaluation::Skipped);
        kit.apply(evaluated(Question::Outputs { run }, Evaluation::Skipped));
        assert_eq!(kit.ended(run), Some((State::Failed, Some("outputs: unexpected Skipped".to_owned()))));
    }

    #[test]
    fn a_loop_that_fails_stops_although_not_all_of_it_is_known() {
        let mut kit = Kit::new(1);
        kit.declare(vec![flow("one", vec![looping("a", None, OnFailure::STOP)])], Vec::new(), None);
        let run = kit.run("one");
        let count = EXPAND_SLICE + 5;
        kit.answer_step(run, 0, Evaluation::List { items: Payload::new("[]"), count });
        let step = run.step(0);
        let slice = |from, to| Question::Items { step, from, to };
        let items = |count| Evaluation::Items((0..count).map(|_| Ok(rendered(None))).collect());
        kit.apply(evaluated(slice(0, EXPAND_SLICE), items(EXPAND_SLICE)));
        let lease = kit.lease(TaskId::item(step, 0));
        kit.finish(lease, Outcome::failed("boom"));
        assert_eq!(kit.ended(step), None, "the rest is being rendered");
        kit.apply(evaluated(slice(EXPAND_SLICE, count), items(5)));
        let error = format!("1 of {count} items failed");
        assert_eq!(kit.ended(step), Some((State::Failed, Some(error))));
    }
}
