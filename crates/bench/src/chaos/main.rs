//! `chaos`: kills applications under load until as many kills are done as asked for, and judges what became of them.

use anyhow::{Result, ensure};
use clap::Parser;
use std::process::ExitCode;
use tidegate_bench::chaos::application::{self, APPLICATION};
use tidegate_bench::chaos::campaign;
use tidegate_bench::subject::GUARDIAN;

#[derive(Parser)]
#[command(name = "chaos", about = "Kills applications under load, and judges what became of their jobs")]
struct Arguments {
    /// How many kills.
    #[arg(long, default_value_t = 200)]
    times: u32,
    /// Applications side by side.
    #[arg(long, default_value_t = 4)]
    lanes: u32,
    /// Decides when to kill.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    // This program starts itself, as the application that is killed and as its guardian of processes.
    let mut words = std::env::args().skip(1);
    let ended = match words.next().as_deref() {
        Some(GUARDIAN) => return tidegate_worker::guardian::main(),
        Some(APPLICATION) => application::run(words),
        _ => kill(&Arguments::parse()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn kill(arguments: &Arguments) -> Result<()> {
    ensure!(!cfg!(debug_assertions), "a debug build is killed before it has begun: use `cargo xtask chaos`");
    let ledger = campaign(arguments.times, arguments.lanes, arguments.seed)?;
    print!("{ledger}");
    ledger.judge()
}
