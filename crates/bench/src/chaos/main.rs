//! `chaos`: kills applications under load until as many kills are done as asked for, and judges what became of them.

use clap::Parser;
use std::process::ExitCode;
use tidegate_bench::chaos::application::{self, APPLICATION};
use tidegate_bench::chaos::campaign;
use tidegate_bench::subject::GUARDIAN;

#[derive(Parser)]
#[command(name = "chaos", about = "Kills applications under load, and judges what became of their jobs")]
struct Arguments {
    /// Kills of a process that is alone; what is done to a cluster is in proportion.
    #[arg(long, default_value_t = 200)]
    times: u32,
    /// Of those that are alone, how many side by side.
    #[arg(long, default_value_t = 4)]
    lanes: u32,
    /// Decides what happens when.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    // This program starts itself, as the application that is killed and as its guardian of processes.
    let mut words = std::env::args().skip(1);
    let ended = match words.next().as_deref() {
        Some(GUARDIAN) => return tidegate_worker::guardian::main(),
        Some(APPLICATION) => application::run(words),
        _ => play(&Arguments::parse()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn play(arguments: &Arguments) -> anyhow::Result<()> {
    campaign(arguments.times, arguments.lanes, arguments.seed)
}
