//! The guardian: a small child of the worker that starts processes and sees to it that they end.
//!
//! A worker can be killed or stopped at any moment, and then it can end nothing. So it does not start
//! processes itself: its guardian does, each as the leader of a group, and ends a group
//! - with SIGKILL when the pipe to the worker closes, because the worker is gone;
//! - with SIGTERM, and SIGKILL after the grace, when the deadline last told has passed, because the worker
//!   may be stopped, or when the worker says so;
//! - with SIGKILL when its leader has ended and left others behind.
//!
//! It is the worker's own binary under a hidden subcommand that calls [`main`]. It has a session of its own, so
//! that Ctrl-C in a terminal reaches the worker alone, and it outlives SIGTERM, so that stopping a whole
//! service at once does not leave the worker without it.
//!
//! It decides nothing about leases and keeps no output. A process that leaves its group on purpose (`setsid`)
//! escapes it.

mod environment;
mod group;
pub(crate) mod handle;
mod lines;
mod output;
mod process;
mod refusal;
mod serve;
pub(crate) mod wire;

use std::path::PathBuf;
use std::process::ExitCode;

/// How a worker starts its guardian: the same binary, and the arguments that make it call [`main`].
#[derive(Clone, Debug)]
pub struct GuardianCommand {
    pub program: PathBuf,
    pub args: Vec<String>,
}

/// Everything the hidden subcommand does. Returns when the worker is gone and so is all it had started.
pub fn main() -> ExitCode {
    // Fails only for one that leads its session already, which is what this is for.
    let _ = rustix::process::setsid();
    let served = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|runtime| runtime.block_on(serve::serve()));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tidegate guardian: {error}");
            ExitCode::FAILURE
        }
    }
}
