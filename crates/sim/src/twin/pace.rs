//! What a rate or a quota has left, found by replaying everything that ever started under it.
//!
//! The core keeps one number for each; here the whole past is kept, and read from its beginning each time.

use tidegate_core::model::{QuotaPolicy, QuotaWindow, RatePolicy};
use tidegate_core::time::Moment;

#[derive(Clone, PartialEq, Debug)]
pub enum Pace {
    Rate(RatePolicy),
    Quota(QuotaPolicy),
}

impl Pace {
    /// The most that may start at once.
    pub fn capacity(&self) -> u64 {
        match self {
            Pace::Rate(policy) => u64::from(policy.burst),
            Pace::Quota(policy) => u64::from(policy.limit),
        }
    }

    /// Nothing ever starts under it.
    pub fn is_closed(&self) -> bool {
        match self {
            Pace::Rate(policy) => policy.limit == 0,
            Pace::Quota(policy) => policy.limit == 0,
        }
    }
}

#[derive(Clone, Debug)]
enum Event {
    Start(u32),
    Change(Pace),
}

#[derive(Clone, Debug)]
pub struct PaceLog {
    first: Pace,
    events: Vec<(Moment, Event)>,
}

impl PaceLog {
    pub fn new(pace: Pace) -> Self {
        PaceLog { first: pace, events: Vec::new() }
    }

    pub fn pace(&self) -> &Pace {
        let changes = self.events.iter().rev();
        let mut paces = changes.filter_map(|(_, event)| match event {
            Event::Change(pace) => Some(pace),
            Event::Start(_) => None,
        });
        paces.next().unwrap_or(&self.first)
    }

    pub fn started(&mut self, units: u32, now: Moment) {
        self.events.push((now, Event::Start(units)));
    }

    pub fn change(&mut self, pace: Pace, now: Moment) {
        self.events.push((now, Event::Change(pace)));
    }

    pub fn available(&self, now: Moment) -> i64 {
        match &self.first {
            Pace::Rate(first) => self.replay_rate(Bucket::full(*first), now),
            Pace::Quota(first) => self.replay_quota(first.clone(), now),
        }
    }

    fn replay_rate(&self, mut bucket: Bucket, now: Moment) -> i64 {
        for (at, event) in &self.events {
            bucket.fill_until(*at);
            match event {
                Event::Start(units) => bucket.level -= i128::from(*units) * bucket.unit(),
                Event::Change(Pace::Rate(policy)) => bucket.change(*policy),
                Event::Change(Pace::Quota(_)) => {}
            }
        }
        bucket.fill_until(now);
        if bucket.policy.limit == 0 { 0 } else { (bucket.level / bucket.unit()) as i64 }
    }

    fn replay_quota(&self, mut policy: QuotaPolicy, now: Moment) -> i64 {
        let (mut taken, mut window) = (0, None);
        for (at, event) in &self.events {
            if window != Some(window_of(policy.window, *at)) {
                taken = 0;
            }
            match event {
                Event::Start(units) => taken += i64::from(*units),
                Event::Change(Pace::Quota(new)) => policy = new.clone(),
                Event::Change(Pace::Rate(_)) => {}
            }
            // What was taken before a change counts in the window that the new policy has now.
            window = Some(window_of(policy.window, *at));
        }
        if window != Some(window_of(policy.window, now)) {
            taken = 0;
        }
        (i64::from(policy.limit) - taken).max(0)
    }
}

/// A bucket of tokens that fills with time. One microsecond brings `limit`, one unit costs `per`.
struct Bucket {
    policy: RatePolicy,
    level: i128,
    at: Option<Moment>,
}

impl Bucket {
    fn full(policy: RatePolicy) -> Self {
        let mut bucket = Bucket { policy, level: 0, at: None };
        bucket.level = bucket.whole();
        bucket
    }

    fn unit(&self) -> i128 {
        i128::from(self.policy.per.0)
    }

    fn whole(&self) -> i128 {
        i128::from(self.policy.burst) * self.unit()
    }

    fn fill_until(&mut self, now: Moment) {
        let passed = now.since(self.at.unwrap_or(now));
        self.level += i128::from(passed.0) * i128::from(self.policy.limit);
        self.level = self.level.min(self.whole());
        self.at = Some(now);
    }

    /// Keeps the filled share, rounded to the disadvantage of who waits.
    fn change(&mut self, policy: RatePolicy) {
        let (missing, whole) = (self.whole() - self.level, self.whole().max(1));
        self.policy = policy;
        self.level = self.whole() - (missing * self.whole() + whole - 1).div_euclid(whole);
    }
}

/// The number of the calendar window, in UTC, that a moment lies in.
fn window_of(window: QuotaWindow, at: Moment) -> i64 {
    const DAY: i64 = 86_400;
    let second = at.0.div_euclid(1_000_000);
    match window {
        QuotaWindow::Minute => second.div_euclid(60),
        QuotaWindow::Hour => second.div_euclid(3_600),
        QuotaWindow::Day => second.div_euclid(DAY),
        // The first of January 1970 was a Thursday; weeks begin on Mondays.
        QuotaWindow::Week => (second + 3 * DAY).div_euclid(7 * DAY),
        QuotaWindow::Month => panic!("months differ in length; the generator makes none"),
    }
}
