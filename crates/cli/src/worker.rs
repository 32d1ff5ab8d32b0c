//! `tidegate worker`: carries out what a server hands out, on this machine.

use crate::args;
use crate::failure::{Exit, Failure};
use crate::out::say;
use crate::run::{Interrupts, guardian};
use crate::server::{connect, failed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate_core::ids::Name;
use tidegate_remote::{Hired, hire};
use tidegate_worker::{Settings, WorkerError};

/// How long a server may take to hear that the worker has left.
const LAST_WORDS: Duration = Duration::from_secs(2);

pub async fn worker(options: &args::Worker, quiet: bool) -> Result<Exit, Failure> {
    let mut interrupts = Interrupts::listen()?;
    let client = connect(&options.server)?;
    let settings = settings(options)?;
    let name = settings.name.clone();
    let Hired { control, joined, mut left, said } = hire(client, settings);
    tokio::select! {
        joined = joined => match joined {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(failed(&error)),
            Err(_) => return Err(gone()),
        },
        () = interrupts.next() => return Ok(Exit::Interrupted),
    }
    if !quiet {
        say(format!("worker {name} works for {}", options.server.url()));
    }
    let ended = tokio::select! {
        ended = &mut left => ended,
        () = interrupts.next() => {
            if !quiet {
                say("handing back what runs; interrupt again not to wait");
            }
            control.shut_down();
            tokio::select! {
                ended = &mut left => ended,
                () = interrupts.next() => return Ok(Exit::Interrupted),
            }
        }
    };
    let _ = tokio::time::timeout(LAST_WORDS, said).await;
    match ended {
        Ok(Ok(())) => Ok(Exit::Success),
        Ok(Err(WorkerError::Refused(refusal))) => {
            Err(Failure::new("refused", refusal.to_string()).exit(Exit::Refused))
        }
        Ok(Err(WorkerError::EngineGone)) | Err(_) => Err(gone()),
    }
}

fn settings(options: &args::Worker) -> Result<Settings, Failure> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let incarnation = u64::try_from(since.as_micros()).unwrap_or(1);
    let name = match &options.name {
        Some(name) => Name::new(name),
        None => Name::from(format!("{}-{}", host(), std::process::id())),
    };
    let mut settings = Settings::new(name, incarnation, Some(guardian()?));
    settings.slots.io = options.io_slots;
    if let Some(slots) = options.slots {
        settings.slots.process = slots;
    }
    if !options.queue.is_empty() {
        settings.queues = options.queue.iter().map(Name::new).collect();
    }
    settings.labels = options.label.iter().map(Name::new).collect();
    settings.asks_link_local = options.allow_link_local;
    Ok(settings)
}

/// What this machine calls itself.
fn host() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "worker".to_owned() } else { name }
}

fn gone() -> Failure {
    Failure::new("engine", "the worker ended by itself")
}
