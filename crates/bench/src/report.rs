//! Figures next to their bars: a table for people, a line of JSON a figure for programs.

use crate::ratio::Ratio;
use serde_json::json;
use std::fmt::Write;

/// What is asked of a ratio.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bar {
    AtLeast(f64),
    AtMost(f64),
}

/// One figure against something measured in the same run, or against a bound.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    pub scenario: String,
    pub unit: &'static str,
    pub ratio: Ratio,
    /// What the ratio is to.
    pub against: String,
    pub bar: Option<Bar>,
    /// What the observer found: the figure does not count.
    pub flaw: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Ok,
    /// The whole interval is on the wrong side of the bar.
    Short,
    /// Nothing is asked of it.
    Unasked,
    /// A promise was broken on the way.
    DoesNotCount,
}

impl Finding {
    pub fn new(
        scenario: impl Into<String>,
        unit: &'static str,
        ratio: Ratio,
        against: impl Into<String>,
    ) -> Self {
        Finding { scenario: scenario.into(), unit, ratio, against: against.into(), bar: None, flaw: None }
    }

    pub fn bar(self, bar: Bar) -> Self {
        Finding { bar: Some(bar), ..self }
    }

    /// With what the observer found, if it found something.
    pub fn flaw(self, flaw: Option<String>) -> Self {
        Finding { flaw, ..self }
    }

    pub fn outcome(&self) -> Outcome {
        let Ratio { low, high, .. } = self.ratio;
        match self.bar {
            _ if self.flaw.is_some() => Outcome::DoesNotCount,
            None => Outcome::Unasked,
            Some(Bar::AtLeast(bar)) if high < bar => Outcome::Short,
            Some(Bar::AtMost(bar)) if low > bar => Outcome::Short,
            Some(_) => Outcome::Ok,
        }
    }

    pub fn json(&self) -> String {
        let Ratio { value, median, low, high, all } = &self.ratio;
        let mut line = json!({
            "scenario": self.scenario, "value": value, "unit": self.unit, "ratio": median,
            "low": low, "high": high, "ratios": all, "against": self.against, "verdict": self.outcome().word(),
        });
        if let Some(Bar::AtLeast(bar) | Bar::AtMost(bar)) = self.bar {
            let better = if matches!(self.bar, Some(Bar::AtLeast(_))) { "more" } else { "less" };
            (line["bar"], line["better"]) = (bar.into(), better.into());
        }
        if let Some(flaw) = &self.flaw {
            line["flaw"] = flaw.as_str().into();
        }
        line.to_string()
    }

    fn row(&self) -> [String; 7] {
        let Ratio { value, median, low, high, .. } = &self.ratio;
        [
            self.scenario.clone(),
            number(*value),
            self.unit.to_owned(),
            format!("{median:.3} ({low:.3}…{high:.3})"),
            self.against.clone(),
            match self.bar {
                Some(Bar::AtLeast(bar)) => format!("≥ {bar}"),
                Some(Bar::AtMost(bar)) => format!("≤ {bar}"),
                None => "–".to_owned(),
            },
            match &self.flaw {
                Some(flaw) => format!("{}: {flaw}", self.outcome().word()),
                None => self.outcome().word().to_owned(),
            },
        ]
    }
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Short => "short",
            Outcome::Unasked => "–",
            Outcome::DoesNotCount => "does not count",
        }
    }
}

const HEADINGS: [&str; 7] = ["scenario", "value", "unit", "ratio (interval)", "against", "bar", "verdict"];

pub fn table(findings: &[Finding]) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(findings.iter().map(Finding::row));
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
    text.push_str(&turns(findings));
    text
}

/// The ratios of all turns, of whatever was measured in turns.
fn turns(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { scenario, ratio, .. } in findings.iter().filter(|finding| finding.ratio.all.len() > 1) {
        let all: Vec<String> = ratio.all.iter().map(|ratio| format!("{ratio:.3}")).collect();
        let _ = write!(text, "\n{scenario}, turn by turn: {}", all.join(" "));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Whole numbers with commas, small ones with three digits.
fn number(value: f64) -> String {
    if value.abs() < 100.0 {
        return format!("{value:.3}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(low: f64, high: f64) -> Finding {
        let ratio = Ratio { value: 123_456.7, median: 0.5, low, high, all: vec![high, 0.5, low] };
        Finding::new("drain", "jobs/s", ratio, "the floor")
    }

    #[test]
    fn only_a_whole_interval_falls_short() {
        let outcome = |bar, low, high| finding(low, high).bar(bar).outcome();
        assert_eq!(outcome(Bar::AtLeast(0.6), 0.4, 0.61), Outcome::Ok);
        assert_eq!(outcome(Bar::AtLeast(0.6), 0.4, 0.59), Outcome::Short);
        assert_eq!(outcome(Bar::AtMost(0.6), 0.59, 0.7), Outcome::Ok);
        assert_eq!(outcome(Bar::AtMost(0.6), 0.61, 0.7), Outcome::Short);
        assert_eq!(finding(0.4, 0.6).outcome(), Outcome::Unasked);
        let flawed = finding(0.9, 1.0).bar(Bar::AtLeast(0.6)).flaw(Some("limit 1 …".to_owned()));
        assert_eq!(flawed.outcome(), Outcome::DoesNotCount);
    }

    #[test]
    fn a_figure_is_a_row_and_a_line() {
        let finding = finding(0.45, 0.55).bar(Bar::AtLeast(0.5));
        let text = table(std::slice::from_ref(&finding));
        let row = "drain     123,457  jobs/s  0.500 (0.450…0.550)  the floor  ≥ 0.5  ok";
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1..], [row, "", "drain, turn by turn: 0.550 0.500 0.450"]);
        let line: serde_json::Value = serde_json::from_str(&finding.json()).expect("JSON");
        assert_eq!(
            (&line["scenario"], &line["bar"], &line["better"]),
            (&json!("drain"), &json!(0.5), &json!("more"))
        );
        assert_eq!([0.1234, 999.6, -1234.0].map(number), ["0.123", "1,000", "-1,234"]);
    }
}
