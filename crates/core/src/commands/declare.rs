//! Definitions are declared: flows, actions, limits. What is running counts at once where it now belongs.

use crate::core::Core;
use crate::model::Flow;
use crate::protocol::{Answer, Declare, DeclaredRow, Refusal, Write};
use crate::time::Moment;
use std::sync::Arc;

impl Core {
    pub(crate) fn declare(&mut self, declare: Declare, now: Moment) -> Result<Answer, Refusal> {
        for flow in &declare.flows {
            check_flow(flow)?;
        }
        for flow in declare.flows {
            let unchanged =
                self.catalog.newest(flow.name.as_str()).is_some_and(|(_, plan)| *plan.flow == flow);
            if !unchanged {
                let (version, flow) = (self.catalog.version + 1, Arc::new(flow));
                self.catalog.add_flow(version, flow.clone());
                self.write(Write::Declared(Box::new(DeclaredRow::Flow { version, flow })));
            }
        }
        for action in declare.actions.into_iter().map(Arc::new) {
            if self.catalog.definition(&action.policy.action) != Some(&action) {
                self.catalog.set_action(action.clone());
                self.write(Write::Declared(Box::new(DeclaredRow::Action(action))));
            }
        }
        if let Some(limits) = declare.limits.filter(|limits| *limits != self.catalog.limits) {
            self.catalog.limits = limits.clone();
            self.write(Write::Declared(Box::new(DeclaredRow::Limits(limits))));
        }
        self.resolve_anew(now);
        Ok(Answer::Done)
    }
}

/// The language never compiles such flows; code that embeds the core could.
fn check_flow(flow: &Flow) -> Result<(), Refusal> {
    let bad = |what: String| Err(Refusal::BadFlow(what));
    let count = flow.steps.len();
    let mut missing: Vec<usize> = flow.steps.iter().map(|step| step.after.len()).collect();
    for step in &flow.steps {
        if let Some(&before) = step.after.iter().find(|&&before| before as usize >= count) {
            return bad(format!("step `{}` waits for step number {before}, which does not exist", step.name));
        }
    }
    let mut done: Vec<usize> = (0..count).filter(|&index| missing[index] == 0).collect();
    let mut reached = 0;
    while let Some(index) = done.pop() {
        reached += 1;
        for (later, step) in flow.steps.iter().enumerate() {
            let edges = step.after.iter().filter(|&&before| before as usize == index).count();
            if edges > 0 {
                missing[later] -= edges;
                if missing[later] == 0 {
                    done.push(later);
                }
            }
        }
    }
    if reached < count {
        bad(format!("steps of `{}` wait for each other in a circle", flow.name))
    } else {
        Ok(())
    }
}
