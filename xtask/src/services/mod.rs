//! Servers that tests talk to: private ones, on free ports of this machine, in a folder that goes with them.
//!
//! They never outlive us, however we end: a shell of their own holds one end of a pipe and ends them as soon as the
//! other end, ours, is closed. Nothing here touches a server that runs on the machine already.

mod folder;
mod postgres;

use std::ffi::OsString;
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::need::{self, Need};
use crate::process;
use folder::Folder;
pub use postgres::{find_pgbouncer, find_postgres};

/// What has to be on the machine first.
pub const NEEDS: &[&Need] = &[&need::POSTGRES, &need::PGBOUNCER, &need::OPENSSL];

/// What a server may take to answer for the first time.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

#[derive(Args)]
pub struct Options {
    /// What to run while the servers are up.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs a command while the servers are up, and fails when it fails.
pub fn run(options: &Options) -> Result<()> {
    need::meet(NEEDS.iter().copied())?;
    let services = Services::start()?;
    process::run_words(&options.command, services.environment())
}

/// Servers that are up until this is dropped.
pub struct Services {
    environment: Vec<(&'static str, String)>,
    watchdog: Child,
}

impl Services {
    pub fn start() -> Result<Self> {
        let begin = Instant::now();
        let folder = Folder::make()?;
        let plan = postgres::plan(&folder)?;
        let watchdog = folder.watch(&plan.script, &plan.stop)?;
        // From here on dropping it ends whatever has started.
        let mut services = Services { environment: plan.environment, watchdog };
        for probe in &plan.probes {
            services.wait_for(probe).with_context(|| folder.last_words())?;
        }
        eprintln!("── services: PostgreSQL and pgbouncer are up, {:.1} s", begin.elapsed().as_secs_f64());
        Ok(services)
    }

    /// Where the servers are, for those who look for them.
    pub fn environment(&self) -> &[(&'static str, String)] {
        &self.environment
    }

    fn wait_for(&mut self, probe: &str) -> Result<()> {
        let begin = Instant::now();
        while !process::answers(probe) {
            if let Some(status) = self.watchdog.try_wait()? {
                bail!("a server that tests need ended at once ({status})");
            }
            if begin.elapsed() > PATIENCE {
                bail!("a server that tests need does not answer `{probe}`");
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        // It has done what it can; there is nobody to tell if that was not enough.
        let _ = self.watchdog.wait();
    }
}
