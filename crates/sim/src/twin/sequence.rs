//! One sequence of commands on both versions, and what is compared after each.

use super::fast::Fast;
use super::generate::Generator;
use super::naive::Twin;
use super::scene::{Command, Scene, Start};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tidegate_core::admission::{LimitKey, Rank};
use tidegate_core::time::{Moment, Span};

/// What happened in sequences that did not differ.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    pub sequences: u64,
    pub commands: u64,
    pub starts: u64,
    pub looks: u64,
    /// Commands after which somebody reserves.
    pub with_a_reserver: u64,
    /// Most reservers of one limit.
    pub most_reservers: u64,
    pub displaced: u64,
    /// Commands whose walk went on with the next.
    pub continued: u64,
    /// Commands after which somebody is parked under a rate or quota.
    pub parked_under_a_pace: u64,
    /// Reservers that a rate or quota refused.
    pub stopped_by_a_pace: u64,
    /// Commands that changed what running tasks hold.
    pub resolved_anew: u64,
}

impl Stats {
    pub fn add(&mut self, other: &Stats) {
        self.sequences += other.sequences;
        self.commands += other.commands;
        self.starts += other.starts;
        self.looks += other.looks;
        self.with_a_reserver += other.with_a_reserver;
        self.most_reservers = self.most_reservers.max(other.most_reservers);
        self.displaced += other.displaced;
        self.continued += other.continued;
        self.parked_under_a_pace += other.parked_under_a_pace;
        self.stopped_by_a_pace += other.stopped_by_a_pace;
        self.resolved_anew += other.resolved_anew;
    }
}

/// Where the two versions part.
#[derive(Debug)]
pub struct Mismatch {
    pub seed: u64,
    /// The number of the command, from 1.
    pub number: u64,
    pub command: Option<Command>,
    pub what: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, command {}", self.seed, self.number)?;
        if let Some(command) = &self.command {
            write!(f, " ({command:?})")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for Mismatch {}

/// Plays the sequence of a seed on both versions, `steps` commands and then until nobody can start any more.
pub fn compare(seed: u64, steps: usize) -> Result<Stats, Box<Mismatch>> {
    let mut sequence = Sequence::new(seed);
    // The core checks itself with assertions, which know nothing of seeds and commands.
    let outcome = catch_unwind(AssertUnwindSafe(|| sequence.play_all(steps)));
    let what = match outcome {
        Ok(Ok(())) => return Ok(sequence.stats),
        Ok(Err(what)) => what,
        Err(panic) => match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
            (Some(text), _) => text.clone(),
            (_, Some(text)) => (*text).to_owned(),
            _ => "a panic without a text".to_owned(),
        },
    };
    Err(Box::new(Mismatch { seed, number: sequence.stats.commands, command: sequence.command, what }))
}

struct Sequence {
    generator: Generator,
    scene: Scene,
    twin: Twin,
    fast: Fast,
    stats: Stats,
    command: Option<Command>,
}

impl Sequence {
    fn new(seed: u64) -> Self {
        let mut generator = Generator::new(seed);
        let scene = generator.scene();
        let (twin, fast) = (Twin::new(&scene), Fast::new(&scene));
        let stats = Stats { sequences: 1, ..Stats::default() };
        Sequence { generator, scene, twin, fast, stats, command: None }
    }

    fn play_all(&mut self, steps: usize) -> Result<(), String> {
        for command in self.generator.workers(&self.scene) {
            self.play(command)?;
        }
        for _ in 0..steps {
            let command = self.generator.command(&self.scene, &self.twin, self.fast.admission().next_wake());
            self.play(command)?;
        }
        self.drain()?;
        let left = self.twin.waiting().keys().find(|&&rank| !self.twin.is_aside(rank));
        if let Some(rank) = left {
            return Err(format!("{rank:?} is not aside, and never started"));
        }
        for command in self.generator.open(&self.scene, &self.twin) {
            self.play(command)?;
        }
        self.drain()?;
        match self.twin.waiting().keys().next() {
            Some(rank) => Err(format!("everything is open, and {rank:?} never started")),
            None => Ok(()),
        }
    }

    /// Nobody comes any more; who runs ends, in random order, and time passes when nothing else does.
    fn drain(&mut self) -> Result<(), String> {
        loop {
            let next = match self.generator.finish(&self.twin) {
                Some(finish) => finish,
                None if self.fast.admission().is_pending() => Command::Advance(self.twin.now()),
                None if self.twin.places().is_empty() => return Ok(()),
                None => match self.fast.admission().next_wake() {
                    Some(wake) => Command::Advance(wake.max(self.twin.now())),
                    None => return Ok(()),
                },
            };
            self.play(next)?;
        }
    }

    fn play(&mut self, command: Command) -> Result<(), String> {
        self.stats.commands += 1;
        self.command = Some(command.clone());
        let reserved: Vec<Rank> = self.reservers().collect();
        let expected = self.twin.play(&command);
        let starts = self.fast.play(&command);
        equal("starts", &starts, &expected)?;
        equal("places", &self.fast.places(), self.twin.places())?;
        equal("units used", &self.fast.used(), &self.used_units())?;
        equal("heads looked at", &self.fast.looks(), &self.twin.looks())?;
        for worker in self.twin.workers().keys() {
            equal("busy slots", &self.fast.busy(worker), &self.twin.busy(worker))?;
        }
        self.fast.admission().check_places(self.twin.now());
        self.check_contract(&starts)?;
        self.check_wakes()?;
        self.count(&command, &starts, &reserved);
        Ok(())
    }

