//! What admission costs, counted in heads looked at: work grows with classes, never with waiters.
//!
//! Counts and not times, so that a slow machine proves as much as a fast one.

use tidegate_core::admission::{LimitKey, Rank, Rules};
use tidegate_core::ids::{Name, NodeId, TaskId};
use tidegate_core::time::Moment;
use tidegate_sim::random::Random;
use tidegate_sim::twin::{Bound, Command, Fast, Need, Scene};

/// Heads looked at in each command.
#[derive(Default, Debug)]
struct Looks {
    commands: u64,
    all: u64,
    most: u32,
}

impl Looks {
    fn mean(&self) -> f64 {
        self.all as f64 / self.commands as f64
    }
}

struct Bench {
    random: Random,
    scene: Scene,
    fast: Fast,
    next: u64,
    looks: Looks,
}

impl Bench {
    /// A source is a list of names, with units where they are not one: `pool=60`.
    fn new(limits: Vec<(String, u64)>, sources: &[&[&str]]) -> Self {
        let mut limits: Vec<(LimitKey, Bound)> = limits
            .into_iter()
            .map(|(name, capacity)| (LimitKey::Pool(Name::from(name)), Bound::Units(capacity)))
            .collect();
        limits.sort_by(|a, b| a.0.cmp(&b.0));
        let need = |text: &&str| {
            let (name, units) = text.split_once('=').unwrap_or((text, "1"));
            let key = LimitKey::Pool(name.into());
            let limit = limits.binary_search_by(|(other, _)| other.cmp(&key)).expect("a limit of this bench");
            Need { limit, units: units.parse().expect("units") }
        };
        let needs = |texts: &[&str]| {
            let mut needs: Vec<Need> = texts.iter().map(need).collect();
            needs.sort();
            needs
        };
        let sources = sources.iter().map(|names| needs(names)).collect();
        let (rules, now) = (Rules::default(), Moment(0));
        let scene = Scene { rules, limits, sources, forgetful: false, rebuilds: false, now };
        let (fast, looks) = (Fast::new(&scene), Looks::default());
        Bench { random: Random::new(1), scene, fast, next: 0, looks }
    }

    fn play(&mut self, command: &Command) {
        self.fast.play(command);
        self.looks.commands += 1;
        self.looks.all += u64::from(self.fast.looks());
        self.looks.most = self.looks.most.max(self.fast.looks());
    }

    fn submit(&mut self, priority: i8, source: usize, count: u32) -> Rank {
        self.next += 1;
        let first = Rank::new(priority, self.next, TaskId::item(NodeId(self.next), 0));
        self.play(&Command::Enqueue { source, first, count });
        first
    }

    /// Everything that a full command left to do.
    fn settle(&mut self) {
        while self.fast.admission().is_pending() {
            self.play(&Command::Advance(Moment(0)));
        }
    }

    /// Finishes a random holder of a limit, or of anything.
    fn finish(&mut self, limit: Option<usize>) {
        let holds = |source: usize| {
            limit.is_none_or(|limit| self.scene.sources[source].iter().any(|need| need.limit == limit))
        };
        let holders: Vec<Rank> =
            self.fast.running().filter(|&(_, source)| holds(source)).map(|(rank, _)| rank).collect();
        if !holders.is_empty() {
            let rank = *self.random.pick(&holders);
            self.play(&Command::Finish(rank));
        }
    }

    fn measured(&mut self, work: impl FnOnce(&mut Self)) -> Looks {
        self.looks = Looks::default();
        work(self);
        std::mem::take(&mut self.looks)
    }
}

fn numbered(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}{n}")).collect()
}

/// 100,000 items behind a window of 20; 200 other classes want the same 50 slots.
fn one_loop(urgent_every: usize) -> Looks {
    let keys = numbered("x", 200);
    let mut limits = vec![("loop".to_owned(), 20), ("slots".to_owned(), 50)];
    limits.extend(keys.iter().map(|key| (key.clone(), 3)));
    let others: Vec<[&str; 2]> = keys.iter().map(|key| ["slots", key.as_str()]).collect();
    let mut sources: Vec<&[&str]> = vec![&["loop", "slots"], &["slots"]];
    sources.extend(others.iter().map(|names| &names[..]));
    let mut bench = Bench::new(limits, &sources);
    bench.submit(0, 0, 100_000);
    for n in 0..2_000 {
        bench.submit(0, 2 + n % 200, 1);
    }
    bench.measured(|bench| {
        for n in 0..20_000 {
            if n % urgent_every == 0 {
                bench.submit(9, 1, 1);
            }
            bench.submit(0, 2 + n % 200, 1);
            bench.finish(None);
        }
        assert!(bench.fast.waiting(0) > 90_000, "the loop is never nearly done");
    })
}

#[test]
fn a_hundred_thousand_items_cost_no_more_than_one() {
    let calm = one_loop(usize::MAX);
    println!("one loop: {calm:?}, mean {:.2}", calm.mean());
    assert!(calm.most <= 2 && calm.mean() < 1.0, "{calm:?}");
    let urgent = one_loop(5);
    println!("with urgent tasks: {urgent:?}, mean {:.2}", urgent.mean());
    assert!(urgent.most <= 3 && urgent.mean() < 1.0, "{urgent:?}");
}

/// 1,000 classes that each need a and b.
fn pairs(capacity: u64, extra: &[&[&str]]) -> Bench {
    let keys = numbered("k", 1_000);
    let mut limits = vec![("a".to_owned(), capacity), ("b".to_owned(), capacity)];
    limits.extend(keys.iter().map(|key| (key.clone(), 9)));
    let pairs: Vec<[&str; 3]> = keys.iter().map(|key| ["a", "b", key.as_str()]).collect();
    let mut sources: Vec<&[&str]> = pairs.iter().map(|names| &names[..]).collect();
    sources.extend(extra);
    Bench::new(limits, &sources)
}

#[test]
fn two_full_limits_released_in_turn() {
    let mut bench = pairs(100, &[&["a"], &["b"]]);
    for _ in 0..100 {
        bench.submit(0, 1_000, 1);
        bench.submit(0, 1_001, 1);
    }
    for n in 0..3_000 {
        bench.submit(0, n % 1_000, 1);
    }
    let looks = bench.measured(|bench| {
        for n in 0..3_000 {
            bench.submit(0, n % 1_000, 1);
            bench.finish(Some(0));
            bench.finish(Some(1));
        }
    });
    println!("two limits in turn: {looks:?}, mean {:.2}", looks.mean());
    assert!(looks.mean() < 2.0 && looks.most <= Rules::default().walk_max, "{looks:?}");
}

/// The worst that was found: all units of a, then of b, are free for one command, and 1,000 classes follow them.
#[test]
fn no_command_looks_at_more_than_it_may() {
    let mut bench = pairs(60, &[&["a=60"], &["b=60"]]);
    let mut wide = [bench.submit(9, 1_000, 1), bench.submit(9, 1_001, 1)];
    for n in 0..3_000 {
        bench.submit(0, n % 1_000, 1);
    }
    let looks = bench.measured(|bench| {
        for n in 0..400 {
            let limit = n % 2;
            bench.play(&Command::Finish(wide[limit]));
            bench.settle();
            wide[limit] = bench.submit(9, 1_000 + limit, 1);
            bench.settle();
        }
    });
    println!("the tide: {looks:?}, mean {:.2}", looks.mean());
    assert_eq!(looks.most, Rules::default().walk_max, "{looks:?}");
    assert!(
        looks.all / 800 <= 600,
        "walked to the end, each wave costs about half of the classes: {looks:?}"
    );
}
