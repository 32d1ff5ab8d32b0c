//! `cargo xtask test`: every check and every test, in order, stopping at the first failure.
//!
//! The order is cheapest first. A step is a row of [`STEPS`]; adding one is adding a line.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::need::{self, C_COMPILER, CARGO_DENY, CLIPPY, NEXTEST, Need, RUSTFMT};
use crate::process;
use crate::services::{self, Services};

#[derive(Args)]
pub struct Options {
    /// Run this one step instead of all of them.
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(STEPS.iter().map(|step| step.name)))]
    only: Option<String>,
}

struct Step {
    name: &'static str,
    command: &'static str,
    needs: &'static [&'static Need],
    fetch: Option<Fetch>,
    /// It talks to servers of our own, which are up while it runs.
    uses_services: bool,
}

/// Something a step has to fetch first. Being offline is no fault of the code under test: when the fetch
/// fails for that reason, the step is reported as not checked, and the run goes on.
struct Fetch {
    command: &'static str,
    /// What the command says when it could not reach its source; any other failure is a real one.
    offline: &'static str,
    /// What we say then.
    report: &'static str,
}

const ADVISORY_DATABASE: Fetch = Fetch {
    command: "cargo deny fetch db",
    offline: "failed to fetch advisory database",
    report: "advisory database unreachable",
};

#[rustfmt::skip] // One step a line.
const STEPS: &[Step] = &[
    step("fmt", "cargo fmt --all --check", &[&RUSTFMT]),
    step("clippy", "cargo clippy --workspace --all-targets --all-features -- -D warnings", &[&CLIPPY, &C_COMPILER]),
    step("deny", "cargo deny check bans licenses sources", &[&CARGO_DENY]),
    step("advisories", "cargo deny check advisories", &[&CARGO_DENY]).fetching(ADVISORY_DATABASE),
    step("nextest", "cargo nextest run --workspace --all-features", &[&NEXTEST, &C_COMPILER]).with_services(),
    step("doctest", "cargo test --doc --workspace", &[&C_COMPILER]),
    step("quickstart", "cargo run --release -- run examples/quickstart.yaml", &[&C_COMPILER]),
    step("sim", "cargo xtask sim --seeds 10000", &[&C_COMPILER]),
    step("canaries", "cargo xtask sim --canary all", &[&C_COMPILER]),
    step("chaos", "cargo xtask chaos --times 12", &[&C_COMPILER]),
];

const fn step(name: &'static str, command: &'static str, needs: &'static [&'static Need]) -> Step {
    Step { name, command, needs, fetch: None, uses_services: false }
}

/// How a step ended, when it did not fail.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Passed,
    NotChecked(&'static str),
}

pub fn run(options: &Options) -> Result<()> {
    let chosen: Vec<&Step> =
        STEPS.iter().filter(|step| options.only.as_deref().is_none_or(|only| only == step.name)).collect();
    need::meet(chosen.iter().flat_map(|step| step.needs()))?;

    let begin = Instant::now();
    let mut endings = Vec::new();
    for (index, step) in chosen.iter().enumerate() {
        eprintln!("\n── {}/{} {}: {}", index + 1, chosen.len(), step.name, step.command);
        let begin = Instant::now();
        let ending = step.run().with_context(|| format!("step {} after {}", step.name, seconds(begin)))?;
        eprintln!("── {}: {}, {}", step.name, ending.describe(), seconds(begin));
        endings.push((step.name, ending));
    }
    eprintln!("\n{}, {}", verdict(&endings), seconds(begin));
    Ok(())
}

impl Step {
    const fn fetching(self, fetch: Fetch) -> Self {
        Self { fetch: Some(fetch), ..self }
    }

    fn needs(&self) -> impl Iterator<Item = &'static Need> {
        let of_services = if self.uses_services { services::NEEDS } else { &[] };
        self.needs.iter().chain(of_services).copied()
    }

    const fn with_services(self) -> Self {
        Self { uses_services: true, ..self }
    }

    fn run(&self) -> Result<Ending> {
        if let Some(fetch) = &self.fetch
            && let Err(said) = process::attempt(fetch.command)?
        {
            if said.contains(fetch.offline) {
                return Ok(Ending::NotChecked(fetch.report));
            }
            bail!("`{}` failed", fetch.command);
        }
        let services = if self.uses_services { Some(Services::start()?) } else { None };
        process::run_among(self.command, services.as_ref().map_or(&[], Services::environment))?;
        Ok(Ending::Passed)
    }
}

impl Ending {
    fn describe(&self) -> String {
        match self {
            Self::Passed => "passed".to_owned(),
            Self::NotChecked(report) => format!("NOT CHECKED ({report})"),
        }
    }
}

/// The last line of a run in which nothing failed. What was not checked is named, never counted as passed.
fn verdict(endings: &[(&str, Ending)]) -> String {
    let unchecked: Vec<String> = endings
        .iter()
        .filter(|(_, ending)| *ending != Ending::Passed)
        .map(|(name, ending)| format!("{name} {}", ending.describe()))
        .collect();
    let passed = endings.len() - unchecked.len();
    match unchecked.as_slice() {
        [] => format!("PASSED: {passed} of {} steps", endings.len()),
        named => format!("PASSED: {passed} of {} steps; {}", endings.len(), named.join(", ")),
    }
}

fn seconds(begin: Instant) -> String {
    format!("{:.1} s", begin.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFLINE: Fetch =
        Fetch { command: "cargo no-such-subcommand", offline: "no such command", report: "nobody there" };

    #[test]
    fn names_of_steps_are_unique() {
        for (index, step) in STEPS.iter().enumerate() {
            assert!(STEPS[..index].iter().all(|earlier| earlier.name != step.name), "{} twice", step.name);
        }
    }

    #[test]
    fn a_step_passes_or_fails_with_its_command() {
        assert_eq!(step("good", "cargo --version", &[]).run().expect("succeeds"), Ending::Passed);
        step("bad", "cargo no-such-subcommand", &[]).run().expect_err("fails");
    }

    #[test]
    fn only_an_unreachable_source_excuses_a_step() {
        let excused = step("offline", "cargo no-such-subcommand", &[]).fetching(OFFLINE);
        assert_eq!(excused.run().expect("excused"), Ending::NotChecked("nobody there"));

        let broken = Fetch { offline: "some other reason", ..OFFLINE };
        step("broken", "cargo --version", &[]).fetching(broken).run().expect_err("a real failure");

        let online = Fetch { command: "cargo --version", ..OFFLINE };
        step("bad", "cargo no-such-subcommand", &[]).fetching(online).run().expect_err("a real finding");
    }

    #[test]
    fn the_verdict_names_what_was_not_checked() {
        assert_eq!(verdict(&[("fmt", Ending::Passed), ("deny", Ending::Passed)]), "PASSED: 2 of 2 steps");
        assert_eq!(
            verdict(&[("fmt", Ending::Passed), ("deny", Ending::NotChecked("nobody there"))]),
            "PASSED: 1 of 2 steps; deny NOT CHECKED (nobody there)"
        );
    }
}
