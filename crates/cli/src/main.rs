//! The command line. Data goes to stdout, everything else to stderr; exit codes are part of the interface.
//!
//! - [`args`]: what can be typed; [`failure`]: what can go wrong, and with which exit code
//! - [`run`], [`runs`], [`serve`], [`operate`], [`token`], [`check`], [`plan`], [`why`], [`prune`], [`backup`]: one module a command
//! - [`diary`]: what happened and what was written, kept beside the store
//! - [`files`]: reading flows; [`line`]: styled text; [`out`]: where it goes; [`time`]: clocks and spans as people read them

mod apply;
mod args;
mod backup;
mod check;
mod diary;
mod failure;
mod files;
mod line;
mod operate;
mod out;
mod plan;
mod prune;
mod run;
mod runs;
mod serve;
mod server;
mod submit;
mod time;
mod token;
mod why;
mod worker;

use args::{Arguments, Command};
use clap::{CommandFactory, Parser};
use failure::{Exit, Failure};
use std::process::ExitCode;

/// What one thread asks for, another gives back: the allocator of glibc spends a quarter of the engine's time on that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // A guardian is started once for every worker, long before there is anything to parse.
    if std::env::args_os().nth(1).is_some_and(|first| first == args::GUARDIAN) {
        return tidegate_worker::guardian::main();
    }
    let arguments = Arguments::parse();
    arguments.color.write_global();
    match carry_out(arguments) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            failure.report();
            failure.exit.into()
        }
    }
}

fn carry_out(arguments: Arguments) -> Result<Exit, Failure> {
    let quiet = arguments.quiet;
    match arguments.command {
        Command::Run(options) => in_runtime(run::run(options, quiet)),
        Command::Dev(options) => in_runtime(serve::dev(&options, quiet)),
        Command::Submit(options) => in_runtime(submit::submit(&options, quiet)),
        Command::Apply(options) => in_runtime(apply::apply(&options, quiet)),
        Command::Queue(options) => in_runtime(operate::queue(&options)),
        Command::Limits(options) => in_runtime(operate::limits(&options, quiet)),
        Command::Actions(options) => in_runtime(operate::actions(&options)),
        Command::Audit(options) => in_runtime(operate::audit(&options)),
        Command::Token(options) => in_runtime(token::token(&options, quiet)),
        Command::Workers(options) => in_runtime(operate::workers(&options)),
        Command::Worker(options) => in_runtime(worker::worker(&options, quiet)),
        Command::Serve(options) => in_runtime(serve::serve(&options, quiet)),
        Command::Check(options) => check::check(&options, quiet),
        Command::Plan(options) => plan::plan(&options),
        Command::Schema => {
            let schema = format!("{:#}", tidegate_flow::schema());
            out::print(schema).map(|()| Exit::Success)
        }
        Command::Completions(options) => {
            let mut script = Vec::new();
            clap_complete::generate(options.shell, &mut Arguments::command(), "tidegate", &mut script);
            out::print(String::from_utf8_lossy(&script).trim_end()).map(|()| Exit::Success)
        }
        Command::Runs(options) => runs::runs(&options, quiet),
        Command::Why(options) => why::why(&options),
        Command::Prune(options) => prune::prune(&options, quiet),
        Command::Backup(options) => backup::backup(&options, quiet),
    }
}

fn in_runtime(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::new("runtime", format!("the runtime did not start: {error}")))?;
    let exit = runtime.block_on(work);
    // Whatever still blocks a thread must not keep the process from ending.
    runtime.shutdown_background();
    exit
}
