//! Steps that need not run again, because they ended well in an earlier run of the same version of the flow.

use crate::core::Core;
use crate::ids::NodeId;
use crate::model::Flow;
use crate::nodes::Run;
use crate::protocol::{PastStep, StepKind};
use crate::state::State;
use crate::time::Moment;

/// Those of the steps that ended that are reused, by index. One that succeeded or was skipped is, if all that it waits for
/// is reused too: otherwise whether it runs, and on what, has to be decided anew.
pub(crate) fn reusable(flow: &Flow, ended: &[PastStep]) -> Vec<PastStep> {
    let mut reused: Vec<Option<PastStep>> = vec![None; flow.steps.len()];
    for step in ended.iter().filter(|step| matches!(step.state, State::Succeeded | State::Skipped)) {
        if let Some(place) = reused.get_mut(step.index as usize) {
            *place = Some(*step);
        }
    }
    // Steps stand in the order of the file, so one may wait for a later one.
    loop {
        let is_lost = |index: &usize| {
            let is_missing = |&before: &u32| reused[before as usize].is_none();
            reused[*index].is_some() && flow.steps[*index].after.iter().any(is_missing)
        };
        let lost: Vec<usize> = (0..reused.len()).filter(is_lost).collect();
        if lost.is_empty() {
            return reused.into_iter().flatten().collect();
        }
        lost.into_iter().for_each(|index| reused[index] = None);
    }
}

impl Core {
    /// Steps of a run that was just accepted have ended already, elsewhere.
    pub(crate) fn reuse_steps(&mut self, node: NodeId, steps: &[PastStep], now: Moment) {
        for &PastStep { index, state, ran, run } in steps {
            self.write_ended_step(node, index, StepKind::Reused { of: ran, run }, state, None, now);
            self.run_mut(node).into_iter().for_each(|run| run.reuse(index, state, ran));
        }
    }
}

impl Run {
    /// A step of it ended in another run, where what it put out is.
    pub(crate) fn reuse(&mut self, index: u32, state: State, ran: NodeId) {
        self.end_step(index, state);
        self.reused.insert(index, ran);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::RunId;
    use crate::model::{Rule, Step};
    use crate::testkit::{flow, step};
    use proptest::prelude::*;

    fn ended(index: usize, state: State) -> PastStep {
        PastStep { index: index as u32, state, ran: NodeId(10 + index as u64), run: RunId(1) }
    }

    /// The names of the steps that are reused, of steps with what they wait for and how they ended.
    fn reused(steps: &[(&str, &[u32], Option<State>)]) -> String {
        let model = |&(name, after, _): &(&str, &[u32], _)| Step { after: after.to_vec(), ..step(name) };
        let flow = flow("one", steps.iter().map(model).collect());
        let past = steps.iter().enumerate().filter_map(|(index, step)| Some(ended(index, step.2?)));
        let reused = reusable(&flow, &past.collect::<Vec<_>>());
        reused.iter().map(|step| flow.steps[step.index as usize].name.as_str()).collect()
    }

    #[test]
    fn what_ended_well_after_what_ended_well_is_reused() {
        use State::{Cancelled, Expired, Failed, Refused, Skipped, Succeeded, TimedOut};
        let chain = |first, second| reused(&[("a", &[], first), ("b", &[0], second)]);
        assert_eq!(chain(Some(Succeeded), Some(Succeeded)), "ab");
        assert_eq!(chain(Some(Succeeded), Some(Skipped)), "ab", "its condition is what it was");
        assert_eq!(chain(Some(Skipped), Some(Skipped)), "ab");
        for bad in [None, Some(Failed), Some(TimedOut), Some(Cancelled), Some(Expired), Some(Refused)] {
            assert_eq!(chain(Some(Succeeded), bad), "a", "{bad:?}");
            assert_eq!(chain(bad, Some(Succeeded)), "", "a clean-up that ran because of {bad:?}");
            assert_eq!(chain(bad, Some(Skipped)), "", "skipped because of {bad:?}");
        }
    }

    #[test]
    fn independent_branches_are_judged_by_themselves_and_the_order_of_the_file_does_not_count() {
        use State::{Failed, Succeeded};
        let (good, bad) = (Some(Succeeded), Some(Failed));
        let branches = [("a", &[][..], good), ("b", &[0], bad), ("c", &[0], good), ("d", &[1, 2], good)];
        assert_eq!(reused(&branches), "ac");
        let backwards = [("d", &[1][..], good), ("c", &[2], good), ("b", &[3], good), ("a", &[], bad)];
        assert_eq!(reused(&backwards), "");
    }

    #[test]
    fn a_step_that_the_flow_does_not_have_is_not_reused() {
        assert_eq!(reusable(&flow("one", vec![step("a")]), &[ended(1, State::Succeeded)]), []);
    }

    /// Steps that wait for any of those that come before them in a random order, and how they ended.
    fn pasts() -> impl Strategy<Value = (Flow, Vec<PastStep>)> {
        let steps = prop::collection::vec((any::<u16>(), 0..5usize), 1..12);
        let ordered = steps.prop_flat_map(|steps| {
            let order = Just((0..steps.len()).collect::<Vec<_>>()).prop_shuffle();
            (Just(steps), order)
        });
        ordered.prop_map(|(steps, place)| {
            let mut models = vec![step("x"); steps.len()];
            let mut past = Vec::new();
            for (index, &(edges, how)) in steps.iter().enumerate() {
                let before = (0..index).filter(|before| edges >> before & 1 == 1);
                models[place[index]].after = before.map(|before| place[before] as u32).collect();
                models[place[index]].rule = Rule::Success { when: None };
                let states = [State::Succeeded, State::Succeeded, State::Skipped, State::Failed];
                past.extend(states.get(how).map(|&state| ended(place[index], state)));
            }
            (flow("one", models), past)
        })
    }

    proptest! {
        #[test]
        fn reused_is_exactly_what_ended_well_and_waits_for_nothing_else((flow, past) in pasts()) {
            let reused = reusable(&flow, &past);
            let is_reused = |index: u32| reused.iter().any(|step| step.index == index);
            for step in &past {
                let ended_well = matches!(step.state, State::Succeeded | State::Skipped);
                let waits = &flow.steps[step.index as usize].after;
                let expected = ended_well && waits.iter().all(|&before| is_reused(before));
                prop_assert_eq!(is_reused(step.index), expected);
            }
            prop_assert!(reused.iter().all(|step| past.contains(step)));
            prop_assert!(reused.is_sorted_by_key(|step| step.index));
        }
    }
}
