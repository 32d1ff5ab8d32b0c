//! Dates and times as PostgreSQL counts them, written as ISO 8601 says. Its years go further than those of any library.

const DAY: i64 = 86_400_000_000;

/// Days since the first of January 2000.
pub(super) fn date(days: i32) -> String {
    match days {
        i32::MAX => "infinity".to_owned(),
        i32::MIN => "-infinity".to_owned(),
        days => calendar(i64::from(days)),
    }
}

/// Microseconds since the beginning of the year 2000.
pub(super) fn timestamp(micros: i64, zone: &str) -> String {
    match micros {
        i64::MAX => "infinity".to_owned(),
        i64::MIN => "-infinity".to_owned(),
        micros => format!("{}T{}{zone}", calendar(micros.div_euclid(DAY)), time(micros.rem_euclid(DAY))),
    }
}

/// Microseconds since midnight, which may be a whole day.
pub(super) fn time(micros: i64) -> String {
    let seconds = micros / 1_000_000;
    let whole = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    match micros % 1_000_000 {
        0 => whole,
        rest => format!("{whole}.{rest:06}").trim_end_matches('0').to_owned(),
    }
}

/// Seconds west of Greenwich.
pub(super) fn zone(west: i32) -> String {
    let (sign, seconds) = if west > 0 { ('-', west) } else { ('+', -west) };
    let zone = format!("{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60);
    match seconds % 60 {
        0 => zone,
        rest => format!("{zone}:{rest:02}"),
    }
}

/// `P1Y2M3DT4H5M6.5S`; each part has its own sign.
pub(super) fn interval(months: i32, days: i32, micros: i64) -> String {
    let part = |count: i64, unit: char| match count {
        0 => String::new(),
        count => format!("{count}{unit}"),
    };
    let date =
        [part(i64::from(months / 12), 'Y'), part(i64::from(months % 12), 'M'), part(i64::from(days), 'D')]
            .concat();
    let seconds = micros % 60_000_000;
    let sign = if seconds < 0 { "-" } else { "" };
    let second = match (seconds.abs() / 1_000_000, seconds.abs() % 1_000_000) {
        (0, 0) => String::new(),
        (whole, 0) => format!("{sign}{whole}S"),
        (whole, rest) => format!("{sign}{}S", format!("{whole}.{rest:06}").trim_end_matches('0')),
    };
    let time = [part(micros / 3_600_000_000, 'H'), part(micros / 60_000_000 % 60, 'M'), second].concat();
    match (date.is_empty(), time.is_empty()) {
        (true, true) => "PT0S".to_owned(),
        (_, true) => format!("P{date}"),
        (_, false) => format!("P{date}T{time}"),
    }
}

/// The day in the calendar of today, which is also used for times before it: years of 400 repeat themselves.
fn calendar(days_since_2000: i64) -> String {
    // Counted from the first of March of the year 0, so that the day that is sometimes missing is the last of a year.
    let days = days_since_2000 + 730_425;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let of_cycle = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * of_cycle + of_cycle / 4 - of_cycle / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = of_cycle + era * 400 + i64::from(month <= 2);
    match year {
        0..=9999 => format!("{year:04}-{month:02}-{day:02}"),
        year => format!("{year:+05}-{month:02}-{day:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn moments_are_written_as_iso_8601_says() {
        assert_eq!(date(0), "2000-01-01");
        assert_eq!(date(-730_485), "0000-01-01");
        assert_eq!(date(i32::MAX), "infinity");
        assert_eq!(date(3_000_000), "+10213-09-21");
        assert_eq!(timestamp(-1, "Z"), "1999-12-31T23:59:59.999999Z");
        assert_eq!(timestamp(i64::MIN, "Z"), "-infinity");
        assert_eq!(time(DAY), "24:00:00");
        assert_eq!(time(1_500_000), "00:00:01.5");
        assert_eq!((zone(-7200), zone(12_600), zone(0)), ("+02:00".into(), "-03:30".into(), "+00:00".into()));
        assert_eq!(interval(14, 3, 14_706_500_000), "P1Y2M3DT4H5M6.5S");
        assert_eq!(interval(-1, 0, -500_000), "P-1MT-0.5S");
        assert_eq!(interval(0, 0, 0), "PT0S");
        assert_eq!(interval(0, 7, 0), "P7D");
    }

    proptest! {
        /// As a library says that knows fewer years.
        #[test]
        fn days_are_those_of_the_calendar(days in -700_000..2_900_000_i32) {
            let first = jiff::civil::date(2000, 1, 1);
            let day = first.checked_add(jiff::Span::new().days(i64::from(days))).unwrap();
            prop_assert_eq!(date(days), day.to_string());
        }
    }
}
