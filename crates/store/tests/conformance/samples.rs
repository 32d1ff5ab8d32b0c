//! Rows and definitions to write.

use tidegate_core::ids::{Epoch, Name, NodeId, RunId, TaskId};
use tidegate_core::model::{Flow, Requirement, Retry, Rule, Step, Template, WhenBusy, Work};
use tidegate_core::protocol::{
    Body, GrantRow, Idempotency, JobBody, Lease, Life, NodeRow, Payload, Rendered, RunBody, StepBody,
    StepKind, Write,
};
use tidegate_core::state::State;
use tidegate_core::time::{Moment, Span};

pub const JOB: NodeId = NodeId(3);
pub const RUN: NodeId = NodeId(10);
pub const STEP: NodeId = NodeId(11);

pub fn job() -> NodeRow {
    let body = JobBody {
        id: RunId(u128::MAX - 5),
        action: Name::new("mail.send"),
        key: Some(Name::new("o'hara \"x\"")),
        tags: vec![(Name::new("team"), Name::new("ü"))],
        start_by: Some(Moment(99)),
        idempotency: Some(Idempotency { key: Name::new("once"), content: u64::MAX }),
    };
    NodeRow {
        node: JOB,
        parent: None,
        root: 3,
        priority: -7,
        accepted: Moment(50),
        body: Body::Job(body),
        payload: Some(Payload::new(r#"{"to":"a"}"#)),
        life: Life::new(State::Waiting),
    }
}

pub fn run() -> NodeRow {
    let body = RunBody {
        id: Some(RunId(1)),
        flow: Name::new("nightly"),
        version: 4,
        depth: 0,
        key: None,
        tags: Vec::new(),
        idempotency: None,
    };
    NodeRow { node: RUN, root: 10, priority: 5, body: Body::Run(body), payload: None, ..job() }
}

pub fn step(kind: StepKind) -> NodeRow {
    let body = Body::Step(StepBody { index: 0, kind, start_by: None });
    NodeRow { node: STEP, parent: Some(RUN), body, ..run() }
}

pub fn add(row: NodeRow) -> Write {
    Write::NodeAdded(Box::new(row))
}

pub fn epoch(grant: u64) -> Epoch {
    Epoch { incarnation: 2, grant }
}

pub fn grant_row(grant: u64) -> GrantRow {
    let (at, until) = (Moment(100 + grant as i64), Moment(130));
    GrantRow { epoch: epoch(grant), worker: Name::new("w1"), at, until, length: Span(30) }
}

pub fn granted(task: TaskId, grant: u64) -> Write {
    Write::Granted { task, grant: grant_row(grant), number: grant as u32 }
}

pub fn lease(task: TaskId, grant: u64) -> Lease {
    Lease { task, epoch: epoch(grant) }
}

pub fn ended(task: TaskId, state: State, output: Option<&str>) -> Write {
    let error = (state == State::Failed).then(|| "it broke".to_owned());
    Write::Ended { task, state, output: output.map(Payload::new), error, at: Moment(500) }
}

/// Items `from..from + count`; every second has a key.
pub fn items(from: u32, count: u32) -> Write {
    let item = |index: u32| Rendered {
        order: Payload::new(format!("[{index}]")),
        key: (index % 2 == 1).then(|| Name::new(format!("k{index}"))),
    };
    Write::ItemsAdded { step: STEP, from, items: (from..from + count).map(item).collect(), at: Moment(200) }
}

/// An open run with an open loop in it.
pub fn open_loop() -> [Write; 4] {
    let entered = |node| Write::Entered { node, state: State::Running, at: Moment(60) };
    [add(run()), entered(RUN), add(step(StepKind::Loop { count: 9 })), entered(STEP)]
}

pub fn flow(name: &str, lines: u32) -> Flow {
    let template = || Template("{}".into());
    let step = Step {
        name: Name::new("first"),
        after: Vec::new(),
        rule: Rule::Success { when: None },
        work: Work::Action { action: Name::new("mail.send"), inputs: template() },
        each: None,
        pools: vec![(Name::new("gpu"), 2)],
        needs: Requirement::process(),
        retry: Some(Retry::ONCE),
        max_losses: None,
        timeout: Some(Span::seconds(1)),
        start_within: None,
        line: lines,
    };
    Flow {
        name: Name::new(name),
        description: None,
        inputs: Vec::new(),
        tags: vec![(Name::new("team"), template())],
        concurrency: None,
        key: None,
        when_busy: WhenBusy::Queue,
        parallel_steps: None,
        timeout: None,
        fail_fast: true,
        steps: vec![step],
        outputs: None,
        file: Name::new("flow.yaml"),
        line: 1,
        parallel_line: None,
    }
}
