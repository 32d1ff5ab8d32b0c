//! What can be typed about servers and those who work for them.

use super::{Here, Output, Place, STORE, pair, place, tag};
use clap::Args;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tidegate_worker::IO_SLOTS;

/// Where a server listens unless told otherwise.
const LISTEN: &str = "127.0.0.1:7070";
/// Where it is found then.
const SERVER: &str = "http://127.0.0.1:7070";

/// Which server is asked.
#[derive(Args, Clone, Debug)]
pub struct ServerAddress {
    /// The server; unless told otherwise the one that has ./.tidegate/state.db, or http://127.0.0.1:7070.
    #[arg(long = "server", value_name = "URL", env = "TIDEGATE_SERVER")]
    given: Option<String>,
}

impl ServerAddress {
    pub fn url(&self) -> String {
        let found = || crate::server::found_at(Path::new(STORE));
        self.given.clone().or_else(found).unwrap_or_else(|| SERVER.to_owned())
    }
}

#[derive(Args, Debug)]
pub struct Dev {
    /// Where the files are: all .yaml files in it, each read as `run` would read it.
    #[arg(default_value = ".")]
    pub directory: PathBuf,
    /// Where to listen.
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN)]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub here: Here,
}

#[derive(Args, Debug)]
pub struct Serve {
    /// Where to listen. Anything but this machine needs a token, in TIDEGATE_TOKEN.
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN)]
    pub listen: SocketAddr,
    /// Where the state is kept: a file, or postgres://USER:PASSWORD@HOST/DATABASE.
    #[arg(long = "store", value_name = "PATH|URL", env = "DATABASE_URL", hide_env_values = true,
          default_value = STORE, value_parser = place)]
    pub store: Place,
}

#[derive(Args, Debug)]
pub struct Apply {
    /// Where the files are: all .yaml files in it, read as one set.
    pub directory: PathBuf,
    /// Change nothing, and say what would change.
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub server: ServerAddress,
}

#[derive(Args, Debug)]
pub struct Submit {
    /// Of the flow or action.
    pub name: String,
    /// An input; may be given many times.
    #[arg(short, long = "input", value_name = "NAME=VALUE", value_parser = pair)]
    pub input: Vec<(String, String)>,
    /// A tag of the run; may be given many times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = tag)]
    pub tag: Vec<(String, String)>,
    /// From -100 to 100; higher starts first.
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true,
          value_parser = clap::value_parser!(i8).range(-100..=100))]
    pub priority: i8,
    /// The same content under the same key is accepted once.
    #[arg(long)]
    pub key: Option<String>,
    /// Not before so much time has passed: `90s`, `2h`.
    #[arg(long, value_name = "SPAN", conflicts_with = "at")]
    pub delay: Option<String>,
    /// Not before this time: `2030-01-31T08:00:00Z`.
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// Wait for its end and print its outputs; the exit code tells how it ended.
    #[arg(long)]
    pub wait: bool,
    /// How to print the outputs.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    #[command(flatten)]
    pub server: ServerAddress,
}

#[derive(Args, Debug)]
pub struct Worker {
    #[command(flatten)]
    pub server: ServerAddress,
    /// What it is called: who starts under a name takes the place of who did before. Made up unless told otherwise.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Works for this queue instead of the default one; may be given many times.
    #[arg(long, value_name = "NAME")]
    pub queue: Vec<String>,
    /// What it has that others may lack; may be given many times.
    #[arg(long, value_name = "NAME")]
    pub label: Vec<String>,
    /// Processes at once; one a core unless told otherwise.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub slots: Option<u32>,
    /// Requests of `http` steps and statements of `sql` steps at once.
    #[arg(long, value_name = "N", default_value_t = IO_SLOTS, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub io_slots: u32,
    /// Let requests ask link-local addresses, where machines in a cloud find their own credentials.
    #[arg(long)]
    pub allow_link_local: bool,
}
