//! What a seed is made of: limits, actions, flows, machines and the faults that will happen to them.

use crate::random::Random;
use tidegate_core::admission::{LimitKey, Skills, SlotCounts};
use tidegate_core::ids::Name;
use tidegate_core::model::{
    Action, ActionPolicy, Backoff, Each, Flow, LimitsDocument, Line, Loop, OnFailure, Origin, Pool,
    QuotaPolicy, QuotaWindow, RatePolicy, Requirement, Retry, Rule, Runner, Step, TagLimit, Template,
    WhenBusy, WhenExhausted, WhenFull, Work,
};
use tidegate_core::time::Span;

/// Lease of attempts that use the pool `tool`: short, so that leases run out often.
pub const SHORT_LEASE: Span = Span::seconds(6);

/// The action whose limit comes and goes.
pub const RESCOPED: &str = "rescoped";

pub const KEYS: [&str; 3] = ["red", "green", "blue"];

/// One kind of job, with what it needs as the oracle understands it.
#[derive(Clone, Debug)]
pub struct JobKind {
    pub action: Name,
    pub pools: Vec<(Name, u32)>,
    pub concurrency: Option<u32>,
    pub keyed: bool,
    pub attempts: u32,
    pub max_losses: u32,
    pub longest: Span,
    /// In percent.
    pub fails: u64,
    pub kills_worker: bool,
    pub queue: &'static str,
    pub rate: Option<RatePolicy>,
    pub quota: Option<QuotaPolicy>,
    pub when_busy: WhenBusy,
    pub line: Line,
    /// It is submitted to start later.
    pub delayed: bool,
    pub timeout: Option<Span>,
}

impl JobKind {
    fn new(action: &str, longest: Span) -> Self {
        JobKind {
            action: action.into(),
            pools: Vec::new(),
            concurrency: None,
            keyed: false,
            attempts: 1,
            max_losses: 3,
            longest,
            fails: 0,
            kills_worker: false,
            queue: "default",
            rate: None,
            quota: None,
            when_busy: WhenBusy::Queue,
            line: Line { start_within: None, ..Line::default() },
            delayed: false,
            timeout: None,
        }
    }

    /// Limits counted by the oracle, for a job with this key.
    pub fn demands(&self, key: Option<&Name>) -> Vec<(LimitKey, u32)> {
        let mut demands: Vec<(LimitKey, u32)> =
            self.pools.iter().map(|(pool, units)| (LimitKey::Pool(pool.clone()), *units)).collect();
        if self.concurrency.is_some() {
            demands.push(match key {
                Some(key) => (LimitKey::ActionKey { action: self.action.clone(), key: key.clone() }, 1),
                None => (LimitKey::Action(self.action.clone()), 1),
            });
        }
        demands.sort();
        demands
    }
}

#[derive(Clone, Debug)]
pub struct WorkerPlan {
    pub name: Name,
    pub skills: Skills,
    pub slots: SlotCounts,
}

/// How often what goes wrong, in percent (of messages, of commits) or as a number of times.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trouble {
    pub lost: u64,
    pub late: u64,
    pub doubled: u64,
    pub unknown_commits: u64,
    pub server_crashes: u64,
    pub server_pauses: u64,
    pub worker_kills: u64,
    pub worker_pauses: u64,
    pub worker_shutdowns: u64,
    pub worker_cuts: u64,
    pub limit_changes: u64,
    pub cancels: u64,
    pub priorities: u64,
    pub pauses: u64,
    pub rescopes: u64,
    pub cancel_storms: u64,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub limits: LimitsDocument,
    pub actions: Vec<Action>,
    pub flows: Vec<Flow>,
    pub kinds: Vec<JobKind>,
    pub servers: usize,
    pub workers: Vec<WorkerPlan>,
    pub trouble: Trouble,
    /// How long submissions and faults go on.
    pub active: Span,
    pub jobs: u64,
    pub runs: u64,
}

impl Plan {
    pub fn new(seed: u64) -> Plan {
        let mut random = Random::new(seed);
        let limits = limits(&mut random);
        let kinds = kinds(&mut random, &limits);
        let trouble = trouble(&mut random);
        Plan {
            seed,
            actions: kinds.iter().map(action).collect(),
            flows: flows(&mut random),
            servers: random.between(1, 3) as usize,
            workers: workers(&mut random),
            trouble,
            active: Span::seconds(random.between(20, 70)),
            jobs: random.between(40, 100),
            runs: random.between(2, 6),
            limits,
            kinds,
        }
    }
}

