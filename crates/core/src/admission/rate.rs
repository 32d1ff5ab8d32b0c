//! Starts per time, by the generic cell rate algorithm, in whole numbers.
//!
//! Time is counted in microseconds times `limit`, in which one unit costs exactly `per`. So slow rates such as
//! seven a day lose nothing to rounding, however long they run.

use crate::model::RatePolicy;
use crate::time::Moment;
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Rate {
    policy: RatePolicy,
    /// The scaled time at which the bucket will be full again.
    full: i128,
}

impl Rate {
    /// A bucket that has never been used.
    pub fn new(policy: RatePolicy) -> Self {
        Rate { policy, full: i128::MIN }
    }

    pub fn policy(&self) -> &RatePolicy {
        &self.policy
    }

    fn scaled(&self, now: Moment) -> i128 {
        i128::from(now.0) * i128::from(self.policy.limit)
    }

    fn cost(&self, units: u32) -> i128 {
        i128::from(units) * i128::from(self.policy.per.0)
    }

    /// Units that may start at `now`, at most `burst`. None at all if the limit is 0.
    pub fn available(&self, now: Moment) -> u32 {
        if self.policy.limit == 0 {
            return 0;
        }
        let missing = (self.full.saturating_sub(self.scaled(now))).max(0);
        let left = self.cost(self.policy.burst) - missing;
        // At most `burst`, because nothing is missing at best.
        u32::try_from((left / self.cost(1).max(1)).max(0)).unwrap_or(u32::MAX).min(self.policy.burst)
    }

    pub fn take(&mut self, units: u32, now: Moment) {
        self.full = self.full.max(self.scaled(now)) + self.cost(units);
    }

    /// The first moment at which `units` are available, if nobody takes any before. Never, if the limit is 0 or
    /// the burst is smaller.
    pub fn available_at(&self, units: u32) -> Moment {
        if self.policy.limit == 0 || units > self.policy.burst {
            return Moment::MAX;
        }
        let scaled = self.full.saturating_add(self.cost(units) - self.cost(self.policy.burst));
        let limit = i128::from(self.policy.limit);
        let micros = scaled.div_euclid(limit) + i128::from(scaled.rem_euclid(limit) > 0);
        Moment(micros.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    }

    /// When it needs no memory any more, because it is full.
    pub fn full_at(&self) -> Moment {
        self.available_at(self.policy.burst)
    }

    /// A new pace keeps the filled share of the bucket: half full stays half full.
    pub fn change(&mut self, policy: RatePolicy, now: Moment) {
        let missing = (self.full.saturating_sub(self.scaled(now))).max(0);
        let whole = self.cost(self.policy.burst).max(1);
        self.policy = policy;
        let missing = mul_div(missing.min(whole), self.cost(policy.burst), whole);
        self.full = self.scaled(now) + missing;
    }
}

/// `a * b / c` rounded up, for `0 <= a <= c`, without overflow for any rate a user can write.
fn mul_div(a: i128, b: i128, c: i128) -> i128 {
    match a.checked_mul(b) {
        Some(product) => product / c + i128::from(product % c > 0),
        None => a / c * b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WhenExhausted;
    use crate::time::Span;

    fn rate(limit: u32, per: Span, burst: u32) -> Rate {
        Rate::new(RatePolicy { limit, per, burst, when_busy: WhenExhausted::Wait })
    }

    #[test]
    fn a_burst_then_the_pace() {
        let mut rate = rate(2, Span::seconds(1), 3);
        let t0 = Moment(1_000_000_000);
        assert_eq!(rate.available(t0), 3);
        rate.take(3, t0);
        assert_eq!(rate.available(t0), 0);
        assert_eq!(rate.available_at(1), t0 + Span::millis(500));
        assert_eq!(rate.available(t0 + Span::micros(499_999)), 0);
        assert_eq!(rate.available(t0 + Span::millis(500)), 1);
        assert_eq!(rate.available(t0 + Span::seconds(60)), 3, "never above the burst");
        assert_eq!(rate.full_at(), t0 + Span::millis(1500));
    }

    #[test]
    fn slow_rates_keep_the_remainder() {
        let day = Span::hours(24);
        let mut rate = rate(7, day, 1);
        let start = Moment(0);
        let mut now = start;
        for _ in 0..7 * 1000 {
            now = now.max(rate.available_at(1));
            assert_eq!(rate.available(now), 1);
            rate.take(1, now);
        }
        // The last of 7,000 starts comes 6,999 intervals after the first; only rounding up to a microsecond is lost.
        let exact = (6_999u128 * u128::from(day.0)).div_ceil(7) as i64;
        assert!((now.0 - exact).abs() <= 7_000, "drifted by {} µs", now.0 - exact);
    }

    #[test]
    fn no_window_of_any_length_holds_more_than_it_may() {
        let mut rate = rate(5, Span::seconds(1), 2);
        let mut starts = Vec::new();
        for tick in 0..50_000i64 {
            let now = Moment(tick * 100);
            if rate.available(now) > 0 {
                rate.take(1, now);
                starts.push(now.0);
            }
        }
        for (i, first) in starts.iter().enumerate() {
            for (j, last) in starts.iter().enumerate().skip(i) {
                let most = 2 + (last - first) * 5 / 1_000_000;
                assert!((j - i + 1) as i64 <= most, "{} starts in {} µs", j - i + 1, last - first);
            }
        }
        assert_eq!(starts.len(), 2 + 24, "and the pace is used up fully");
    }

    #[test]
    fn zero_never_and_too_wide_never() {
        assert_eq!(rate(0, Span::seconds(1), 3).available(Moment(9)), 0);
        assert_eq!(rate(0, Span::seconds(1), 3).available_at(1), Moment::MAX);
        assert_eq!(rate(2, Span::seconds(1), 3).available_at(4), Moment::MAX);
        assert!(rate(2, Span::seconds(1), 3).available_at(3) < Moment(0), "never used: always there");
    }

    #[test]
    fn a_changed_pace_keeps_the_filled_share() {
        let mut rate = rate(10, Span::seconds(1), 10);
        let now = Moment(5_000_000);
        rate.take(5, now);
        rate.change(
            RatePolicy { limit: 1, per: Span::seconds(1), burst: 4, when_busy: WhenExhausted::Wait },
            now,
        );
        assert_eq!(rate.available(now), 2);
        assert_eq!(rate.full_at(), now + Span::seconds(2));
        assert_eq!(mul_div(i128::MAX / 2, 4, i128::MAX), 0, "rounds instead of overflowing");
        assert_eq!(mul_div(i128::MAX, 4, i128::MAX), 4, "an empty bucket stays empty");
        assert_eq!(mul_div(1, 1, 3), 1);
        assert_eq!(mul_div(3, 2, 3), 2);
    }
}
