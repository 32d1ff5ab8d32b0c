//! The engine of this process with a worker that runs processes and sends requests, over a SQLite file.

use super::backlog::Backlog;
use crate::args;
use crate::diary::{Note, Recorder};
use crate::failure::Failure;
use std::path::Path;
use std::sync::Arc;
use tidegate::{Error, GuardianCommand, Tidegate, Working};
use tidegate_store::{SqliteReader, SqliteStore};

pub struct Local {
    pub tide: Tidegate,
    working: Working,
    /// For what the picture of a run needs besides what is told.
    pub reader: SqliteReader,
}

impl Local {
    /// Opens (or makes) the store at `path` and starts to work.
    pub async fn open(
        path: &Path,
        options: &args::Run,
        backlog: Arc<Backlog>,
        recorder: Recorder,
    ) -> Result<Local, Failure> {
        let unusable = |error: std::io::Error| {
            Failure::new("store", format!("the store's directory cannot be made: {error}")).at(path.display())
        };
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(unusable)?;
        }
        let program = std::env::current_exe()
            .map_err(|error| Failure::new("binary", format!("this very program cannot be found: {error}")))?;
        let guardian = GuardianCommand { program, args: vec![args::GUARDIAN.to_owned()] };
        let failed = |error| Failure::engine(&error, path);
        let text = path
            .to_str()
            .ok_or_else(|| Failure::new("store", "the store's path is not valid UTF-8").at(path.display()))?;
        let tide = Tidegate::open(&format!("sqlite:{text}")).await.map_err(failed)?;
        let reader = SqliteStore::open_reader(path).map_err(|error| failed(error.into()))?;
        let mut work = tide.work(options.io_slots).processes(guardian);
        work = work.logs(Arc::new(move |line| {
            recorder.note(line.run, Note::from(line.clone()));
            backlog.push(line);
        }));
        if let Some(slots) = options.slots {
            work = work.process_slots(slots);
        }
        if options.allow_link_local {
            work = work.ask_link_local();
        }
        let working = work.start().await.map_err(failed)?;
        Ok(Local { tide, working, reader })
    }

    /// Stops what runs, hands it back, and takes nothing more: within the grace and a second, whatever the store does.
    pub async fn stop_work(&mut self) {
        // An engine that is gone has nothing left to be told.
        let _: Result<(), Error> = self.working.stop().await;
    }

    /// Hands back what runs, and ends.
    pub async fn shut_down(mut self) {
        self.stop_work().await;
        self.tide.close().await;
    }
}
