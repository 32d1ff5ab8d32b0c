//! What a seed is made of: limits, actions, flows, machines and the faults that will happen to them.
//!
//! Three worlds in four are clusters: servers that share a store, and workers on machines of their own. The fourth is
//! **embedded**: one process that has its store for itself and runs functions, some of them ahead of their commits.

mod flows;
mod trouble;

pub use trouble::Trouble;

use crate::random::Random;
use tidegate_core::admission::{LimitKey, Skills, SlotCounts};
use tidegate_core::ids::Name;
use tidegate_core::model::{
    Action, ActionPolicy, Backoff, Each, Flow, LimitsDocument, Line, Origin, Pool, QuotaPolicy, QuotaWindow,
    RatePolicy, Requirement, Retry, Runner, TagLimit, WhenBusy, WhenExhausted, WhenFull,
};
use tidegate_core::time::Span;

/// Lease of attempts that use the pool `tool`: short, so that leases run out often.
pub const SHORT_LEASE: Span = Span::seconds(6);

/// The action whose limit comes and goes.
pub const RESCOPED: &str = "rescoped";

/// One seed in so many plays in a process that has its store for itself.
const EMBEDDED: u64 = 4;

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
    /// Carried out by a function inside its worker.
    pub function: bool,
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
            function: false,
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

impl WorkerPlan {
    pub fn most_at_once(&self) -> u32 {
        self.slots.process + self.slots.io
    }
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    /// One process that has its store for itself.
    pub embedded: bool,
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
        let embedded = seed % EMBEDDED == EMBEDDED - 1;
        let limits = limits(&mut random);
        let mut kinds = kinds(&mut random, &limits);
        if embedded {
            embed(&mut kinds, &mut random);
        }
        let trouble = Trouble::new(&mut random, embedded);
        let flows = flows::flows(&mut random, embedded);
        let servers = random.between(1, 3) as usize;
        Plan {
            seed,
            embedded,
            actions: kinds.iter().map(action).collect(),
            flows,
            servers: if embedded { 1 } else { servers },
            workers: workers(&mut random, &kinds, embedded),
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
        function: true,
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

/// Where everything is in one process there are only functions. What ends its worker ends everything, and afterwards
/// nothing runs ahead for a while: so most of these worlds have none of it.
fn embed(kinds: &mut [JobKind], random: &mut Random) {
    let has_poison = random.chance(35);
    for kind in kinds {
        kind.function = true;
        kind.kills_worker &= has_poison;
    }
}

fn action(kind: &JobKind) -> Action {
    let runner = if kind.function { Runner::Function(kind.action.clone()) } else { Runner::Process };
    let needs = Requirement { queue: kind.queue.into(), runner, labels: Vec::new() };
    let policy = ActionPolicy {
        action: kind.action.clone(),
        each: Each {
            concurrency: kind.concurrency,
            rate: kind.rate,
            quota: kind.quota.clone(),
            ..Each::default()
        },
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
            ..Retry::ONCE
        },
        max_losses: kind.max_losses,
        timeout: kind.timeout,
        origin: Origin::default(),
    };
    Action::function(policy)
}

fn workers(random: &mut Random, kinds: &[JobKind], embedded: bool) -> Vec<WorkerPlan> {
    let functions = kinds.iter().filter(|kind| kind.function).map(|kind| kind.action.clone());
    let functions: Vec<Name> = functions.chain([flows::STEP.into()]).collect();
    let worker = |name: String, queues: &[&str], slots: u64| {
        let (slots, runs_functions) = (slots as u32, embedded || queues.contains(&"ample"));
        let counts = match runs_functions {
            true => SlotCounts { process: 0, io: slots },
            false => SlotCounts { process: slots, io: 0 },
        };
        let skills = Skills {
            queues: queues.iter().map(|queue| Name::from(*queue)).collect(),
            functions: if runs_functions { functions.clone() } else { Vec::new() },
            processes: !runs_functions,
            io: !runs_functions,
            ..Skills::plain()
        };
        WorkerPlan { name: Name::from(name), skills, slots: counts }
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
