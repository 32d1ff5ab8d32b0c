//! Runs attempts: processes under a guardian; functions, requests and statements inside this process; chains of these.
//!
//! - [`worker`]: a worker, from joining the engine to leaving it; [`mod@link`]: what the two say to each other
//! - [`guardian`]: the child process that starts processes and ends them when the worker cannot
//! - [`functions`]: functions of the embedding program, called by name; [`ctx`]: what they know about their attempt;
//!   [`order`]: how an order names one
//! - `http`: requests to servers; `sql`: statements for databases; `chain`: several of these as one attempt
//! - [`logs`]: output line by line; [`output`]: how much of it the result keeps
//! - [`clock`]: the clock on which deadlines are told
//!
//! When an attempt starts, how long it may run and what is reported is decided in `tidegate_core::attempts`;
//! this crate only carries it out.

mod chain;
pub mod clock;
pub mod ctx;
pub mod functions;
pub mod guardian;
mod http;
pub mod link;
pub mod logs;
pub mod order;
mod outcome;
pub mod output;
mod processes;
mod program;
mod runner;
mod secrets;
mod sql;
pub mod tls;
pub mod worker;

pub use ctx::Ctx;
pub use functions::Functions;
pub use guardian::GuardianCommand;
pub use link::{Join, Link, Slots, ToEngine, ToWorker};
pub use logs::{LogLine, LogSink, Stream};
pub use worker::{Control, IO_SLOTS, Settings, Worker, WorkerError, cores};
