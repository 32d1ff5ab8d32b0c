//! Starts per calendar window: a count that begins anew at each boundary of the window's time zone.

use crate::model::{QuotaPolicy, QuotaWindow};
use crate::time::Moment;
use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{ToSpan, Zoned};
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Quota {
    policy: QuotaPolicy,
    taken: u32,
    /// The window that `taken` belongs to ends here.
    ends: Moment,
}

impl Quota {
    pub fn new(policy: QuotaPolicy) -> Self {
        Quota { policy, taken: 0, ends: Moment(i64::MIN) }
    }

    pub fn policy(&self) -> &QuotaPolicy {
        &self.policy
    }

    pub fn taken(&self, now: Moment) -> u32 {
        if now < self.ends { self.taken } else { 0 }
    }

    pub fn available(&self, now: Moment) -> u32 {
        self.policy.limit.saturating_sub(self.taken(now))
    }

    pub fn take(&mut self, units: u32, now: Moment) {
        if now >= self.ends {
            self.taken = 0;
            self.ends = end_of_window(&self.policy, now);
        }
        self.taken += units;
    }

    /// The first moment at which `units` are available, if nobody takes any before.
    pub fn available_at(&self, units: u32, now: Moment) -> Moment {
        match units {
            _ if units > self.policy.limit => Moment::MAX,
            _ if self.available(now) >= units => now,
            _ => self.ends,
        }
    }

    /// When it needs no memory any more.
    pub fn forgotten_at(&self) -> Moment {
        self.ends
    }

    /// What was taken in the present window stays taken, whatever the new size; a new kind of window begins anew
    /// at its own next boundary.
    pub fn change(&mut self, policy: QuotaPolicy, now: Moment) {
        let taken = self.taken(now);
        self.policy = policy;
        if taken > 0 {
            self.taken = taken;
            self.ends = end_of_window(&self.policy, now);
        }
    }
}

/// The boundary after `now`. Where the calendar has no answer (year 9999) the window never ends.
fn end_of_window(policy: &QuotaPolicy, now: Moment) -> Moment {
    // The database that ships with us, never the machine's: two leaders must agree on where a day ends.
    let zone = TimeZoneDatabase::bundled().get(policy.zone.as_str()).unwrap_or(TimeZone::UTC);
    next_boundary(policy.window, &now.timestamp().to_zoned(zone))
        .map_or(Moment::MAX, |boundary| Moment(boundary.timestamp().as_microsecond()))
}

fn next_boundary(window: QuotaWindow, now: &Zoned) -> Result<Zoned, jiff::Error> {
    let zone = now.time_zone().clone();
    let day = now.date();
    let civil: DateTime = match window {
        // An hour that a clock change repeats is two windows: these boundaries are counted on the time line.
        QuotaWindow::Minute => return floor(now, 60)?.checked_add(1.minute()),
        QuotaWindow::Hour => return floor(now, 3600)?.checked_add(1.hour()),
        QuotaWindow::Day => day.tomorrow()?.at(0, 0, 0, 0),
        QuotaWindow::Week => {
            let since_monday = i64::from(day.weekday().to_monday_zero_offset());
            day.checked_add((7 - since_monday).days())?.at(0, 0, 0, 0)
        }
        QuotaWindow::Month => day.first_of_month().checked_add(1.month())?.at(0, 0, 0, 0),
    };
    civil.to_zoned(zone)
}

/// The start of the present minute or hour, as the zone's clocks show it.
fn floor(now: &Zoned, seconds: i64) -> Result<Zoned, jiff::Error> {
    let local = now.timestamp().as_second() + i64::from(now.offset().seconds());
    now.checked_sub(local.rem_euclid(seconds).seconds())?
        .checked_sub(i64::from(now.subsec_nanosecond()).nanoseconds())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WhenExhausted;
    use crate::time::Span;

    fn quota(limit: u32, window: QuotaWindow, zone: &str) -> Quota {
        Quota::new(QuotaPolicy { limit, window, zone: zone.into(), when_busy: WhenExhausted::Wait })
    }

    fn at(text: &str) -> Moment {
        Moment(text.parse::<jiff::Timestamp>().unwrap().as_microsecond())
    }

    #[test]
    fn counts_within_a_window_and_begins_anew_at_its_end() {
        let mut quota = quota(2, QuotaWindow::Day, "UTC");
        let noon = at("2026-03-01T12:00:00Z");
        quota.take(1, noon);
        assert_eq!(quota.available_at(1, noon), noon);
        quota.take(1, noon);
        assert_eq!((quota.available(noon), quota.taken(noon)), (0, 2));
        let midnight = at("2026-03-02T00:00:00Z");
        assert_eq!(quota.available_at(1, noon), midnight);
        assert_eq!(quota.available(midnight - Span::micros(1)), 0);
        assert_eq!(quota.available(midnight), 2);
        assert_eq!(quota.available_at(2, midnight), midnight);
        assert_eq!(quota.available_at(3, midnight), Moment::MAX);
        assert_eq!(quota.forgotten_at(), midnight);
    }

    #[test]
    fn boundaries_of_every_window() {
        let cases = [
            (QuotaWindow::Minute, "UTC", "2026-03-04T10:11:12.5Z", "2026-03-04T10:12:00Z"),
            (QuotaWindow::Hour, "Asia/Kathmandu", "2026-03-04T10:11:12Z", "2026-03-04T10:15:00Z"),
            (QuotaWindow::Day, "Europe/Berlin", "2026-03-29T00:30:00Z", "2026-03-29T22:00:00Z"),
            (QuotaWindow::Week, "UTC", "2026-03-04T10:11:12Z", "2026-03-09T00:00:00Z"),
            (QuotaWindow::Week, "UTC", "2026-03-09T00:00:00Z", "2026-03-16T00:00:00Z"),
            (QuotaWindow::Month, "UTC", "2026-01-31T10:00:00Z", "2026-02-01T00:00:00Z"),
            (QuotaWindow::Day, "No/Such_Zone", "2026-03-04T10:11:12Z", "2026-03-05T00:00:00Z"),
        ];
        for (window, zone, now, end) in cases {
            let quota = quota(1, window, zone);
            assert_eq!(end_of_window(quota.policy(), at(now)), at(end), "{window:?} {zone} {now}");
        }
    }

    #[test]
    fn a_changed_quota_remembers_what_was_taken() {
        let mut quota = quota(5, QuotaWindow::Day, "UTC");
        let noon = at("2026-03-01T12:00:00Z");
        quota.take(4, noon);
        quota.change(QuotaPolicy { limit: 6, window: QuotaWindow::Hour, ..quota.policy().clone() }, noon);
        assert_eq!(quota.available(noon), 2);
        assert_eq!(quota.available(noon + Span::hours(1)), 6);
    }

    #[test]
    fn a_changed_quota_of_which_nothing_was_taken_has_nothing_to_remember() {
        let mut quota = quota(5, QuotaWindow::Day, "UTC");
        let noon = at("2026-03-01T12:00:00Z");
        quota.change(QuotaPolicy { limit: 6, ..quota.policy().clone() }, noon);
        assert!(quota.forgotten_at() <= noon);
    }

    #[test]
    fn the_end_of_the_calendar_is_not_an_error() {
        assert_eq!(end_of_window(quota(1, QuotaWindow::Month, "UTC").policy(), Moment::MAX), Moment::MAX);
    }
}
