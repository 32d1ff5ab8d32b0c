//! A wide task among narrow ones that never stop coming starts after a bounded number of releases, because a
//! head that keeps moving between lines reserves. Without reservation it starves.

use tidegate_core::admission::{LimitKey, Rank, Rules};
use tidegate_core::ids::{Name, NodeId, TaskId};
use tidegate_core::time::Moment;
use tidegate_sim::random::Random;
use tidegate_sim::twin::{Bound, Command, Fast, Need, Scene};

const FOREVER: u64 = 4_000;
const WIDE: usize = 0;

/// A, B and C, in this order.
const LIMITS: [&str; 3] = ["a", "b", "c"];

struct Outcome {
    /// Releases of the limit the wide task was parked under at the time.
    releases: u64,
    /// The proven bound: each of its first two stays ends within `capacity` releases, because the line it is
    /// parked under admits nobody else; then it reserves, and what is free for it never shrinks.
    bound: u64,
}

struct Stream {
    random: Random,
    fast: Fast,
    kinds: usize,
    next: u64,
}

impl Stream {
    fn submit(&mut self, source: usize) -> Rank {
        self.next += 1;
        let first = Rank::new(0, self.next, TaskId::node(NodeId(self.next)));
        self.fast.play(&Command::Enqueue { source, first, count: 1 });
        first
    }

    /// Every kind of narrow task always has some waiting.
    fn feed(&mut self) {
        for kind in 1..=self.kinds {
            while self.fast.waiting(kind) < 6 {
                self.submit(kind);
            }
        }
    }
}

fn scene(random: &mut Random, reserve_after: u32) -> Scene {
    let capacity = [random.between(2, 10), random.between(2, 10), 3];
    let needs = |units: &[(usize, u64)]| -> Vec<Need> {
        units.iter().map(|&(limit, units)| Need { limit, units: units as u32 }).collect()
    };
    let mut wide = needs(&[(0, random.between(1, capacity[0])), (1, random.between(1, capacity[1]))]);
    if wide.iter().all(|need| need.units == 1) {
        wide = needs(&[(0, capacity[0]), (1, capacity[1]), (2, 1)]);
    }
    let narrow = [&[(0, 1)][..], &[(1, 1)], &[(0, 1), (2, 1)], &[(1, 1), (2, 1)], &[(0, 1), (1, 1)]];
    let limits = LIMITS.iter().zip(capacity);
    Scene {
        rules: Rules { reserve_after, ..Rules::default() },
        limits: limits.map(|(name, n)| (LimitKey::Pool(Name::new(name)), Bound::Units(n))).collect(),
        sources: std::iter::once(wide).chain(narrow.iter().map(|units| needs(units))).collect(),
        forgetful: false,
        rebuilds: false,
        now: Moment(0),
    }
}

/// `None` if the wide task has not started after so many releases that it never will.
fn starvation(seed: u64, reserve_after: u32) -> Option<Outcome> {
    let mut random = Random::new(seed);
    let scene = scene(&mut random, reserve_after);
    let kinds = *random.pick(&[2, 4, 5]);
    let mut stream = Stream { random, fast: Fast::new(&scene), kinds, next: 0 };
    stream.feed();
    // Nobody who waits is older than the wide one.
    let (first, last) =
        (Rank::new(0, 0, TaskId::node(NodeId(0))), Rank::new(0, 9_999, TaskId::node(NodeId(0))));
    for source in 1..=kinds {
        stream.fast.play(&Command::WithdrawRange { source, first, last });
    }
    let me = stream.submit(WIDE);
    let (mut releases, mut parked) = (0, 0);
    while stream.fast.waiting(WIDE) > 0 {
        if releases == FOREVER {
            return None;
        }
        stream.feed();
        let (rank, source) = stream.random.pick_of(stream.fast.running()).expect("narrow tasks run");
        let under = stream.fast.parked(WIDE).map(|(_, place)| place.under);
        let needs = &scene.sources[source];
        parked += u64::from(needs.iter().any(|need| Some(need.limit) == under));
        releases += needs.iter().filter(|need| need.limit < 2).count() as u64;
        releases = releases.min(FOREVER);
        stream.fast.play(&Command::Finish(rank));
    }
    assert!(stream.fast.running().any(|(rank, _)| rank == me));
    let mut capacity: Vec<u64> = scene.sources[WIDE].iter().map(|need| capacity(&scene, need)).collect();
    capacity.sort_unstable_by(|a, b| b.cmp(a));
    let bound = capacity.iter().sum::<u64>() + capacity.iter().take(2).sum::<u64>();
    Some(Outcome { releases: parked, bound })
}

fn capacity(scene: &Scene, need: &Need) -> u64 {
    match scene.limits[need.limit].1 {
        Bound::Units(capacity) => capacity,
        _ => 0,
    }
}

#[test]
fn a_wide_task_starts_within_the_bound() {
    let mut most = 0.0f64;
    for seed in 0..500 {
        let outcome = starvation(seed, Rules::default().reserve_after);
        let Outcome { releases, bound } = outcome.unwrap_or_else(|| panic!("seed {seed}: it starved"));
        assert!(releases <= bound, "seed {seed}: {releases} releases, {bound} proven");
        most = most.max(releases as f64 / bound as f64);
    }
    println!("at most {most:.2} of the bound");
    assert!(most > 0.3, "a stream that is no hindrance proves nothing: {most:.2}");
}

#[test]
fn without_reservation_it_starves() {
    let starved = (0..100).filter(|&seed| starvation(seed, u32::MAX).is_none()).count();
    println!("{starved} of 100 starved");
    assert!(starved >= 90, "{starved} of 100 starved");
}
