//! `million`: the core alone with a million tasks waiting, next to a thousand.
//!
//! Every situation is measured in a process of its own, because memory that was freed hides memory that is needed.

use crate::ratio::Ratio;
use crate::report::{Bar, Finding};
use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};
use tidegate_sim::bench::figures::{Figures, measure};
use tidegate_sim::bench::situation::Situation;

/// The first argument by which this program measures one situation, and tells the one that started it.
pub const APART: &str = "core";

/// Nanoseconds that no command may exceed.
const COMMAND_BOUND: f64 = 1_000_000.0;
/// Bytes that a waiting task may take.
const WEIGHT_BOUND: f64 = 400.0;
/// Cycles a second of one core with the fewest waiting.
const RATE_GOAL: f64 = 500_000.0;

pub fn run() -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for situation in Situation::ALL {
        findings.extend(self::findings(situation, &measured_apart(situation)?));
    }
    Ok(findings)
}

/// What the process that was started with [`APART`] does.
pub fn measure_here(word: &str) -> Result<()> {
    let situation = Situation::from_word(word).with_context(|| format!("there is no situation `{word}`"))?;
    measure(situation).iter().for_each(|figures| println!("{}", figures.to_line()));
    Ok(())
}

fn measured_apart(situation: Situation) -> Result<Vec<Figures>> {
    let program = std::env::current_exe()?;
    let child = Command::new(program).args([APART, situation.word()]).stderr(Stdio::inherit()).output()?;
    ensure!(child.status.success(), "{} could not be measured", situation.name());
    let text = String::from_utf8(child.stdout)?;
    text.lines().map(Figures::from_line).collect::<Option<_>>().context("figures that cannot be read")
}

/// What is asked of each size of a situation.
fn findings(situation: Situation, figures: &[Figures]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, figure) in figures.iter().enumerate() {
        let name = |what: &str| format!("million/{}/{}/{what}", situation.word(), figure.waiting);
        if at == 0 {
            let goal = Ratio::to_bound(&[1e9 / figure.cycle], RATE_GOAL);
            findings.push(Finding::new(name("cycles"), "cycles/s", goal, "500,000").bar(Bar::AtLeast(1.0)));
        } else {
            let bound = situation.bar();
            let extra = Ratio {
                value: figure.extra,
                median: figure.extra / bound,
                low: figure.extra_low / bound,
                high: figure.extra_high / bound,
                all: Vec::new(),
            };
            let against = format!("{bound} ns more than with {}", figures[0].waiting);
            findings.push(Finding::new(name("extra"), "ns/cycle", extra, against).bar(Bar::AtMost(1.0)));
        }
        let longest = Ratio::to_bound(&[figure.longest as f64], COMMAND_BOUND);
        findings.push(Finding::new(name("longest"), "ns", longest, "1 ms").bar(Bar::AtMost(1.0)));
        if let Some(weight) = figure.weight {
            let weight = Ratio::to_bound(&[weight], WEIGHT_BOUND);
            findings.push(Finding::new(name("weight"), "B/waiter", weight, "400 B").bar(Bar::AtMost(1.0)));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Outcome;

    #[test]
    fn what_misses_its_bar_is_short() {
        let full = Figures {
            waiting: 1_000_000,
            cycle: 2_500.0,
            extra: 1_500.0,
            extra_low: 1_400.0,
            extra_high: 1_600.0,
            longest: 20_000,
            nearly_all: 9_000,
            weight: Some(390.0),
        };
        let first = Figures { waiting: 1_000, extra: 0.0, weight: None, ..full };
        let found = findings(Situation::OneLimit, &[first, full]);
        let outcomes: Vec<Outcome> = found.iter().map(Finding::outcome).collect();
        assert_eq!(outcomes, [Outcome::Short, Outcome::Ok, Outcome::Short, Outcome::Ok, Outcome::Ok]);
        assert_eq!(found[2].scenario, "million/one-limit/1000000/extra");
    }
}
