//! Chores of this repository: `cargo xtask <chore>`, one module a chore.
//!
//! A chore drives other programs and judges their outcome; rules about flows, limits and runs do not
//! belong here. Everything is said on stderr, in the order in which it happens, because that is where
//! cargo and its test runner speak; the last line is always the verdict. Only figures that were asked for go to
//! stdout.

mod bench;
mod chaos;
mod coverage;
mod fuzz;
mod lcov;
mod need;
mod process;
mod services;
mod sim;
mod test;

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the Tidegate repository")]
enum Chore {
    /// Install what the tests need, then run every check and every test.
    Test(test::Options),
    /// Measure how many lines of crates/core the tests reach.
    Coverage(coverage::Options),
    /// Play simulated worlds in which everything goes wrong, and judge what happened.
    Sim(sim::Sim),
    /// Run a command with the servers up that tests talk to: `cargo xtask services -- cargo nextest run NAME`.
    Services(services::Options),
    /// Measure, and set every figure next to its bar.
    Bench(bench::Options),
    /// Kill programs under load, over and over, and judge what became of their jobs.
    Chaos(chaos::Options),
    /// Feed the language with what nobody would write.
    Fuzz(fuzz::Options),
}

fn main() -> ExitCode {
    let outcome = match Chore::parse() {
        Chore::Test(options) => test::run(&options),
        Chore::Coverage(options) => coverage::run(&options),
        Chore::Sim(options) => sim::run(&options),
        Chore::Services(options) => services::run(&options),
        Chore::Bench(options) => bench::run(&options),
        Chore::Chaos(options) => chaos::run(&options),
        Chore::Fuzz(options) => fuzz::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("FAILED: {error:#}");
            ExitCode::FAILURE
        }
    }
}
