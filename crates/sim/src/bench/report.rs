//! Figures next to their bars: a table for people, a line of JSON a figure for programs.

use super::figures::Figures;
use super::situation::Situation;
use std::fmt::Write;

/// Nanoseconds that no command may exceed.
const COMMAND_BAR: f64 = 1_000_000.0;
/// Bytes that a waiting task may take.
const WEIGHT_BAR: f64 = 400.0;
/// Cycles a second of one core with the fewest waiting.
const RATE_GOAL: f64 = 500_000.0;

/// One figure against what is asked of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    pub scenario: String,
    pub value: f64,
    pub unit: &'static str,
    /// The bar, or the goal.
    pub against: f64,
    /// At least, or at most, the bar.
    pub more_is_better: bool,
}

impl Finding {
    fn at_most(scenario: String, value: f64, unit: &'static str, against: f64) -> Finding {
        Finding { scenario, value, unit, against, more_is_better: false }
    }

    /// Above 1: better than asked for.
    pub fn ratio(&self) -> f64 {
        let ratio = self.value / self.against;
        // What costs nothing is as good as it gets; a thousandth keeps the ratio finite.
        if self.more_is_better { ratio } else { 1.0 / ratio.max(0.001) }
    }

    pub fn verdict(&self) -> &'static str {
        if self.ratio() >= 1.0 { "ok" } else { "short" }
    }

    pub fn json(&self) -> String {
        format!(
            r#"{{"scenario":"{}","value":{:.1},"unit":"{}","ratio":{:.3},"against":{:.0}}}"#,
            self.scenario,
            self.value,
            self.unit,
            self.ratio(),
            self.against
        )
    }
}

/// What is asked of each size of a situation.
pub fn findings(situation: Situation, figures: &[Figures]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, figure) in figures.iter().enumerate() {
        let scenario = |what: &str| format!("core/{}/{}/{what}", situation.word(), figure.waiting);
        if at == 0 {
            let value = 1e9 / figure.cycle;
            let goal = Finding::at_most(scenario("cycles"), value, "cycles/s", RATE_GOAL);
            findings.push(Finding { more_is_better: true, ..goal });
        } else {
            findings.push(Finding::at_most(scenario("extra"), figure.extra, "ns/cycle", situation.bar()));
        }
        findings.push(Finding::at_most(scenario("longest"), figure.longest as f64, "ns", COMMAND_BAR));
        if let Some(weight) = figure.weight {
            findings.push(Finding::at_most(scenario("weight"), weight, "B/waiter", WEIGHT_BAR));
        }
    }
    findings
}

const HEADINGS: [&str; 8] = [
    "situation",
    "waiting",
    "cycles/s (goal 500,000)",
    "ns/cycle",
    "extra ns (quartiles; bar)",
    "p99.99 µs",
    "longest µs (bar 1,000)",
    "B/waiter (bar 400)",
];

/// One row a size. Where a figure has a bar it is followed by `ok` or `short`.
pub fn table(results: &[(Situation, Vec<Figures>)]) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    for (situation, figures) in results {
        rows.extend(figures.iter().enumerate().map(|(at, figure)| row(*situation, at == 0, figure)));
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, "{cell:<width$}  ");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

fn row(situation: Situation, is_first: bool, figure: &Figures) -> [String; 8] {
    let verdict = |value: f64, bar: f64| if value <= bar { "ok" } else { "short" };
    let rate = 1e9 / figure.cycle;
    [
        situation.name().to_owned(),
        thousands(figure.waiting as f64),
        match is_first {
            true => format!("{} {}", thousands(rate), verdict(RATE_GOAL, rate)),
            false => thousands(rate),
        },
        thousands(figure.cycle),
        match is_first {
            true => "–".to_owned(),
            false => format!(
                "{} ({}…{}; {}) {}",
                thousands(figure.extra),
                thousands(figure.extra_low),
                thousands(figure.extra_high),
                thousands(situation.bar()),
                verdict(figure.extra, situation.bar())
            ),
        },
        format!("{:.1}", figure.nearly_all as f64 / 1e3),
        format!("{:.1} {}", figure.longest as f64 / 1e3, verdict(figure.longest as f64, COMMAND_BAR)),
        match figure.weight {
            Some(weight) => format!("{weight:.0} {}", verdict(weight, WEIGHT_BAR)),
            None => "–".to_owned(),
        },
    ]
}

/// Whole numbers with commas.
fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value <= -0.5 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: Figures = Figures {
        waiting: 1_000_000,
        cycle: 2_500.0,
        extra: 1_500.0,
        extra_low: 1_400.0,
        extra_high: 1_600.0,
        longest: 20_000,
        nearly_all: 9_000,
        weight: Some(390.0),
    };

    #[test]
    fn what_misses_its_bar_is_short() {
        let first = Figures { waiting: 1_000, extra: 0.0, weight: None, ..FIGURES };
        let found = findings(Situation::OneLimit, &[first, FIGURES]);
        let verdicts: Vec<&str> = found.iter().map(Finding::verdict).collect();
        assert_eq!(verdicts, ["short", "ok", "short", "ok", "ok"]);
        assert_eq!(
            found[2].json(),
            r#"{"scenario":"core/one-limit/1000000/extra","value":1500.0,"unit":"ns/cycle","ratio":0.667,"against":1000}"#
        );
        assert_eq!(found[0].ratio(), 0.8);
        let text = table(&[(Situation::OneLimit, vec![first, FIGURES])]);
        assert!(
            text.contains("400,000 short") && text.contains("1,500 (1,400…1,600; 1,000) short"),
            "{text}"
        );
    }

    #[test]
    fn numbers_are_read_in_thousands() {
        assert_eq!(
            [0.0, -0.2, 999.6, -1234.0, 1e6].map(thousands),
            ["0", "0", "1,000", "-1,234", "1,000,000"]
        );
    }
}
