//! `bench [SCENARIO…]`: measures, and prints figures next to their bars.

use anyhow::{Context, Result};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use tidegate_bench::report::{Outcome, table};
use tidegate_bench::scenarios::{SCENARIOS, Scale, run};
use tidegate_bench::scenarios::{memory, million};
use tidegate_bench::subject::GUARDIAN;
use tidegate_sim::bench::figures::drive;
use tidegate_sim::bench::situation::Situation;

/// As in the program that ships.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(name = "bench", about = "Measures Tidegate, and sets every figure next to its bar")]
struct Arguments {
    /// What to measure; everything unless told otherwise.
    scenarios: Vec<String>,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
    /// Smaller sizes and fewer turns: to see whether it works, not how fast.
    #[arg(long)]
    quick: bool,
    /// What there is to measure.
    #[arg(long)]
    list: bool,
    /// The program that takes graphile_worker through `drain-pg`.
    #[arg(long, value_name = "PROGRAM")]
    graphile: Option<PathBuf>,
    /// Only drives the core with so many tasks waiting, for a profiler: `--drive one-limit 1000 2000`.
    #[arg(long, num_args = 3, value_names = ["SITUATION", "WAITING", "BATCHES"])]
    drive: Vec<String>,
}

fn main() -> ExitCode {
    // This program starts itself, as the guardian of processes and as the place where something is measured apart.
    let mut words = std::env::args().skip(1);
    let measured = match (words.next().as_deref(), words.next()) {
        (Some(GUARDIAN), _) => return tidegate_worker::guardian::main(),
        (Some(million::APART), Some(situation)) => million::measure_here(&situation),
        (Some(memory::ALONE), Some(items)) => memory::measure_here(&items),
        _ => measure(&Arguments::parse()),
    };
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &Arguments) -> Result<()> {
    if arguments.list {
        SCENARIOS.iter().for_each(|scenario| println!("{:<16} {}", scenario.name, scenario.about));
        return Ok(());
    }
    if let [situation, waiting, batches] = &arguments.drive[..] {
        let situation = Situation::from_word(situation).context("there is no such situation")?;
        drive(situation, waiting.parse()?, batches.parse()?);
        return Ok(());
    }
    if cfg!(debug_assertions) {
        anyhow::bail!("a benchmark of a debug build says nothing: use `cargo xtask bench`");
    }
    let all = || SCENARIOS.iter().map(|scenario| scenario.name.to_owned()).collect();
    let chosen: Vec<String> =
        if arguments.scenarios.is_empty() { all() } else { arguments.scenarios.clone() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let scale = Scale { quick: arguments.quick, graphile: arguments.graphile.clone() };
    let mut findings = Vec::new();
    for name in chosen {
        eprintln!("measuring {name} …");
        let found = runtime.block_on(run(&name, &scale))?;
        if arguments.json {
            // At once: who stops this early keeps what was measured.
            found.iter().for_each(|finding| println!("{}", finding.json()));
        }
        findings.extend(found);
    }
    if !arguments.json {
        print!("{}", table(&findings));
    }
    // A figure that falls short is a figure; a promise that was broken is an error.
    let broken = findings.iter().filter(|finding| finding.outcome() == Outcome::DoesNotCount).count();
    anyhow::ensure!(broken == 0, "{broken} of {} figures do not count", findings.len());
    Ok(())
}
