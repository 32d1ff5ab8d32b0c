//! Measures the core alone: `cargo xtask bench core`, or with `--release` as
//! `cargo run --release -p tidegate-sim --example bench_core -- [--json] [situation]`.
//!
//! With a situation, a number of waiting tasks and a number of batches it only drives the core, for a profiler:
//! `… --example bench_core -- one-limit 1000 2000`.
//!
//! Every situation is measured in a process of its own, because memory that was freed hides memory that is needed.

use std::process::{Command, ExitCode, Stdio};
use tidegate_sim::bench::figures::{Figures, drive, measure};
use tidegate_sim::bench::report::{findings, table};
use tidegate_sim::bench::situation::Situation;

/// Tells a process that it is to measure, and to print figures for the one that started it.
const CHILD: &str = "--measure";

fn main() -> ExitCode {
    if cfg!(debug_assertions) {
        eprintln!("a benchmark of a debug build says nothing: use `cargo xtask bench core`");
        return ExitCode::FAILURE;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let chosen: Vec<Situation> = words.iter().filter_map(|word| Situation::from_word(word)).collect();
    if let ([situation], true) = (&chosen[..], words.iter().any(|word| word == CHILD)) {
        measure(*situation).iter().for_each(|figures| println!("{}", figures.to_line()));
        return ExitCode::SUCCESS;
    }
    let numbers: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    if let ([situation], [waiting, batches]) = (&chosen[..], &numbers[..]) {
        drive(*situation, *waiting, *batches);
        return ExitCode::SUCCESS;
    }
    let chosen = if chosen.is_empty() { Situation::ALL.to_vec() } else { chosen };
    let mut results = Vec::new();
    for situation in chosen {
        eprintln!("measuring: {} …", situation.name());
        match measured_apart(situation) {
            Some(figures) => results.push((situation, figures)),
            None => {
                eprintln!("{} could not be measured", situation.name());
                return ExitCode::FAILURE;
            }
        }
    }
    if words.iter().any(|word| word == "--json") {
        let all = results.iter().flat_map(|(situation, figures)| findings(*situation, figures));
        all.for_each(|finding| println!("{}", finding.json()));
    } else {
        print!("{}", table(&results));
    }
    ExitCode::SUCCESS
}

fn measured_apart(situation: Situation) -> Option<Vec<Figures>> {
    let program = std::env::current_exe().ok()?;
    let child =
        Command::new(program).args([CHILD, situation.word()]).stderr(Stdio::inherit()).output().ok()?;
    let text = String::from_utf8(child.stdout).ok().filter(|_| child.status.success())?;
    text.lines().map(Figures::from_line).collect()
}
