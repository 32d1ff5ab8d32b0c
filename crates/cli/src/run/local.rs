//! The engine of this process with a worker that runs processes and sends requests, over a SQLite file that it shares.

use super::backlog::Backlog;
use super::session::{Killed, Session};
use crate::args;
use crate::diary::{Note, Recorder};
use crate::failure::Failure;
use crate::out::say;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{Builder, Document, Error, GuardianCommand, Tidegate, Working};
use tidegate_store::{SqliteReader, SqliteStore};

/// How long it may take to join others before it is said that it does.
const LATE: Duration = Duration::from_secs(5);

pub struct Local {
    pub tide: Tidegate,
    working: Working,
    /// For what the picture of a run needs besides what is told.
    pub reader: SqliteReader,
    /// It ends after everything else has.
    pub session: Session,
    killed: Killed,
}

/// An engine over a file in which others may be at work.
pub fn share(path: &Path) -> Result<Builder, Failure> {
    let place = args::Place::File(args::Store { path: path.to_owned() });
    Ok(Tidegate::builder(&place.address()?).share_file())
}

/// This very program, as the guardian of processes.
pub fn guardian() -> Result<GuardianCommand, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new("binary", format!("this very program cannot be found: {error}")))?;
    Ok(GuardianCommand { program, args: vec![args::GUARDIAN.to_owned()] })
}

/// Whoever leads may be stopped, or of another version: it is waited for, and that is said.
pub async fn say_if_late() -> Infallible {
    tokio::time::sleep(LATE).await;
    say("note: another process leads in this store and does not answer yet");
    std::future::pending().await
}

/// Makes the directory of a store.
pub fn make_directory(path: &Path) -> Result<(), Failure> {
    let unusable = |error: std::io::Error| {
        Failure::new("store", format!("the store's directory cannot be made: {error}")).at(path.display())
    };
    path.parent().map_or(Ok(()), |directory| std::fs::create_dir_all(directory).map_err(unusable))
}

impl Local {
    /// Opens (or makes) the store at `path` and starts to work, as these definitions say.
    pub async fn open(
        path: &Path,
        document: Option<Document>,
        here: &args::Here,
        session: Session,
        (backlog, recorder): (Arc<Backlog>, Recorder),
    ) -> Result<Local, Failure> {
        let guardian = guardian()?;
        let failed = |error| Failure::engine(&error, path);
        let tide = share(path)?.name(session.name.clone()).open().await.map_err(failed)?;
        document.into_iter().for_each(|document| tide.define(document));
        let reader = SqliteStore::open_reader(path).map_err(|error| failed(error.into()))?;
        let mut work = tide.work(here.io_slots).processes(guardian).queues(session.queues.clone());
        work = work.logs(Arc::new(move |line| {
            recorder.note(line.run, Note::from(line.clone()));
            backlog.push(line);
        }));
        if let Some(slots) = here.slots {
            work = work.process_slots(slots);
        }
        if here.allow_link_local {
            work = work.ask_link_local();
        }
        let working = work.start().await.map_err(failed)?;
        Ok(Local { tide, working, reader, session, killed: Killed::default() })
    }

    /// What processes held that were killed is free for others.
    pub async fn release_killed(&mut self, path: &Path) {
        self.killed.release(&self.tide, path).await;
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
