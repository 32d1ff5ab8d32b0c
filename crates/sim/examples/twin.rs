//! Compares admission with its twin for longer than a test may take:
//! `cargo run --release -p tidegate-sim --example twin -- <first seed> <count>`.

use std::process::ExitCode;
use tidegate_sim::twin;

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let (first, count) = match numbers[..] {
        [first, count] => (first, count),
        _ => (0, 10_000),
    };
    match twin::run(first, count) {
        Ok(stats) => {
            println!("{stats:#?}");
            ExitCode::SUCCESS
        }
        Err(mismatch) => {
            eprintln!("{mismatch}");
            ExitCode::FAILURE
        }
    }
}
