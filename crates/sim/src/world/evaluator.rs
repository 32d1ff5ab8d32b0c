//! Renders the plan's templates, which say directly what they render to, and tells the oracle what was rendered:
//! the label in each order is how it recognises what a worker runs.

use crate::oracle::Oracle;
use tidegate_core::Asked;
use tidegate_core::model::Work;
use tidegate_core::protocol::{Evaluation, Payload, Question, Rendered};
use tidegate_core::time::{Moment, Span};

pub(super) fn evaluate(asked: &Asked, now: Moment, oracle: &mut Oracle) -> Evaluation {
    let run = format!("{}:{}", asked.run_name, asked.run.0);
    let (step, items) = match asked.question {
        Question::Outputs { .. } => return Evaluation::Outputs(Payload::new("{}")),
        Question::Step { step, .. } => (step, None),
        Question::Items { from, to, .. } => (asked.step.unwrap_or(0), Some(from..to)),
    };
    let model = &asked.flow.steps[step as usize];
    let label = format!("{run}/{}", model.name);
    if let Some(range) = items {
        let order = |index: u32| Rendered { order: Payload::new(format!("\"{label}#{index}\"")), key: None };
        return Evaluation::Items(range.map(order).map(Ok).collect());
    }
    match model.rule.when().map(|when| &*when.0) {
        Some("false") => return Evaluation::Skipped,
        Some("error") => return Evaluation::Failed { error: "the condition is an error".to_owned() },
        _ => {}
    }
    oracle.step_begins(&run, &label, asked, step);
    match (&model.each, &model.work) {
        (Some(each), _) => {
            let count = each.items.0.parse().unwrap_or(0);
            Evaluation::List { items: Payload::new("[]"), count }
        }
        (None, Work::Flow { .. }) => Evaluation::SubFlow { inputs: Payload::new("{}") },
        (None, Work::Wait(millis)) => Evaluation::Until(now + Span::millis(millis.0.parse().unwrap_or(0))),
        (None, _) => Evaluation::Order(Rendered { order: Payload::new(format!("\"{label}\"")), key: None }),
    }
}
