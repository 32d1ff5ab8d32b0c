//! The flows of a seed. Their templates are what the simulated evaluator reads: a number of items, `true`, `false`,
//! `error`.

use crate::random::Random;
use tidegate_core::model::{
    Backoff, Flow, Loop, OnFailure, Requirement, Retry, Rule, Runner, Step, Template, WhenBusy, Work,
};
use tidegate_core::time::Span;

/// The function that steps of a process with its store for itself call.
pub(super) const STEP: &str = "step";

fn text(text: &str) -> Template {
    Template(text.into())
}

fn step(name: &str, after: &[u32]) -> Step {
    Step {
        name: name.into(),
        after: after.to_vec(),
        rule: Rule::Success { when: None },
        work: Work::Order(text("")),
        each: None,
        pools: Vec::new(),
        needs: Requirement::process(),
        retry: None,
        max_losses: None,
        timeout: None,
        start_within: None,
        line: 1,
    }
}

fn flow(name: &str, steps: Vec<Step>) -> Flow {
    Flow {
        name: name.into(),
        description: None,
        inputs: Vec::new(),
        tags: Vec::new(),
        concurrency: None,
        key: None,
        when_busy: WhenBusy::Queue,
        parallel_steps: None,
        timeout: None,
        fail_fast: false,
        steps,
        outputs: None,
        file: "plan".into(),
        parallel_line: None,
        line: 1,
    }
}

const TWICE: Retry = Retry {
    attempts: 2,
    backoff: Backoff::Constant,
    delay: Span::millis(300),
    max_delay: Span::seconds(1),
    jitter: true,
    on: Vec::new(),
};

fn looped(random: &mut Random, name: &str, after: &[u32], on_failure: OnFailure) -> Step {
    let items = *random.pick(&[0u64, 1, 2, 5, 9, 14]);
    let window = Some(random.between(1, 4) as u32);
    Step {
        each: Some(Loop { items: text(&items.to_string()), window, on_failure, window_line: None }),
        retry: Some(TWICE),
        ..step(name, after)
    }
}

pub(super) fn flows(random: &mut Random, embedded: bool) -> Vec<Flow> {
    let mut flows = of_processes(random);
    if embedded {
        let steps = flows.iter_mut().flat_map(|flow| &mut flow.steps);
        steps.for_each(|step| step.needs.runner = Runner::Function(STEP.into()));
    }
    flows
}

fn of_processes(random: &mut Random) -> Vec<Flow> {
    let when = |rule: &'static str| Rule::Success { when: Some(text(rule)) };
    let condition = ["true", "false", "error"][random.index(3)];
    let window = flow(
        "window",
        vec![
            step("list", &[]),
            looped(random, "each", &[0], OnFailure::Continue),
            step("after", &[1]),
            Step { rule: when(condition), ..step("maybe", &[2]) },
            Step { rule: Rule::Always { when: None }, ..step("always", &[3]) },
        ],
    );
    let mut wide = flow(
        "wide",
        (0..random.between(3, 7))
            .map(|n| Step {
                pools: vec![("tool".into(), 1)],
                timeout: random.chance(30).then_some(Span::seconds(4)),
                retry: random.chance(50).then_some(TWICE),
                ..step(&format!("s{n}"), &[])
            })
            .collect(),
    );
    wide.parallel_steps = Some(random.between(1, 3) as u32);
    wide.concurrency = Some(1);
    wide.when_busy =
        *random.pick(&[WhenBusy::Queue, WhenBusy::Queue, WhenBusy::Replace, WhenBusy::CancelRunning]);
    wide.fail_fast = random.chance(30);
    let mut nested = flow(
        "nested",
        vec![
            Step { work: Work::Flow { flow: "window".into(), inputs: text("{}") }, ..step("inner", &[]) },
            Step { work: Work::Wait(text("2500")), ..step("pause", &[]) },
            looped(random, "strict", &[1], OnFailure::Tolerate(1)),
            Step { rule: Rule::States { when: text("true") }, ..step("handler", &[0, 2]) },
        ],
    );
    nested.outputs = Some(text("{}"));
    nested.timeout = random.chance(20).then_some(Span::seconds(25));
    let mut flows = vec![window, wide, nested];
    flows.extend(over_flows(random));
    flows
}

/// A loop over a small flow, and one over a flow that has a loop itself.
fn over_flows(random: &mut Random) -> [Flow; 2] {
    let called = |name: &str| Work::Flow { flow: name.into(), inputs: text("{}") };
    let mut leaf = flow(
        "leaf",
        vec![
            Step { retry: random.chance(50).then_some(TWICE), ..step("first", &[]) },
            Step { work: Work::Wait(text("400")), ..step("rest", &[]) },
            step("last", &[0, 1]),
        ],
    );
    leaf.parallel_steps = random.chance(50).then_some(1);
    leaf.timeout = random.chance(30).then_some(Span::seconds(6));
    leaf.fail_fast = random.chance(30);
    leaf.outputs = random.chance(50).then(|| text("{}"));
    let on_failure = *random.pick(&[OnFailure::Continue, OnFailure::STOP, OnFailure::Tolerate(1)]);
    let leaves = looped(random, "leaves", &[], on_failure);
    let mut windows = looped(random, "windows", &[], OnFailure::Continue);
    let (items, on_failure) = (text("3"), OnFailure::Continue);
    windows.each = Some(Loop { items, window: None, on_failure, window_line: None });
    let mut fan = flow(
        "fan",
        vec![
            Step { work: called("leaf"), retry: None, ..leaves },
            Step { work: called("window"), retry: None, ..windows },
            Step { rule: Rule::States { when: text("true") }, ..step("handler", &[0]) },
        ],
    );
    fan.parallel_steps = random.chance(50).then(|| random.between(1, 2) as u32);
    fan.fail_fast = random.chance(20);
    [leaf, fan]
}
