//! A small world for tests of single commands: a core, a clock, and everything it said so far.
//!
//! Whole stories are told by the simulator's scenarios; here are the corners that a well-behaved shell never reaches.

use crate::admission::{LimitKey, Skills, SlotCounts};
use crate::core::Core;
use crate::ids::{Name, NodeId, RunId, TaskId};
use crate::model::{
    Action, ActionPolicy, ActionWork, Each, Flow, LimitsDocument, Loop, OnFailure, Origin, Pool, Requirement,
    Rule, Step, Template, WhenBusy, Work,
};
use crate::protocol::{
    Answer, Command, Declare, Effect, Evaluation, Finish, Heartbeat, Join, Lease, LimitValue, Outcome,
    Payload, Question, Refusal, Rendered, SetLimit, Submission, Submit, Write,
};
use crate::state::State;
use crate::time::{Moment, Span};

/// The worker that everybody uses.
pub(crate) const WORKER: &str = "w";

pub(crate) struct Kit {
    pub core: Core,
    pub now: Moment,
    pub writes: Vec<Write>,
    pub effects: Vec<Effect>,
    ids: u128,
}

impl Kit {
    /// Nothing but a worker with so many slots.
    pub fn new(slots: u32) -> Kit {
        let now = Moment(1_000_000_000);
        let mut kit = Kit { core: Core::new(1), now, writes: Vec::new(), effects: Vec::new(), ids: 0 };
        kit.join(WORKER, 1, slots);
        kit
    }

    /// Applies a command. What was said before it is forgotten.
    pub fn apply(&mut self, command: Command) -> Answer {
        let answer = self.core.apply(command, self.now);
        let output = self.core.take_output();
        self.writes = output.writes;
        self.effects.extend(output.effects);
        answer
    }

    /// The reason why a command is refused. A refusal changes nothing, so nothing is written.
    pub fn refused(&mut self, command: Command) -> Refusal {
        match self.apply(command) {
            Answer::Refused(refusal) => {
                assert_eq!(self.writes, [], "a refusal changes nothing");
                refusal
            }
            other => panic!("not refused but {other:?}"),
        }
    }

    pub fn advance(&mut self, span: Span) {
        self.now = self.now + span;
        self.apply(Command::Wake);
    }

    pub fn join(&mut self, worker: &str, incarnation: u64, slots: u32) {
        let functions = ["work", "other", "keyed"].map(Name::from).to_vec();
        let skills = Skills { functions, ..Skills::plain() };
        let slots = SlotCounts { process: slots, io: slots };
        self.apply(Command::Join(Join { worker: worker.into(), incarnation, skills, slots }));
    }

    pub fn heartbeat(&mut self, worker: &str, incarnation: u64, has: Vec<Lease>) -> Answer {
        self.apply(Command::Heartbeat(Heartbeat { worker: worker.into(), incarnation, has }))
    }

    // ---- roots

    pub fn submit(&mut self, what: Submission) -> Submit {
        self.ids += 1;
        Submit { id: RunId(self.ids), what, tags: Vec::new(), priority: 0, due: None, idempotency: None }
    }

    pub fn job(&mut self, action: &str) -> NodeId {
        let submit = self.submit(job(action));
        self.accepted(submit)
    }

    pub fn run(&mut self, flow: &str) -> NodeId {
        let submit = self.submit(run(flow));
        self.accepted(submit)
    }

    pub fn accepted(&mut self, submit: Submit) -> NodeId {
        match self.apply(Command::Submit(submit)) {
            Answer::Accepted { node, again: false } => node,
            other => panic!("not accepted but {other:?}"),
        }
    }

    // ---- attempts

    /// The newest lease of a task.
    pub fn lease(&self, task: TaskId) -> Lease {
        let leases = self.effects.iter().rev().filter_map(|effect| match effect {
            Effect::Deliver { lease, .. } if lease.task == task => Some(*lease),
            _ => None,
        });
        leases.into_iter().next().expect("it started")
    }

    pub fn finish(&mut self, lease: Lease, outcome: Outcome) -> Answer {
        self.apply(Command::Finish(Finish { worker: WORKER.into(), lease, outcome, offer: None }))
    }

    pub fn succeed(&mut self, task: TaskId) {
        let lease = self.lease(task);
        assert_eq!(self.finish(lease, Outcome::Succeeded(Payload::null())), Answer::Done);
    }

