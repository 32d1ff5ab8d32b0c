//! Definitions are declared: flows, actions, limits. What is running counts at once where it now belongs.

use crate::admission::LimitKey;
use crate::core::Core;
use crate::ids::Name;
use crate::model::{ActionPolicy, Flow};
use crate::nodes::{Node, Run};
use crate::protocol::{Answer, Declare, DeclaredRow, Refusal, Write};
use crate::time::Moment;
use std::sync::Arc;

impl Core {
    pub(crate) fn declare(&mut self, declare: Declare, now: Moment) -> Result<Answer, Refusal> {
        for flow in &declare.flows {
            check_flow(flow)?;
        }
        if let Some(pool) = self.pool_still_named(&declare) {
            return Err(Refusal::StillNamed(LimitKey::Pool(pool).to_string()));
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

    /// A pool that would disappear although somebody needs it: a flow or action as it then is, a run on the version it
    /// started with, or a task that waits or runs.
    fn pool_still_named(&self, declare: &Declare) -> Option<Name> {
        let limits = declare.limits.as_ref()?;
        let kept = |pool: &Name| limits.pools.iter().any(|kept| kept.name == *pool);
        let gone = self.catalog.limits.pools.iter().map(|pool| &pool.name).filter(|pool| !kept(pool));
        let replaced = |flow: &Flow| declare.flows.iter().any(|new| new.name == flow.name);
        let flows = self.catalog.newest_flows().map(|plan| &*plan.flow).filter(|flow| !replaced(flow));
        let flows: Vec<&Flow> =
            flows.chain(&declare.flows).chain(self.runs().map(|run| &*run.plan.flow)).collect();
        let replaced = |action: &Name| declare.actions.iter().any(|new| new.policy.action == *action);
        let actions = self.catalog.policies().filter(|policy| !replaced(&policy.action));
        let actions: Vec<&ActionPolicy> =
            actions.chain(declare.actions.iter().map(|action| &action.policy)).collect();
        gone.cloned().find(|pool| {
            let names = |pools: &[(Name, u32)]| pools.iter().any(|(named, _)| named == pool);
            flows.iter().any(|flow| flow.steps.iter().any(|step| names(&step.pools)))
                || actions.iter().any(|policy| names(&policy.pools))
                || self.admission.find(&LimitKey::Pool(pool.clone())).is_some_and(|limit| {
                    self.admission.users(limit).any(|class| self.admission.class(class).is_used())
                })
        })
    }

    fn runs(&self) -> impl Iterator<Item = &Run> {
        self.nodes.values().filter_map(Node::run)
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
