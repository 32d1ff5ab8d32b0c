//! `judge CASE RECORDS…`: says what was broken, and ends with 1 if anything was.

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use tidegate_observer::{Case, Verdict, judge, read};

#[derive(Parser)]
#[command(name = "judge", about = "Judges what jobs wrote down about themselves")]
struct Arguments {
    /// What was promised, as JSON.
    case: PathBuf,
    /// Files of records.
    #[arg(required = true)]
    records: Vec<PathBuf>,
}

/// Violations that are told one by one.
const TOLD: usize = 20;

fn main() -> ExitCode {
    match judged(&Arguments::parse()) {
        Ok(verdict) => tell(&verdict),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn judged(arguments: &Arguments) -> Result<Verdict, std::io::Error> {
    let case: Case = serde_json::from_slice(&std::fs::read(&arguments.case)?)?;
    let mut records = Vec::new();
    for path in &arguments.records {
        records.extend(read(path)?);
    }
    Ok(judge(&case, &records))
}

fn tell(verdict: &Verdict) -> ExitCode {
    for violation in verdict.violations.iter().take(TOLD) {
        eprintln!("{violation}");
    }
    if verdict.violations.len() > TOLD {
        eprintln!("… and {} more", verdict.violations.len() - TOLD);
    }
    let Verdict { held, executions, acknowledged, run_again, ordered, .. } = verdict;
    println!(
        "{} violations; {executions} executions of {acknowledged} acknowledged jobs, {run_again} again, {ordered} in order; held at most {held:?}",
        verdict.violations.len()
    );
    if verdict.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
