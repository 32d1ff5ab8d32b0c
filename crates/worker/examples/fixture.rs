//! A worker as a process of its own, for tests that kill or stop it.
//!
//! `fixture guardian` is its guardian. `fixture worker MILLISECONDS ORDER` runs one order under a lease of that
//! length, renewing it for as long as it can.

#[path = "../tests/support/engine.rs"]
#[allow(dead_code)]
mod engine;

use std::process::ExitCode;
use tidegate_core::protocol::Payload;
use tidegate_core::time::Span;
use tidegate_worker::{GuardianCommand, Settings, Worker, guardian};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["guardian"] => guardian::main(),
        ["worker", lease, order] => match lease.parse() {
            Ok(lease) => work(lease, Payload::new(order)),
            Err(error) => panic!("{lease} is no number of milliseconds: {error}"),
        },
        _ => panic!("usage: fixture guardian | fixture worker MILLISECONDS ORDER"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn work(lease: u64, order: Payload) -> ExitCode {
    let Ok(program) = std::env::current_exe() else { panic!("this program has no path") };
    let guardian = Some(GuardianCommand { program, args: vec!["guardian".into()] });
    let (mut engine, link) = engine::Engine::new();
    let worker = tokio::spawn(Worker::new(Settings::new("fixture", 1, guardian)).run(link));
    engine.lease = Span::millis(lease);
    let lease = engine.hand_out(order);
    println!("{:?}", engine.outcome(lease).await);
    drop(worker);
    ExitCode::SUCCESS
}
