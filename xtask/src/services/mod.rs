//! Servers that tests talk to: private ones, on free ports of this machine, in a folder that goes with them.
//!
//! They never outlive us, however we end: a shell of their own holds one end of a pipe and ends them as soon as the
//! other end, ours, is closed. Nothing here touches a server that runs on the machine already.

mod folder;
mod mariadb;
mod postgres;

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::need::{self, Need};
use crate::process;
use folder::Folder;
pub use mariadb::find_mariadb;
pub use postgres::{find_pgbouncer, find_postgres};

/// What has to be on the machine first.
pub const NEEDS: &[&Need] = &[&need::POSTGRES, &need::PGBOUNCER, &need::OPENSSL, &need::MARIADB];

/// What a server may take to answer for the first time.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// As whom tests talk to servers.
const USER: &str = "tidegate";
/// By what servers prove who they are, inside the folder.
const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "server.key";

/// How to start servers, how to see that they are up, and how others find them.
struct Plan {
    script: String,
    stop: String,
    probes: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

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
        let [postgres, bouncer, mariadb] = free_ports()?;
        let plans = [postgres::plan(&folder, postgres, bouncer)?, mariadb::plan(&folder, mariadb)?];
        let lines = |of: fn(&Plan) -> &str| plans.iter().map(of).collect::<Vec<_>>().join("\n");
        let watchdog = folder.watch(&lines(|plan| &plan.script), &lines(|plan| &plan.stop))?;
        let environment = plans.iter().flat_map(|plan| plan.environment.clone()).collect();
        // From here on dropping it ends whatever has started.
        let mut services = Services { environment, watchdog };
        for probe in plans.iter().flat_map(|plan| &plan.probes) {
            services.wait_for(probe).with_context(|| folder.last_words())?;
        }
        let took = begin.elapsed().as_secs_f64();
        eprintln!("── services: PostgreSQL, pgbouncer and MariaDB are up, {took:.1} s");
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

fn path() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect::<Vec<_>>().into_iter()
}

/// Ports that nobody uses now. They are held until all are known, so that they differ.
fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut listeners = Vec::new();
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        *port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(ports)
}

/// Other users of this machine can reach the port too.
fn password() -> Result<String> {
    let mut bytes = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_and_so_do_passwords() {
        let [one, other] = free_ports().expect("there are free ports");
        assert_ne!(one, other);
        assert_ne!(password().expect("random"), password().expect("random"));
    }
}