    /// How a task ended in the last command.
    pub fn ended(&self, node: NodeId) -> Option<(State, Option<String>)> {
        self.writes.iter().find_map(|write| match write {
            Write::Ended { task, state, error, .. } if *task == TaskId::node(node) => {
                Some((*state, error.clone()))
            }
            Write::NodeAdded(row) if row.node == node && row.life.state.is_end() => {
                Some((row.life.state, row.life.error.clone()))
            }
            _ => None,
        })
    }

    pub fn state(&self, task: TaskId) -> Option<State> {
        self.core.explain(task, self.now).map(|explanation| explanation.state)
    }

    // ---- definitions

    pub fn declare(
        &mut self,
        flows: Vec<Flow>,
        actions: Vec<Action>,
        limits: Option<LimitsDocument>,
    ) -> Answer {
        self.apply(Command::Declare(Declare { flows, actions, limits, files: Vec::new() }))
    }

    pub fn set(&mut self, key: LimitKey, value: Option<LimitValue>) -> Answer {
        self.apply(set(key, value))
    }

    /// Answers the question what a step is to do.
    pub fn answer_step(&mut self, run: NodeId, step: u32, evaluation: Evaluation) -> Answer {
        let question = Question::Step { run, step };
        self.apply(Command::Evaluated { question, evaluation })
    }

    /// Opens a loop with so many items, all rendered.
    pub fn answer_loop(&mut self, run: NodeId, step: u32, count: u32) -> NodeId {
        self.answer_step(run, step, Evaluation::List { items: Payload::new("[]"), count });
        let node = run.step(step as usize);
        let question = Question::Items { step: node, from: 0, to: count };
        let items = (0..count).map(|_| Ok(rendered(None))).collect();
        self.apply(Command::Evaluated { question, evaluation: Evaluation::Items(items) });
        node
    }
}

pub(crate) fn job(action: &str) -> Submission {
    Submission::Job { action: action.into(), key: None, order: Payload::null() }
}

pub(crate) fn run(flow: &str) -> Submission {
    Submission::Run { flow: flow.into(), key: None, inputs: Payload::new("{}") }
}

pub(crate) fn rendered(key: Option<&str>) -> Rendered {
    Rendered { order: Payload::null(), key: key.map(Name::from) }
}

pub(crate) fn set(key: LimitKey, value: Option<LimitValue>) -> Command {
    Command::SetLimit(SetLimit { key, value, by: "me".into(), until: None })
}

pub(crate) fn pool(name: &str) -> LimitKey {
    LimitKey::Pool(name.into())
}

pub(crate) fn limits(pools: &[(&str, u32)]) -> LimitsDocument {
    let pool = |&(name, slots): &(&str, u32)| Pool {
        name: name.into(),
        slots,
        lease: None,
        origin: Origin::default(),
    };
    LimitsDocument { pools: pools.iter().map(pool).collect(), ..LimitsDocument::default() }
}

/// An action that a worker's function carries out.
pub(crate) fn action(name: &str, concurrency: Option<u32>, pools: &[(&str, u32)]) -> Action {
    let pools = pools.iter().map(|&(pool, units)| (pool.into(), units)).collect();
    let each = Each { concurrency, ..Each::default() };
    let policy = ActionPolicy { each, pools, ..ActionPolicy::silent(name.into()) };
    Action { policy, description: None, inputs: Vec::new(), key: None, work: ActionWork::Function }
}

pub(crate) fn flow(name: &str, steps: Vec<Step>) -> Flow {
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
        file: "flows.yaml".into(),
        line: 1,
        parallel_line: None,
    }
}

pub(crate) fn template() -> Template {
    Template("{}".into())
}

/// A plain step that calls the action `work`.
pub(crate) fn step(name: &str) -> Step {
    doing(name, Work::Action { action: "work".into(), inputs: template() })
}

pub(crate) fn doing(name: &str, work: Work) -> Step {
    Step {
        name: name.into(),
        after: Vec::new(),
        rule: Rule::Success { when: None },
        work,
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

pub(crate) fn looping(name: &str, window: Option<u32>, on_failure: OnFailure) -> Step {
    Step { each: Some(Loop { items: template(), window, on_failure, window_line: None }), ..step(name) }
}
