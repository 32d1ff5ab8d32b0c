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
    vec![window, wide, nested]
}
