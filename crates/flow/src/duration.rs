//! Durations the way people write them: `200ms`, `30s`, `1h30m`.

use tidegate_core::time::Span;

/// Units from large to small; a duration names each at most once, in this order.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000)];

/// Nothing in the engine waits longer than this, and sums of such spans cannot overflow.
const LONGEST: u64 = 366 * 10 * 86_400_000_000;

/// Reads `200ms`, `30s`, `5m`, `2h`, `1d` and combinations from large to small, such as `1h30m`.
pub fn parse_duration(text: &str) -> Option<Span> {
    let mut rest = text;
    let mut total = 0u64;
    let mut next_unit = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.bytes().take_while(u8::is_ascii_lowercase).count();
        let unit = UNITS.iter().position(|&(name, _)| name == &rest[..letters])?;
        if unit < next_unit {
            return None;
        }
        next_unit = unit + 1;
        rest = &rest[letters..];
        total = total.checked_add(number.checked_mul(UNITS[unit].1)?)?;
    }
    (next_unit > 0 && total <= LONGEST).then_some(Span(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        let cases = [
            ("200ms", Span::millis(200)),
            ("30s", Span::seconds(30)),
            ("5m", Span::minutes(5)),
            ("2h", Span::hours(2)),
            ("1d", Span::hours(24)),
            ("1h30m", Span::minutes(90)),
            ("1d2h3m4s5ms", Span::millis(93_784_005)),
            ("0s", Span::ZERO),
        ];
        for (text, span) in cases {
            assert_eq!(parse_duration(text), Some(span), "{text}");
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in ["", "5", "s", "5 s", "-5s", "1.5h", "30m1h", "1s1s", "5S", "5µs", "99999999d", "1h é"]
        {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