fn limits(random: &mut Random) -> LimitsDocument {
    let mut pool = |name: &str, least: u64, most: u64, lease: Option<Span>| Pool {
        name: name.into(),
        slots: random.between(least, most) as u32,
        lease,
        origin: Origin::default(),
    };
    let pools = vec![
        pool("gate", 2, 5, None),
        pool("left", 3, 6, None),
        pool("right", 3, 6, None),
        pool("tool", 1, 3, Some(SHORT_LEASE)),
    ];
    let tag = |tag: &str, value: Option<&str>, limit: u32| TagLimit {
        tag: tag.into(),
        value: value.map(Name::from),
        limit,
        origin: Origin::default(),
    };
    LimitsDocument {
        runs: Some(random.between(2, 4) as u32),
        tags: vec![tag("env", Some("prod"), 1), tag("tenant", None, random.between(1, 2) as u32)],
        pools,
        ..LimitsDocument::default()
    }
}

fn kinds(random: &mut Random, limits: &LimitsDocument) -> Vec<JobKind> {
    let slots =
        |name: &str| limits.pools.iter().find(|pool| pool.name.as_str() == name).map_or(1, |pool| pool.slots);
    let brief = Span::millis(400);
    let ample = |action: &str, pools: &[(&str, u32)]| JobKind {
        pools: pools.iter().map(|(pool, units)| (Name::from(*pool), *units)).collect(),
        queue: "ample",
        ..JobKind::new(action, brief)
    };
    let wide = |name: &str| slots(name) - 1;
    let rate = RatePolicy { limit: 4, per: Span::seconds(1), burst: 3, when_busy: WhenExhausted::Wait };
    let quota = QuotaPolicy {
        limit: 5,
        window: QuotaWindow::Minute,
        zone: "UTC".into(),
        when_busy: WhenExhausted::Wait,
    };
    let mut kinds = vec![
        ample("gate1", &[("gate", 1)]),
        ample("gate2", &[("gate", slots("gate").min(2))]),
        ample("gateall", &[("gate", slots("gate"))]),
        ample("left1", &[("left", 1)]),
        ample("right1", &[("right", 1)]),
        ample("leftall", &[("left", slots("left"))]),
        ample("rightall", &[("right", slots("right"))]),
        ample("toolall", &[("tool", slots("tool"))]),
        ample("both", &[("left", wide("left")), ("right", wide("right"))]),
        JobKind {
            concurrency: Some(1),
            attempts: 3,
            fails: 40,
            ..JobKind::new("retried", Span::millis(800))
        },
        JobKind {
            concurrency: Some(random.between(1, 2) as u32),
            keyed: true,
            ..JobKind::new("keyed", brief)
        },
        JobKind { rate: Some(rate), ..JobKind::new("rated", brief) },
        JobKind { quota: Some(quota), ..JobKind::new("quoted", brief) },
        JobKind {
            kills_worker: true,
            max_losses: random.between(0, 2) as u32,
            ..JobKind::new("poison", brief)
        },
        JobKind { concurrency: Some(2), queue: "solo", ..JobKind::new("solo", brief) },
        JobKind { concurrency: Some(3), ..JobKind::new("long", Span::seconds(12)) },
        JobKind { pools: vec![("tool".into(), 1)], ..JobKind::new("tooled", Span::seconds(14)) },
        JobKind::new("plain", Span::seconds(2)),
        JobKind { delayed: true, ..JobKind::new("delayed", brief) },
        JobKind {
            concurrency: Some(2),
            attempts: 3,
            timeout: Some(Span::seconds(2)),
            ..JobKind::new("timed", Span::seconds(5))
        },
    ];
    kinds.extend(crowds());
    kinds
}

/// Where more come than may run, and something else happens than that they wait.
fn crowds() -> Vec<JobKind> {
    let crowd = |action: &str, when_busy: WhenBusy| JobKind {
        concurrency: Some(1),
        when_busy,
        ..JobKind::new(action, Span::seconds(3))
    };
    let line = Line { start_within: None, ..Line::default() };
    vec![
        crowd("refusing", WhenBusy::Reject),
        JobKind { keyed: true, ..crowd("replacing", WhenBusy::Replace) },
        JobKind { keyed: true, ..crowd("superseding", WhenBusy::CancelRunning) },
        JobKind {
            line: Line { start_within: Some(Span::seconds(4)), ..line },
            ..crowd("hasty", WhenBusy::Queue)
        },
        JobKind {
            line: Line { max_length: 2, when_full: WhenFull::DropOldest, ..line },
            ..crowd("dropping", WhenBusy::Queue)
        },
        JobKind { keyed: true, ..crowd(RESCOPED, WhenBusy::Queue) },
    ]
}

