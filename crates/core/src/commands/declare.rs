//! Definitions are declared: flows, actions, limits. What is running counts at once where it now belongs.

use crate::admission::LimitKey;
use crate::core::Core;
use crate::declared_limits::Said;
use crate::ids::Name;
use crate::model::{ActionPolicy, Each, Flow, LimitsDocument};
use crate::names;
use crate::nodes::Run;
use crate::protocol::{ActionRow, Answer, Declare, DeclaredRow, Refusal, Write};
use crate::time::{Moment, Span};
use std::sync::Arc;

impl Core {
    pub(crate) fn declare(&mut self, declare: Declare, now: Moment) -> Result<Answer, Refusal> {
        names::of_declaration(&declare)?;
        for flow in &declare.flows {
            check_flow(flow)?;
        }
        for action in &declare.actions {
            check_policy(&action.policy)?;
        }
        let limits = self.limits_with(&declare);
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
            if let Some(version) = self.catalog.version_of(&action) {
                self.catalog.set_action(version, action.clone());
                self.write(Write::Declared(Box::new(DeclaredRow::Action(ActionRow { version, action }))));
            }
        }
        if limits != self.catalog.limits {
            self.catalog.limits = limits.clone();
            self.write(Write::Declared(Box::new(DeclaredRow::Limits(limits))));
        }
        self.resolve_anew(now);
        Ok(Answer::Done)
    }

    /// What holds once this is declared: pools stay while somebody needs them, be it a flow or action as it then is, a
    /// run on the version it started with, or a task that waits or runs.
    fn limits_with(&self, declare: &Declare) -> LimitsDocument {
        let said = Said::new(declare.limits.as_ref(), &declare.files);
        let replaced = |flow: &Flow| declare.flows.iter().any(|new| new.name == flow.name);
        let flows = self.catalog.newest_flows().map(|plan| &*plan.flow).filter(|flow| !replaced(flow));
        let flows: Vec<&Flow> =
            flows.chain(&declare.flows).chain(self.runs().map(|run| &*run.plan.flow)).collect();
        let replaced = |action: &Name| declare.actions.iter().any(|new| new.policy.action == *action);
        let actions = self.catalog.policies().filter(|policy| !replaced(&policy.action));
        let actions: Vec<&ActionPolicy> =
            actions.chain(declare.actions.iter().map(|action| &action.policy)).collect();
        said.over(&self.catalog.limits, |pool| {
            let names = |pools: &[(Name, u32)]| pools.iter().any(|(named, _)| *named == pool.name);
            let limit = self.admission.find(&LimitKey::Pool(pool.name.clone()));
            flows.iter().any(|flow| flow.steps.iter().any(|step| names(&step.pools)))
                || actions.iter().any(|policy| names(&policy.pools))
                || limit.is_some_and(|limit| {
                    self.admission.users(limit).any(|class| self.admission.class(class).is_used())
                })
        })
    }

    fn runs(&self) -> impl Iterator<Item = &Run> {
        self.nodes.iter().filter_map(|(_, node)| node.run())
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

/// What would never let anything start. Again the language never says so.
fn check_policy(policy: &ActionPolicy) -> Result<(), Refusal> {
    let Each { concurrency, rate, quota, .. } = &policy.each;
    let what = if *concurrency == Some(0) {
        "a concurrency of 0 lets nothing start"
    } else if rate.as_ref().is_some_and(|rate| rate.limit == 0 || rate.per <= Span::ZERO) {
        "a rate needs a limit and a span above 0"
    } else if quota.as_ref().is_some_and(|quota| quota.limit == 0) {
        "a quota of 0 lets nothing start"
    } else if policy.retry.attempts == 0 {
        "0 attempts let nothing start"
    } else {
        return Ok(());
    };
    Err(Refusal::BadAction { action: policy.action.clone(), what: what.to_owned() })
}

#[cfg(test)]
mod tests {
    use crate::asked::Called;
    use crate::ids::NodeId;
    use crate::model::{Action, ActionWork, Step, Template, Work};
    use crate::protocol::{ActionRow, Answer, Command, Declare, DeclaredRow, Question, Refusal, Write};
    use crate::testkit::{Kit, action, flow, limits, step};
    use std::sync::Arc;

    fn bad(steps: Vec<Step>) -> Refusal {
        let flows = vec![flow("good", vec![step("a")]), flow("bad", steps)];
        let refused = Kit::new(1).refused(Command::Declare(Declare { flows, ..Declare::default() }));
        assert!(matches!(refused, Refusal::BadFlow(_)), "{refused:?}");
        refused
    }

    #[test]
    fn flows_that_cannot_end_are_refused_with_everything_declared_beside_them() {
        let after = |name, after| Step { after, ..step(name) };
        let lost = bad(vec![after("a", vec![7])]);
        assert_eq!(
            lost.to_string(),
            "the flow is invalid: step `a` waits for step number 7, which does not exist"
        );
        let circle = bad(vec![step("a"), after("b", vec![0, 3]), after("c", vec![1]), after("d", vec![2])]);
        assert_eq!(circle.to_string(), "the flow is invalid: steps of `bad` wait for each other in a circle");
        bad(vec![after("a", vec![0])]);
    }

    #[test]
    fn a_step_may_name_another_twice() {
        let steps = vec![step("a"), Step { after: vec![0, 0], ..step("b") }];
        assert_eq!(Kit::new(1).declare(vec![flow("one", steps)], Vec::new(), None), Answer::Done);
    }

    #[test]
    fn what_did_not_change_is_not_written() {
        let mut kit = Kit::new(1);
        let all =
            || (vec![flow("one", vec![step("a")])], vec![action("work", Some(1), &[])], limits(&[("db", 1)]));
        let (flows, actions, pools) = all();
        kit.declare(flows, actions, Some(pools));
        assert_eq!(kit.writes.len(), 3);
        let (flows, actions, pools) = all();
        kit.declare(flows, actions, Some(pools));
        assert_eq!(kit.writes, []);
        kit.declare(
            vec![flow("one", vec![step("b")])],
            vec![action("work", Some(2), &[])],
            Some(limits(&[])),
        );
        assert_eq!(kit.writes.len(), 3);
    }

    fn called(kit: &Kit, run: NodeId) -> Option<Called> {
        kit.core.asked(Question::Step { run, step: 0 })?.callee
    }

    #[test]
    fn a_run_calls_actions_as_they_were_when_it_began() {
        let mut kit = Kit::new(1);
        let does = |what: &str| Action {
            work: ActionWork::Order(Template(what.into())),
            ..action("work", None, &[])
        };
        let calls = Work::Action { action: "work".into(), inputs: Template("{}".into()) };
        let calls = flow("one", vec![Step { work: calls, ..step("a") }]);
        kit.declare(vec![calls], vec![does("old")], None);
        let before = kit.run("one");
        kit.declare(Vec::new(), vec![does("new")], None);
        let after = kit.run("one");
        let then = |what| Some(Called::Action(Arc::new(does(what))));
        assert_eq!((called(&kit, before), called(&kit, after)), (then("old"), then("new")));
    }

    #[test]
    fn new_limits_make_no_new_version() {
        let mut kit = Kit::new(1);
        for limit in [1, 2] {
            kit.declare(Vec::new(), vec![action("work", Some(limit), &[])], None);
            let action = Arc::new(action("work", Some(limit), &[]));
            let row = DeclaredRow::Action(ActionRow { version: 1, action });
            assert_eq!(kit.writes, [Write::Declared(Box::new(row))]);
        }
    }

    #[test]
    fn a_pool_that_only_an_old_version_names_stays_while_that_runs() {
        let mut kit = Kit::new(1);
        let old = Step { pools: vec![("db".into(), 1)], ..step("a") };
        kit.declare(vec![flow("one", vec![old])], Vec::new(), Some(limits(&[("db", 1)])));
        let run = kit.run("one");
        kit.declare(vec![flow("one", vec![step("a")])], Vec::new(), Some(limits(&[])));
        assert_eq!(kit.core.catalog.limits, limits(&[("db", 1)]));
        kit.apply(Command::Cancel(crate::ids::TaskId::node(run)));
        kit.declare(Vec::new(), Vec::new(), Some(limits(&[])));
        assert_eq!(kit.core.catalog.limits, limits(&[]));
    }
}
