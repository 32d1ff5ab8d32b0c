//! What runs of a flow will ask for, before there is any: from the same code that asks. Reads only.

use crate::admission::{Ask, Gauge, LimitKey};
use crate::catalog::Source;
use crate::core::Core;
use crate::ids::{Name, NodeId};
use crate::model::{Origin, QuotaPolicy, RatePolicy, Requirement};
use serde::{Deserialize, Serialize};

/// A limit that something meets, and how much of it is wanted.
#[derive(Clone, PartialEq, Debug)]
pub struct Demand {
    pub limit: LimitKey,
    pub units: u32,
    pub bound: Bound,
    /// Where the bound was declared; nowhere, if it is one that holds unless told otherwise.
    pub origin: Origin,
}

/// What there is of a limit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Bound {
    Units(u64),
    Rate(RatePolicy),
    Quota(QuotaPolicy),
    /// Slots of workers that fit, however many these bring.
    Workers(Requirement),
}

/// Nothing has this number: what is asked for here belongs to no run.
const NOBODY: NodeId = NodeId(0);

impl Core {
    /// What a run of the newest version of a flow asks for before it starts.
    pub fn demands_of_run(&self, flow: &Name, key: Option<Name>, tags: &[(Name, Name)]) -> Vec<Demand> {
        let tags = self.catalog.tags_that_count(tags);
        self.resolved(&Source::Run { flow: flow.clone(), key, tags }, None)
    }

    /// What every attempt of a step asks for, and before it the step itself. The key of an action, which depends on
    /// inputs, is left empty.
    pub fn demands_of_step(&self, flow: &Name, step: usize) -> Vec<Demand> {
        let Some((_, plan)) = self.catalog.newest(flow.as_str()) else { return Vec::new() };
        let Some(model) = plan.flow.steps.get(step) else { return Vec::new() };
        let of_run = plan.flow.parallel_steps.map(|parallel| Source::Step { run: NOBODY, parallel });
        let mut demands: Vec<Demand> = of_run
            .map(|source| self.resolved(&source, Some(plan.flow.parallel_origin())))
            .unwrap_or_default();
        let source = self.work_source(model, NOBODY, &Some(Name::new("")));
        demands.extend(self.resolved(&source, Some(plan.flow.window_origin(model))));
        demands
    }

    /// `here` is where limits are declared that belong to one run or step alone.
    fn resolved(&self, source: &Source, here: Option<Origin>) -> Vec<Demand> {
        let mut demands: Vec<Demand> = Vec::new();
        for Ask { key, units, gauge } in self.catalog.resolve(source) {
            if let Some(same) = demands.iter_mut().find(|demand| demand.limit == key) {
                same.units += units;
                continue;
            }
            let origin = match (&key, &here) {
                (LimitKey::Steps(_) | LimitKey::Window(_), Some(here)) => here.clone(),
                _ => self.catalog.origin(&key),
            };
            let bound = match (&gauge, &key) {
                (Gauge::Rate(rate), _) => Bound::Rate(*rate.policy()),
                (Gauge::Quota(quota), _) => Bound::Quota(quota.policy().clone()),
                (Gauge::Slots(_), LimitKey::Slot(needs)) => Bound::Workers(needs.clone()),
                (Gauge::Units { capacity, .. }, _) => Bound::Units(*capacity),
                (Gauge::Slots(_), _) => continue,
            };
            demands.push(Demand { limit: key, units, bound, origin });
        }
        demands
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::describe;
    use crate::model::{
        Action, ActionPolicy, Each, EachLines, LimitsDocument, Loop, MatchRule, OnFailure, Pool, Step,
        Template,
    };
    use crate::model::{TagLimit, Work};
    use crate::protocol::{Command, Declare};
    use crate::testkit::{doing, flow};
    use crate::time::Moment;

    fn told(demands: &[Demand]) -> Vec<String> {
        let bound = |bound: &Bound| match bound {
            Bound::Units(units) => units.to_string(),
            Bound::Rate(rate) => format!("{}/{}", rate.limit, rate.per),
            Bound::Quota(quota) => quota.limit.to_string(),
            Bound::Workers(needs) => needs.queue.to_string(),
        };
        let one = |demand: &Demand| {
            format!(
                "{}: {} of {} at {}",
                describe(&demand.limit),
                demand.units,
                bound(&demand.bound),
                demand.origin.line
            )
        };
        demands.iter().map(one).collect()
    }

    #[test]
    fn every_limit_that_a_run_will_meet_is_told() {
        let origin = |line| Origin { file: Some("a.yaml".into()), line };
        let mut policy = ActionPolicy::silent("mail.send".into());
        policy.pools = vec![("web".into(), 2)];
        policy.origin = origin(20);
        let work = Work::Action { action: "mail.send".into(), inputs: Template("{}".into()) };
        let (items, on_failure) = (Template("[]".into()), OnFailure::STOP);
        let each = Loop { items, window: Some(3), on_failure, window_line: Some(12) };
        let step = Step { each: Some(each), pools: vec![("web".into(), 1)], line: 7, ..doing("send", work) };
        let mut flow = flow("mails", vec![step]);
        (flow.parallel_steps, flow.concurrency, flow.line) = (Some(2), Some(5), 4);
        flow.parallel_line = Some(5);
        let lines = EachLines { concurrency: Some(33), ..EachLines::default() };
        let rule = MatchRule {
            pattern: "mail.*".into(),
            each: Each { concurrency: Some(20), ..Each::default() },
            total: Each { concurrency: Some(60), lines, ..Each::default() },
            origin: origin(30),
        };
        let limits = LimitsDocument {
            tags: vec![TagLimit { tag: "env".into(), value: None, limit: 1, origin: origin(31) }],
            actions: vec![rule],
            pools: vec![Pool { name: "web".into(), slots: 9, lease: None, origin: origin(32) }],
            ..LimitsDocument::default()
        };
        let mut core = Core::new(1);
        let declare = Declare {
            flows: vec![flow],
            actions: vec![Action::function(policy)],
            limits: Some(limits),
            files: vec!["a.yaml".into()],
        };
        core.apply(Command::Declare(declare), Moment(0));
        let tags = [("env".into(), "prod".into()), ("team".into(), "data".into())];
        let run = core.demands_of_run(&"mails".into(), Some("k".into()), &tags);
        let expected = [
            "runs at once: 1 of 10 at 0",
            "runs with env=prod: 1 of 1 at 31",
            "runs of mails for k: 1 of 5 at 4",
        ];
        assert_eq!(told(&run), expected);
        let step = core.demands_of_step(&"mails".into(), 0);
        let expected = [
            "steps of the run: 1 of 2 at 5",
            "window of the loop: 1 of 3 at 12",
            "action mail.send for : 1 of 20 at 30",
            "total of mail.*: 1 of 60 at 33",
            "pool web: 3 of 9 at 32",
            "workers: 1 of default at 0",
        ];
        assert_eq!(told(&step), expected);
        assert!(core.demands_of_step(&"mails".into(), 1).is_empty() && core.waiting().is_empty());
    }
}
