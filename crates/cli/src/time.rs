//! Clocks and spans as people read them.

use jiff::tz::TimeZone;
use tidegate_core::time::{Moment, Span};

/// Engine time over SQLite is the wall clock.
pub fn now() -> Moment {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Moment(since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX)))
}

/// `12:00:01.2`, in the given zone.
pub fn clock(at: Moment, zone: &TimeZone) -> String {
    let tenth = at.0.rem_euclid(1_000_000) / 100_000;
    format!("{}.{tenth}", at.timestamp().to_zoned(zone.clone()).strftime("%H:%M:%S"))
}

/// `2026-11-15 12:00:01`, in the given zone.
pub fn date(at: Moment, zone: &TimeZone) -> String {
    at.timestamp().to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// `12ms`, `0.3s`, `2m 14s`.
pub fn took(span: Span) -> String {
    if span < Span::millis(100) {
        return format!("{}ms", span.0 / 1_000);
    }
    if span < Span::minutes(1) {
        let tenths = span.0 / 100_000;
        return format!("{}.{}s", tenths / 10, tenths % 10);
    }
    span.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(clock(Moment(1_250_000), &TimeZone::UTC), "00:00:01.2");
        assert_eq!(date(Moment(1_250_000), &TimeZone::UTC), "1970-01-01 00:00:01");
        assert_eq!(took(Span::micros(12_900)), "12ms");
        assert_eq!(took(Span::millis(349)), "0.3s");
        assert_eq!(took(Span::millis(59_990)), "59.9s");
        assert_eq!(took(Span::seconds(134)), "2m 14s");
    }
}
