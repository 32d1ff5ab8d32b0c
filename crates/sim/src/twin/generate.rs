//! Random scenes and random commands.

use super::naive::Twin;
use super::pace::Pace;
use super::scene::{Bound, Command, Need, Scene};
use crate::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::admission::{LimitKey, Rank, Rules, Skills, SlotCounts};
use tidegate_core::ids::{Name, NodeId, TaskId};
use tidegate_core::model::{QuotaPolicy, QuotaWindow, RatePolicy, Requirement, Runner, WhenExhausted};
use tidegate_core::time::{Moment, Span};

/// Above this many waiting tasks more is finished than begun, so that a sequence stays short.
const CROWD: usize = 240;

/// What a seed decides once, and what the commands so far have made of it.
#[derive(Debug)]
pub struct Generator {
    pub random: Random,
    /// Many classes and capacities up to 200, so that limits have many reservers.
    large: bool,
    priorities: u64,
    /// Per cent of commands that bring tasks, of those that bring or finish some.
    arrivals: u64,
    /// Per cent of commands that an operator or a worker gives.
    unrest: u64,
    /// Per cent of the other commands that let time pass.
    passage: u64,
    /// Per cent of arrivals that are several items in a row.
    ranges: u64,
    /// Per cent of commands that change several things before the walk.
    together: u64,
    next_node: u64,
    workers: Vec<Name>,
    /// Ended tasks that may be tried again, with their source.
    ended: BTreeMap<Rank, usize>,
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let large = random.chance(12);
        Generator {
            large,
            priorities: random.between(1, 3),
            arrivals: random.between(42, 60),
            unrest: *random.pick(&[30, 18, 10, 4]),
            passage: *random.pick(&[0, 5, 20]),
            ranges: if large { 30 } else { *random.pick(&[5, 10, 25]) },
            together: *random.pick(&[0, 0, 10, 40]),
            next_node: 1,
            workers: (0..random.between(1, 4)).map(|n| Name::new(format!("w{n}"))).collect(),
            ended: BTreeMap::new(),
            random,
        }
    }

    // ---- the scene

    pub fn scene(&mut self) -> Scene {
        // Eager reservers and few places for them, so that displacement happens often; short walks likewise.
        let rules = Rules {
            reserve_after: *self.random.pick(&[0, 1, 1, 2]),
            reservers: *self.random.pick(&[1, 2, 16]),
            share: *self.random.pick(&[1, 2, 4]),
            walk_max: *self.random.pick(&[1, 2, 3, 5, 8, 256, 256, 256, 256, 256]),
        };
        let limits = self.limits();
        let classes = if self.large { self.random.between(10, 36) } else { self.random.between(2, 12) };
        let narrow = *self.random.pick(&[1, 2, 2, 3]);
        let sources = (0..classes).map(|_| self.needs(&limits, narrow)).collect();
        // A quarter to midnight on a Sunday, so that windows of every size end soon.
        let now = Moment(1_772_408_700_000_000 + self.random.below(1_000_000) as i64);
        Scene {
            rules,
            limits,
            sources,
            forgetful: self.random.chance(60),
            rebuilds: self.random.chance(50),
            now,
        }
    }

    fn limits(&mut self) -> Vec<(LimitKey, Bound)> {
        let kinds: [fn(u64) -> LimitKey; 4] = [
            |n| LimitKey::Pool(Name::new(format!("p{n}"))),
            |n| LimitKey::Window(NodeId(1_000_000 + n)),
            |n| LimitKey::Action(Name::new(format!("a{n}"))),
            |n| LimitKey::Total(Name::new(format!("t{n}"))),
        ];
        let mut limits: Vec<(LimitKey, Bound)> = Vec::new();
        for n in 0..self.random.between(2, 5) {
            let key = self.random.pick(&kinds)(n);
            limits.push((key, Bound::Units(self.capacity())));
        }
        let paces = if self.random.chance(40) { self.random.between(1, 2) } else { 0 };
        for n in 0..paces {
            let (of, pace) = (Name::new(format!("x{n}")), self.random.chance(60));
            let key = if pace { LimitKey::Rate { of, key: None } } else { LimitKey::Quota { of, key: None } };
            let pace = self.pace(&key);
            limits.push((key, Bound::Pace(pace)));
        }
        if self.random.chance(50) {
            let every = requirements();
            let few = self.random.between(1, every.len() as u64) as usize;
            let first = self.random.index(every.len());
            let some = (0..few).map(|n| every[(first + n) % every.len()].clone());
            limits.extend(some.map(|need| (LimitKey::Slot(need), Bound::Slots)));
        }
        limits.sort_by(|a, b| a.0.cmp(&b.0));
        limits
    }

    fn capacity(&mut self) -> u64 {
        if self.large { self.random.between(8, 200) } else { self.random.between(1, 5) }
    }

    fn pace(&mut self, key: &LimitKey) -> Pace {
        let most = if self.large { 80 } else { 4 };
        let when_busy = WhenExhausted::Wait;
        let limit = if self.random.chance(4) { 0 } else { self.random.between(1, most) as u32 };
        if matches!(key, LimitKey::Quota { .. }) {
            let windows = [QuotaWindow::Minute, QuotaWindow::Hour, QuotaWindow::Day, QuotaWindow::Week];
            let window = *self.random.pick(&windows);
            return Pace::Quota(QuotaPolicy { limit, window, zone: "UTC".into(), when_busy });
        }
        let per = *self.random.pick(&[Span::micros(7), Span::seconds(1), Span::hours(24)]);
        Pace::Rate(RatePolicy { limit, per, burst: self.random.between(1, most) as u32, when_busy })
    }

    /// Two to five demands mostly, at most one of them a slot.
    fn needs(&mut self, limits: &[(LimitKey, Bound)], narrow: u64) -> Vec<Need> {
        let (mut slots, mut others): (Vec<usize>, Vec<usize>) =
            (0..limits.len()).partition(|&limit| limits[limit].1 == Bound::Slots);
        let most = others.len().min(if self.random.chance(20) { 4 } else { 3 }) as u64;
        let mut needs: Vec<Need> = (0..self.random.between(narrow.min(most), most))
            .map(|_| {
                let limit = others.swap_remove(self.random.index(others.len()));
                Need { limit, units: self.units(&limits[limit].1) }
            })
            .collect();
        if !slots.is_empty() && self.random.chance(70) {
            let limit = slots.swap_remove(self.random.index(slots.len()));
            needs.push(Need { limit, units: 1 });
        }
        needs.sort();
        needs
    }

    fn units(&mut self, bound: &Bound) -> u32 {
        let capacity = match bound {
            Bound::Units(capacity) => *capacity,
            Bound::Pace(pace) => pace.capacity(),
            Bound::Slots => 1,
        };
        let units = match self.large {
            true if self.random.chance(15) => self.random.between(1, capacity.max(1)),
            true => self.random.between(1, 12),
            false => *self.random.pick(&[1, 1, 1, 2, 3]),
        };
        let beyond = u64::from(self.random.chance(2));
        units.min(capacity + beyond).max(1) as u32
    }

    // ---- commands

    pub fn workers(&mut self, scene: &Scene) -> Vec<Command> {
        let matter = scene.limits.iter().any(|(_, bound)| *bound == Bound::Slots);
        let names = if matter { self.workers.clone() } else { Vec::new() };
        names.into_iter().map(|name| self.worker(name)).collect()
    }

    fn worker(&mut self, name: Name) -> Command {
        let labels: &[&[&str]] = &[&[], &["gpu"], &["arm"], &["arm", "gpu"]];
        let skills = Skills {
            labels: self.random.pick(labels).iter().map(Name::new).collect(),
            functions: if self.random.chance(60) { vec!["resize".into()] } else { Vec::new() },
            processes: self.random.chance(85),
            io: self.random.chance(85),
            ..Skills::plain()
        };
        let most = if self.large { 24 } else { 3 };
        let slots = SlotCounts {
            process: self.random.below(most + 1) as u32,
            io: self.random.below(most + 1) as u32,
        };
        Command::SetWorker { name, skills, slots }
    }

    /// The next command, or now and then several in one. `wake` is when the core wants to be woken.
    pub fn command(&mut self, scene: &Scene, twin: &Twin, wake: Option<Moment>) -> Command {
        if !self.random.chance(self.together) {
            return self.one(scene, twin, wake);
        }
        let mut touched = BTreeSet::new();
        let mut commands = Vec::new();
        for _ in 0..self.random.between(2, 5) {
            let command = self.one(scene, twin, wake);
            let is_new = match &command {
                Command::Finish(rank) | Command::Withdraw(rank) => touched.insert(*rank),
                Command::Rerank { from, .. } => touched.insert(*from),
                Command::WithdrawRange { .. } => false,
                // A command has one time.
                Command::Advance(_) => commands.is_empty(),
                _ => true,
            };
            if is_new {
                commands.push(command);
            } else if let Command::Finish(rank) = command {
                // It ends once only, so it comes again once at most.
                self.ended.remove(&rank);
            }
        }
        Command::Together(commands)
    }

    fn one(&mut self, scene: &Scene, twin: &Twin, wake: Option<Moment>) -> Command {
        let unrest = self.random.chance(self.unrest);
        let command = if unrest { self.unrest(scene, twin, wake) } else { None };
        command.unwrap_or_else(|| {
            if self.random.chance(self.passage) {
                return self.advance(twin, wake);
            }
            let crowded = twin.waiting().len() > CROWD;
            if !crowded && self.random.chance(self.arrivals) {
                return self.arrival(scene);
            }
            self.finish(twin).unwrap_or_else(|| match crowded {
                true => self.advance(twin, wake),
                false => self.arrival(scene),
            })
        })
    }

    fn arrival(&mut self, scene: &Scene) -> Command {
        if self.random.chance(12)
            && let Some((first, source)) = self.ended.pop_last()
        {
            return Command::Enqueue { source, first, count: 1 };
        }
        let node = NodeId(self.next_node);
        self.next_node += 1;
        // A step of an older root outranks what came since.
        let root = if self.random.chance(15) { self.random.between(1, node.0) } else { node.0 };
        let priority = self.random.below(self.priorities) as i8;
        let source = self.random.index(scene.sources.len());
        if self.random.chance(self.ranges) {
            let count = self.random.between(1, if self.large { 40 } else { 8 }) as u32;
            return Command::Enqueue {
                source,
                first: Rank::new(priority, root, TaskId::item(node, 0)),
                count,
            };
        }
        Command::Enqueue { source, first: Rank::new(priority, root, TaskId::node(node)), count: 1 }
    }

    /// Somebody who runs ends, and may come again later under the same rank.
    pub fn finish(&mut self, twin: &Twin) -> Option<Command> {
        let (&rank, running) = self.random.pick_of(twin.running().iter())?;
        if self.random.chance(15) {
            self.ended.insert(rank, running.source);
        }
        Some(Command::Finish(rank))
    }

    fn advance(&mut self, twin: &Twin, wake: Option<Moment>) -> Command {
        let now = twin.now();
        let soon = now + Span::micros(self.random.between(0, 3));
        let later = now + *self.random.pick(&[Span::millis(300), Span::seconds(20), Span::hours(7)]);
        let wake = wake.unwrap_or(soon).max(now);
        let just_before = Moment(wake.0 - 1).max(now);
        Command::Advance(*self.random.pick(&[wake, wake, wake, just_before, soon, later]))
    }

    fn unrest(&mut self, scene: &Scene, twin: &Twin, wake: Option<Moment>) -> Option<Command> {
        let limit = self.random.index(scene.limits.len());
        match self.random.below(100) {
            0..14 => {
                let (&rank, _) = self.random.pick_of(twin.waiting().iter())?;
                Some(Command::Withdraw(rank))
            }
            14..20 => self.withdraw_range(twin),
            20..30 => self.rerank(twin),
            30..44 => self.set_bound(scene, limit),
            44..56 => {
                let paused = (0..scene.limits.len()).find(|&limit| twin.is_paused(limit));
                let limit = paused.filter(|_| self.random.chance(70)).unwrap_or(limit);
                Some(Command::SetPaused { limit, paused: !twin.is_paused(limit) })
            }
            56..58 => Some(Command::Reload),
            58..68 => Some(self.resolve(scene, twin, limit)),
            68..84 if !twin.workers().is_empty() || scene.limits.iter().any(|(_, b)| *b == Bound::Slots) => {
                let name = self.random.pick(&self.workers).clone();
                let leaves = self.random.chance(25) && twin.workers().contains_key(&name);
                Some(if leaves { Command::RemoveWorker(name) } else { self.worker(name) })
            }
            _ => Some(self.advance(twin, wake)),
        }
    }

    fn withdraw_range(&mut self, twin: &Twin) -> Option<Command> {
        let (&first, &source) = self.random.pick_of(twin.waiting().iter())?;
        let last = first.behind(self.random.below(6) as u32);
        Some(Command::WithdrawRange { source, first, last })
    }

    fn rerank(&mut self, twin: &Twin) -> Option<Command> {
        let (&from, _) = self.random.pick_of(twin.waiting().iter())?;
        let to = Rank::new(self.random.below(self.priorities + 1) as i8, from.root(), from.task());
        Some(Command::Rerank { from, to })
    }

    fn set_bound(&mut self, scene: &Scene, limit: usize) -> Option<Command> {
        let (key, bound) = &scene.limits[limit];
        match bound {
            Bound::Units(declared) => {
                let other = self.capacity();
                let capacity =
                    *self.random.pick(&[0, 1, 2, other, other, *declared, *declared, declared + 2]);
                Some(Command::SetCapacity { limit, capacity })
            }
            Bound::Pace(_) => Some(Command::SetPace { limit, pace: self.pace(key) }),
            Bound::Slots => None,
        }
    }

    /// A limit is set for some sources, or removed from all.
    fn resolve(&mut self, scene: &Scene, twin: &Twin, limit: usize) -> Command {
        if scene.limits[limit].1 == Bound::Slots {
            return Command::Resolve(Vec::new());
        }
        let removed = self.random.chance(50);
        let mut changes = Vec::new();
        for (source, old) in twin.sources().iter().enumerate() {
            let mut needs: Vec<Need> = old.iter().copied().filter(|need| need.limit != limit).collect();
            if !removed && self.random.chance(60) {
                needs.push(Need { limit, units: self.units(&scene.limits[limit].1) });
                needs.sort();
            }
            if removed || self.random.chance(70) {
                changes.push((source, needs));
            }
        }
        Command::Resolve(changes)
    }

    /// Opens everything so far that all can start.
    pub fn open(&mut self, scene: &Scene, twin: &Twin) -> Vec<Command> {
        let mut commands = Vec::new();
        for (limit, (key, bound)) in scene.limits.iter().enumerate() {
            if twin.is_paused(limit) {
                commands.push(Command::SetPaused { limit, paused: false });
            }
            let wanted = twin.sources().iter().flatten().filter(|need| need.limit == limit);
            let most = wanted.map(|need| need.units).max().unwrap_or(1);
            let when_busy = WhenExhausted::Wait;
            match (key, bound) {
                (_, Bound::Units(_)) => {
                    commands.push(Command::SetCapacity { limit, capacity: u64::from(most) + 3 });
                }
                (LimitKey::Quota { .. }, _) => {
                    let window = QuotaWindow::Minute;
                    let pace = QuotaPolicy { limit: most + 1, window, zone: "UTC".into(), when_busy };
                    commands.push(Command::SetPace { limit, pace: Pace::Quota(pace) });
                }
                (LimitKey::Rate { .. }, _) => {
                    let pace = RatePolicy { limit: 3, per: Span::seconds(1), burst: most, when_busy };
                    commands.push(Command::SetPace { limit, pace: Pace::Rate(pace) });
                }
                _ => {}
            }
        }
        let skills = Skills {
            labels: vec!["arm".into(), "gpu".into()],
            functions: vec!["resize".into()],
            ..Skills::plain()
        };
        commands.push(Command::SetWorker {
            name: "z".into(),
            skills,
            slots: SlotCounts { process: 2, io: 2 },
        });
        commands
    }
}

fn requirements() -> Vec<Requirement> {
    let process = |labels: &[&str]| Requirement {
        labels: labels.iter().map(Name::new).collect(),
        ..Requirement::process()
    };
    let function = |labels| Requirement { runner: Runner::Function("resize".into()), ..process(labels) };
    vec![
        process(&[]),
        process(&["gpu"]),
        process(&["arm"]),
        function(&[]),
        process(&["arm", "gpu"]),
        function(&["gpu"]),
    ]
}
