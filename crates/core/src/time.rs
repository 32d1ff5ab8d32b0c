//! Engine time: a point and a length, in whole microseconds. The core is told what time it is; it never looks.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Sub};

/// A point in engine time: microseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(pub i64);

/// A length of time in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(pub u64);

impl Moment {
    pub const MAX: Moment = Moment(i64::MAX);

    /// How long ago `earlier` was; nothing if it is not earlier.
    pub fn since(self, earlier: Moment) -> Span {
        Span(self.0.saturating_sub(earlier.0).max(0) as u64)
    }

    pub fn timestamp(self) -> jiff::Timestamp {
        jiff::Timestamp::from_microsecond(self.0).unwrap_or(jiff::Timestamp::MAX)
    }
}

impl Span {
    pub const ZERO: Span = Span(0);
    pub const MAX: Span = Span(u64::MAX);

    pub const fn micros(n: u64) -> Span {
        Span(n)
    }
    pub const fn millis(n: u64) -> Span {
        Span(n * 1_000)
    }
    pub const fn seconds(n: u64) -> Span {
        Span(n * 1_000_000)
    }
    pub const fn minutes(n: u64) -> Span {
        Span::seconds(n * 60)
    }
    pub const fn hours(n: u64) -> Span {
        Span::minutes(n * 60)
    }
    pub const fn days(n: u64) -> Span {
        Span::hours(n * 24)
    }

    pub fn times(self, n: u64) -> Span {
        Span(self.0.saturating_mul(n))
    }

    pub fn third(self) -> Span {
        Span(self.0 / 3)
    }
}

impl Add<Span> for Moment {
    type Output = Moment;
    fn add(self, span: Span) -> Moment {
        Moment(self.0.saturating_add(i64::try_from(span.0).unwrap_or(i64::MAX)))
    }
}

impl Sub<Span> for Moment {
    type Output = Moment;
    fn sub(self, span: Span) -> Moment {
        Moment(self.0.saturating_sub(i64::try_from(span.0).unwrap_or(i64::MAX)))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl From<Span> for std::time::Duration {
    fn from(span: Span) -> Self {
        std::time::Duration::from_micros(span.0)
    }
}

impl From<std::time::Duration> for Span {
    fn from(duration: std::time::Duration) -> Self {
        Span(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0.div_euclid(1_000_000), self.0.rem_euclid(1_000_000))
    }
}

/// Written the way people say it: the two largest units that matter, `2m 14s`, `1h`, `250ms`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 6] = [
            (86_400_000_000, "d"),
            (3_600_000_000, "h"),
            (60_000_000, "m"),
            (1_000_000, "s"),
            (1_000, "ms"),
            (1, "µs"),
        ];
        let Some(first) = UNITS.iter().position(|&(size, _)| self.0 >= size) else {
            return f.write_str("0s");
        };
        let (size, unit) = UNITS[first];
        write!(f, "{}{unit}", self.0 / size)?;
        let rest = self.0 % size;
        match UNITS.get(first + 1) {
            // Below a second the rest would be noise: 1s 250ms reads well, 250ms 13µs does not.
            Some(&(next, name)) if first < 3 && rest >= next => write!(f, " {}{name}", rest / next),
            Some(&(next, name)) if first == 3 && self.0 < 10_000_000 && rest >= next => {
                write!(f, " {}{name}", rest / next)
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_like_speech() {
        let cases = [
            (Span::ZERO, "0s"),
            (Span::micros(13), "13µs"),
            (Span::millis(250) + Span::micros(13), "250ms"),
            (Span::millis(1250), "1s 250ms"),
            (Span::millis(14_250), "14s"),
            (Span::seconds(134), "2m 14s"),
            (Span::hours(1), "1h"),
            (Span::hours(49), "2d 1h"),
        ];
        for (span, text) in cases {
            assert_eq!(span.to_string(), text);
        }
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Moment::MAX + Span::hours(1), Moment::MAX);
        assert_eq!(Moment(5) + Span(u64::MAX), Moment::MAX);
        assert_eq!(Moment(5).since(Moment(9)), Span::ZERO);
        assert_eq!(Moment(9).since(Moment(5)), Span(4));
        assert_eq!(Moment(9) - Span(4), Moment(5));
        assert_eq!(Span(u64::MAX).times(3), Span(u64::MAX));
        assert_eq!(Span::seconds(30).third(), Span::seconds(10));
    }
}
