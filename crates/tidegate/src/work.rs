//! A worker of this process: takes what it has slots for, until it is told to go.

use crate::error::Error;
use crate::forward::{Hired, hire};
use crate::tidegate::Tidegate;
use tidegate_core::ids::Name;
use tidegate_worker::{Control, GuardianCommand, LogSink, Settings, WorkerError, cores};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Slots that are about to be offered. See [`Tidegate::work`].
#[must_use = "nobody works until this is started"]
pub struct Work {
    tide: Tidegate,
    settings: Settings,
}

impl Work {
    pub(crate) fn new(tide: &Tidegate, slots: u32) -> Work {
        // The half of the id that holds the time: later starts have higher ones.
        let incarnation = (uuid::Uuid::now_v7().as_u128() >> 64) as u64;
        let mut settings = Settings::new(tide.next_worker(), incarnation, None);
        settings.slots.io = slots;
        Work { tide: tide.clone(), settings }
    }

    /// The name under which explanations show this worker. Who starts to work under a name takes the place of who did
    /// before, which ends with an error: a program that is started anew goes on at once with what it had.
    pub fn name(mut self, name: impl Into<Name>) -> Work {
        self.settings.name = name.into();
        self
    }

    /// Works for these queues instead of the default one.
    pub fn queues(mut self, queues: impl IntoIterator<Item = impl Into<Name>>) -> Work {
        self.settings.queues = queues.into_iter().map(Into::into).collect();
        self
    }

    /// What this worker has that others may lack: actions can ask for it.
    pub fn labels(mut self, labels: impl IntoIterator<Item = impl Into<Name>>) -> Work {
        self.settings.labels = labels.into_iter().map(Into::into).collect();
        self
    }

    /// Also runs processes, for flows with `run` steps: one a core, unless [`Work::process_slots`] says otherwise. The
    /// command must start a program that calls [`guardian::main`](crate::guardian::main) first thing.
    pub fn processes(mut self, guardian: GuardianCommand) -> Work {
        self.settings.slots.process = cores();
        self.settings.guardian = Some(guardian);
        self
    }

    /// So many processes at once.
    pub fn process_slots(mut self, slots: u32) -> Work {
        self.settings.slots.process = slots;
        self
    }

    /// Also sends requests of `http` steps to link-local addresses. Many machines hand out their own credentials there,
    /// so they are refused unless this is said.
    pub fn ask_link_local(mut self) -> Work {
        self.settings.asks_link_local = true;
        self
    }

    /// Where what processes write goes, line by line.
    pub fn logs(mut self, sink: LogSink) -> Work {
        self.settings.logs = sink;
        self
    }

    /// Starts to work in the background. Functions that are registered later are not known to this worker.
    pub async fn start(mut self) -> Result<Working, Error> {
        self.tide.declare().await?;
        self.settings.functions = self.tide.functions();
        let engine = self.tide.engine().clone();
        let Hired { control, joined, left } = hire(&engine, self.settings);
        let changes = self.tide.changes();
        let working = Working { tide: self.tide, control, changes, worker: Some(left) };
        // What is submitted before there is a worker would wait for it, and say so. Without a store there is none.
        let mut outage = engine.outage();
        tokio::select! {
            joined = joined => joined.map_err(|_| Error::Closed)??,
            Ok(_) = outage.wait_for(Option::is_some) => {}
        }
        Ok(working)
    }

    /// Works until `shutdown` is ready. Then it takes nothing new, stops what runs, hands it back unharmed, and leaves:
    /// all within the grace of 5 seconds and one more.
    pub async fn run_until(self, shutdown: impl Future) -> Result<(), Error> {
        let mut working = self.start().await?;
        let failed = tokio::select! {
            _ = shutdown => None,
            error = working.failed() => Some(error),
        };
        let stopped = working.stop().await;
        failed.map_or(stopped, Err)
    }
}

/// A worker that works in the background. Dropping it stops the work as [`Working::stop`] does, without waiting.
pub struct Working {
    tide: Tidegate,
    control: Control,
    changes: watch::Receiver<u64>,
    /// Until it was waited for.
    worker: Option<JoinHandle<Result<(), WorkerError>>>,
}

impl Working {
    /// Takes nothing new, stops what runs, hands it back unharmed, and leaves: within the grace of 5 seconds and one
    /// more, whatever the store does.
    pub async fn stop(&mut self) -> Result<(), Error> {
        self.control.shut_down();
        self.ended().await
    }

    /// Takes nothing new, lets what runs end, and leaves.
    pub async fn drain(&mut self) -> Result<(), Error> {
        self.control.drain();
        self.ended().await
    }

    async fn ended(&mut self) -> Result<(), Error> {
        let Some(worker) = &mut self.worker else { return Ok(()) };
        let ended = worker.await;
        self.worker = None;
        match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(WorkerError::Refused(refusal))) => Err(refusal.into()),
            // The engine went away, or the worker panicked: either way nothing of it runs any more.
            Ok(Err(WorkerError::EngineGone)) | Err(_) => Err(Error::Closed),
        }
    }

    /// Meanwhile tells the engine whatever this program defines anew.
    async fn failed(&mut self) -> Error {
        let (tide, mut changes) = (self.tide.clone(), self.changes.clone());
        loop {
            tokio::select! {
                ended = self.ended() => return ended.err().unwrap_or(Error::Closed),
                Ok(()) = changes.changed() => match tide.declare().await {
                    Err(error) if !error.may_pass() => return error,
                    _ => {}
                },
            }
        }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.control.shut_down();
    }
}