    /// The twin's sums without what is not counted in units.
    fn used_units(&self) -> Vec<u64> {
        let used = self.twin.used().into_iter().enumerate();
        used.map(|(limit, used)| self.twin.capacity(limit).map_or(0, |_| used)).collect()
    }

    /// What must hold whatever the two versions agree on: rank order within a class, and nothing over a bound.
    fn check_contract(&self, starts: &[Start]) -> Result<(), String> {
        let used = self.twin.used();
        for start in starts {
            let Some(running) = self.twin.running().get(&start.rank) else { continue };
            let overtaken =
                self.twin.waiting().iter().find(|(rank, of)| **of == running.source && **rank < start.rank);
            if let Some((rank, _)) = overtaken {
                return Err(format!("{:?} started before {rank:?} of its class", start.rank));
            }
            for need in &self.twin.sources()[running.source] {
                let over = self.twin.capacity(need.limit).is_some_and(|capacity| used[need.limit] > capacity);
                if over || self.twin.is_paused(need.limit) {
                    return Err(format!("{:?} started over {:?}", start.rank, self.key(need.limit)));
                }
                if let LimitKey::Slot(needed) = self.key(need.limit) {
                    let worker = start.worker.as_ref().and_then(|name| self.twin.workers().get(name));
                    if !worker.is_some_and(|(skills, _)| skills.fit(needed)) {
                        return Err(format!("{start:?} started where it does not fit"));
                    }
                }
            }
        }
        let mut last: BTreeMap<usize, Rank> = BTreeMap::new();
        for (rank, running) in starts.iter().filter_map(|s| self.twin.running().get_key_value(&s.rank)) {
            if last.insert(running.source, *rank).is_some_and(|before| before > *rank) {
                return Err(format!("{rank:?} started after one behind it"));
            }
        }
        Ok(())
    }

    /// Whoever is left to look at is known to be, and the core is woken exactly when time lets somebody go on:
    /// later would leave a head waiting, earlier would be the start of an endless loop.
    fn check_wakes(&self) -> Result<(), String> {
        if self.fast.admission().is_pending() {
            return Ok(());
        }
        if let Some(rank) = self.twin.next_look() {
            return Err(format!("{rank:?} could be looked at, and nothing is pending"));
        }
        let now = self.twin.now();
        let wake = self.fast.admission().next_wake();
        if wake.is_some_and(|wake| wake <= now) {
            return Err(format!("wants to be woken at {wake:?}, which is over at {now:?}"));
        }
        let asleep = wake.map_or(now + Span::hours(24 * 400), |wake| Moment(wake.0 - 1));
        if self.twin.is_due(asleep) {
            return Err(format!("somebody could go on before {wake:?}"));
        }
        if wake.is_some_and(|wake| !self.twin.is_due(wake)) && !self.fast.has_idle_pace() {
            return Err(format!("wants to be woken at {wake:?}, when nobody could go on"));
        }
        Ok(())
    }

    fn key(&self, limit: usize) -> &LimitKey {
        &self.scene.limits[limit].0
    }

    fn reservers(&self) -> impl Iterator<Item = Rank> + '_ {
        self.twin.places().iter().filter(|(_, place)| place.reserves).map(|(&rank, _)| rank)
    }

    fn count(&mut self, command: &Command, starts: &[Start], reserved: &[Rank]) {
        let limits = 0..self.scene.limits.len();
        let reservers = limits.map(|limit| self.twin.reservers(limit).count() as u64).max().unwrap_or(0);
        let paced =
            |rank: &Rank| self.twin.places().get(rank).is_some_and(|place| self.twin.is_pace(place.under));
        let stats = &mut self.stats;
        stats.starts += starts.len() as u64;
        stats.looks += u64::from(self.twin.looks());
        stats.with_a_reserver += u64::from(reservers > 0);
        stats.most_reservers = stats.most_reservers.max(reservers);
        stats.displaced = self.twin.displaced();
        stats.continued += u64::from(self.twin.next_look().is_some());
        stats.parked_under_a_pace += u64::from(self.twin.places().keys().any(paced));
        stats.stopped_by_a_pace += reserved.iter().filter(|rank| paced(rank)).count() as u64;
        stats.resolved_anew += u64::from(resolves(command));
    }
}

fn resolves(command: &Command) -> bool {
    match command {
        Command::Resolve(changes) => !changes.is_empty(),
        Command::Together(commands) => commands.iter().any(resolves),
        _ => false,
    }
}

fn equal<T: PartialEq + fmt::Debug>(what: &str, fast: &T, naive: &T) -> Result<(), String> {
    if fast == naive {
        return Ok(());
    }
    Err(format!("{what} differ\n   core: {fast:?}\n   twin: {naive:?}"))
}
