//! The guardian: a small child of the worker that starts processes and sees to it that they end.
//!
//! A worker can be killed or stopped at any moment, and then it can end nothing. So it does not start
//! processes itself: its guardian does, and ends all that belongs to an attempt
//! - with SIGKILL when the pipe to the worker closes, because the worker is gone;
//! - with SIGTERM, and SIGKILL after the grace, when the deadline last told has passed, because the worker
//!   may be stopped, or when the worker says so;
//! - with SIGKILL when the attempt's leader, the process that was asked for, has ended and left others behind.
//!
//! It is the worker's own binary under a hidden subcommand that calls [`main`]. It has a session of its own, so
//! that Ctrl-C in a terminal reaches the worker alone, and it outlives SIGTERM, so that stopping a whole
//! service at once does not leave the worker without it. It decides nothing about leases and keeps no output.
//!
//! # Who is ended, and when
//!
//! Whatever group or session a process moves to, it descends from the guardian, which gets every orphan as its
//! child. When the guardian ends it kills until it has no child left, so nobody escapes by forking. Before that,
//! a process ends with its attempt if one of these holds:
//! - its parents lead up to the attempt's leader, or to an orphan of the attempt;
//! - it is in the leader's process group;
//! - it was started with the attempt's mark in its environment, which children inherit.
//!
//! An orphan that left the group and cleared or wrote over its environment is not known to belong to any attempt.
//! It ends with the last of the attempts that were running when it was first seen, that is when some attempt
//! ended or was stopped.
//!
//! Not covered:
//! - A process of another user (a setuid program), which may not be sent signals, and one that hangs in the
//!   kernel: the guardian waits a few seconds for them, and no longer.
//! - Work that somebody else does when asked to, such as `systemd-run`, `at`, or a container's daemon.
//! - A guardian that is itself killed with SIGKILL. Its worker then kills the groups that it knows of and whoever
//!   bears the guardian's mark; if the worker is killed as well, nobody does.
//!
//! Needs `/proc`, and Linux 5.3 to reach processes that are not the guardian's own children before their parents
//! have ended. Looks into `/proc` only when an attempt ends or is told to.

mod environment;
mod family;
pub(crate) mod handle;
mod lines;
mod mark;
mod output;
mod proc;
mod process;
mod refusal;
mod serve;
mod tree;
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
