//! What the waiting tasks wait for: the declarations, the workers and the commands of each situation.

use crate::random::Random;
use tidegate_core::admission::{Skills, SlotCounts};
use tidegate_core::ids::{Name, RunId};
use tidegate_core::model::{
    Action, ActionPolicy, ActionWork, Each, LimitsDocument, Line, Origin, Pool, Requirement,
};
use tidegate_core::protocol::{Command, Declare, Join, Payload, Submission, Submit};

/// What keeps the waiting tasks from starting. Every task asks for a limit of its action, a pool and a slot of a
/// worker; the situations differ in which of these are full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Situation {
    /// One limit of one action.
    OneLimit,
    /// The limits of 10,000 keys of one action.
    ManyKeys,
    /// Two pools that release in turn, for tasks of 1,000 keys that need both.
    TwoLimits,
    /// All slots of all workers.
    Workers,
}

const WORKERS: u32 = 4;
const KEYS: u64 = 10_000;
const CLASSES: u64 = 1_000;
/// Far above what any situation uses.
const PLENTY: u32 = 1_000_000;
/// Running at once where one thing is full: more than one batch finishes.
const RUNNING: u32 = 1_000;

/// Which of a situation's actions a task executes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// What the crowd waits for.
    Main,
    /// Holds only the first, or only the second, of two pools.
    Left,
    Right,
}

impl Situation {
    pub const ALL: [Situation; 4] =
        [Situation::OneLimit, Situation::ManyKeys, Situation::TwoLimits, Situation::Workers];

    pub fn name(self) -> &'static str {
        match self {
            Situation::OneLimit => "one limit",
            Situation::ManyKeys => "10,000 keys",
            Situation::TwoLimits => "two in turn",
            Situation::Workers => "workers only",
        }
    }

    /// One word, for command lines and machine-readable figures.
    pub fn word(self) -> &'static str {
        match self {
            Situation::OneLimit => "one-limit",
            Situation::ManyKeys => "many-keys",
            Situation::TwoLimits => "two-limits",
            Situation::Workers => "workers",
        }
    }

    pub fn from_word(word: &str) -> Option<Situation> {
        Situation::ALL.into_iter().find(|situation| situation.word() == word)
    }

    /// Nanoseconds that a cycle may cost more with a million waiting than with a thousand.
    pub fn bar(self) -> f64 {
        match self {
            Situation::OneLimit | Situation::Workers => 1_000.0,
            Situation::ManyKeys | Situation::TwoLimits => 2_000.0,
        }
    }

    /// Tasks that fill what is to be full, before anybody waits.
    pub fn holders(self) -> Vec<Part> {
        match self {
            Situation::OneLimit | Situation::Workers => vec![Part::Main; RUNNING as usize],
            Situation::ManyKeys => vec![Part::Main; KEYS as usize],
            Situation::TwoLimits => (0..RUNNING)
                .flat_map(|n| if n % 2 == 0 { vec![Part::Main] } else { vec![Part::Left, Part::Right] })
                .collect(),
        }
    }

    fn policies(self) -> Vec<ActionPolicy> {
        let main = policy("billing.charge-card");
        let each = |concurrency| Each { concurrency: Some(concurrency), ..Each::default() };
        let first = (Name::new("database"), 1);
        let second = (Name::new("printer"), 1);
        let with = |name, concurrency, pools: &[&(Name, u32)]| ActionPolicy {
            each: each(concurrency),
            pools: pools.iter().map(|&pool| pool.clone()).collect(),
            ..policy(name)
        };
        let name = main.action.as_str();
        match self {
            Situation::OneLimit => vec![with(name, RUNNING, &[&first])],
            Situation::ManyKeys => vec![with(name, 1, &[&first])],
            Situation::Workers => vec![with(name, PLENTY, &[&first])],
            Situation::TwoLimits => vec![
                with(name, 9, &[&first, &second]),
                with("billing.left", PLENTY, &[&first]),
                with("billing.right", PLENTY, &[&second]),
            ],
        }
    }

    fn pool_slots(self) -> u32 {
        if self == Situation::TwoLimits { RUNNING } else { PLENTY }
    }

    fn slots(self) -> u32 {
        if self == Situation::Workers { RUNNING / WORKERS } else { PLENTY }
    }

    /// The commands that set the scene.
    pub fn opening(self) -> Vec<Command> {
        let policies = self.policies();
        let functions: Vec<Name> = policies.iter().map(|policy| policy.action.clone()).collect();
        let pools = ["database", "printer"].map(|name| Pool {
            name: name.into(),
            slots: self.pool_slots(),
            lease: None,
            origin: Origin::default(),
        });
        let limits = Some(LimitsDocument { pools: pools.into(), ..LimitsDocument::default() });
        let actions = policies.into_iter().map(action).collect();
        let mut commands = vec![Command::Declare(Declare { actions, limits, ..Declare::default() })];
        for worker in 0..WORKERS {
            let skills = Skills { functions: functions.clone(), ..Skills::plain() };
            let slots = SlotCounts { process: 0, io: self.slots() };
            let worker = format!("worker-{worker}").into();
            commands.push(Command::Join(Join { worker, incarnation: 1, skills, slots }));
        }
        commands
    }

    fn action_name(self, part: Part) -> &'static str {
        match part {
            Part::Main => "billing.charge-card",
            Part::Left => "billing.left",
            Part::Right => "billing.right",
        }
    }

    fn key(self, number: u64, part: Part) -> Option<Name> {
        let keys = match (self, part) {
            (Situation::ManyKeys, _) => KEYS,
            (Situation::TwoLimits, Part::Main) => CLASSES,
            _ => return None,
        };
        Some(Name::new(format!("customer-{:06}", number % keys)))
    }

    /// The task with that number. Its names are its own, as they are when it comes over a wire; its payload is
    /// shared, because payloads are not what is weighed here.
    pub fn submit(self, number: u64, part: Part, payload: &Payload, random: &mut Random) -> Command {
        let what = Submission::Job {
            action: self.action_name(part).into(),
            key: self.key(number, part),
            order: payload.clone(),
        };
        let priority = if part == Part::Main { 0 } else { 9 };
        Command::Submit(Submit {
            id: run_id(number, random),
            what,
            tags: vec![],
            priority,
            due: None,
            idempotency: None,
        })
    }
}

/// Like a UUID of version 7: the time, then chance.
fn run_id(number: u64, random: &mut Random) -> RunId {
    const BEGIN: u128 = 0x0199_0000_0000;
    RunId(((BEGIN + u128::from(number / 100)) << 80) | (7 << 76) | u128::from(random.word()))
}

fn policy(action: &str) -> ActionPolicy {
    let line = Line { max_length: u32::MAX, ..Line::default() };
    ActionPolicy { line, ..ActionPolicy::silent(action.into()) }
}

fn action(policy: ActionPolicy) -> Action {
    let policy = ActionPolicy { needs: Requirement::function(policy.action.clone()), ..policy };
    Action { policy, description: None, inputs: vec![], key: None, work: ActionWork::Function }
}