fn action(kind: &JobKind) -> Action {
    let needs = Requirement { queue: kind.queue.into(), runner: Runner::Process, labels: Vec::new() };
    let policy = ActionPolicy {
        action: kind.action.clone(),
        each: Each { concurrency: kind.concurrency, rate: kind.rate, quota: kind.quota.clone() },
        keyed: kind.keyed,
        when_busy: kind.when_busy,
        line: kind.line,
        pools: kind.pools.clone(),
        needs,
        retry: Retry {
            attempts: kind.attempts,
            backoff: Backoff::Constant,
            delay: Span::millis(700),
            max_delay: Span::seconds(5),
        },
        max_losses: kind.max_losses,
        timeout: kind.timeout,
        origin: Origin::default(),
    };
    Action::function(policy)
}

fn workers(random: &mut Random) -> Vec<WorkerPlan> {
    let worker = |name: String, queues: &[&str], process: u64| WorkerPlan {
        name: Name::from(name),
        skills: Skills { queues: queues.iter().map(|queue| Name::from(*queue)).collect(), ..Skills::plain() },
        slots: SlotCounts { process: process as u32, io: 0 },
    };
    let mut workers = vec![
        worker("ample-1".to_owned(), &["ample"], 40),
        worker("ample-2".to_owned(), &["ample"], 40),
        worker("solo-1".to_owned(), &["solo"], 4),
    ];
    for n in 0..random.between(2, 4) {
        workers.push(worker(format!("worker-{n}"), &["default"], random.between(2, 5)));
    }
    workers
}

fn trouble(random: &mut Random) -> Trouble {
    // A third of the seeds are calm, so that rules about order are judged undisturbed; the others have it all.
    if random.chance(33) {
        let mut few = |most| random.below(most);
        return Trouble {
            limit_changes: few(3),
            cancels: few(8),
            worker_shutdowns: few(2),
            worker_kills: few(2),
            server_crashes: few(2),
            pauses: few(3),
            rescopes: few(2),
            ..Trouble::default()
        };
    }
    let mut few = |most| random.below(most);
    Trouble {
        lost: few(6),
        late: few(10),
        doubled: few(6),
        unknown_commits: few(8),
        server_crashes: few(4),
        server_pauses: few(3),
        worker_kills: few(4),
        worker_pauses: few(4),
        worker_shutdowns: few(3),
        worker_cuts: few(4),
        limit_changes: few(6),
        cancels: few(12),
        priorities: few(6),
        pauses: few(5),
        rescopes: few(4),
        cancel_storms: few(2),
    }
}

// ---- flows: templates are what the simulated evaluator reads: a number of items, `true`, `false`, `error`

fn text(text: &str) -> Template {
    Template(text.into())
}

fn step(name: &str, after: &[u32]) -> Step {
    Step {
        name: name.into(),
        after: after.to_vec(),
        rule: Rule::Success { when: None },
        work: Work::Run(text("")),
        each: None,
        pools: Vec::new(),
        needs: Requirement::process(),
        retry: Retry::ONCE,
        max_losses: 3,
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
        line: 1,
    }
}

const RETRY: Retry =
    Retry { attempts: 1, backoff: Backoff::Constant, delay: Span::millis(300), max_delay: Span::seconds(1) };

fn looped(random: &mut Random, name: &str, after: &[u32], on_failure: OnFailure) -> Step {
    let items = *random.pick(&[0u64, 1, 2, 5, 9, 14]);
    let window = Some(random.between(1, 4) as u32);
    Step {
        each: Some(Loop { items: text(&items.to_string()), window, on_failure }),
        retry: Retry { attempts: 2, ..RETRY },
        ..step(name, after)
    }
}

fn flows(random: &mut Random) -> Vec<Flow> {
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
                retry: if random.chance(50) { Retry { attempts: 2, ..RETRY } } else { Retry::ONCE },
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
