//! The thread that owns the store: one job after the other, in the order they were given.

use super::EngineError;
use super::letters::Newcomer;
use super::request::Errand;
use crate::server::{Input, Output};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidegate_core::Waits;
use tidegate_core::ids::Name;
use tidegate_store::{Before, Contact, Found, Leader, Letter, Pruned, Sought, Store, StoreError};
use tokio::sync::{mpsc, oneshot};

/// How long commits took. Shared with whoever asks.
#[derive(Clone, Default)]
pub(super) struct CommitTimes(Arc<Mutex<Waits>>);

impl CommitTimes {
    fn note(&self, took: Duration) {
        self.waits().note(took.into());
    }

    pub fn so_far(&self) -> Waits {
        self.waits().clone()
    }

    /// Nothing that is done while it is held can panic.
    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) enum Job {
    /// What the server wants of the store.
    Do(Output),
    Find(Vec<Sought>),
    /// Say where this server is reached.
    Announce(Contact),
    Leader,
    /// At most so many letters, from one on.
    Letters {
        after: u64,
        most: usize,
    },
    SetAside {
        letter: u64,
        why: String,
    },
    Prune {
        before: Before,
        most: u32,
        /// Who wants to know how many went; otherwise it is upkeep.
        asked: Asker,
    },
}

/// Who asked for a slice of history to go, if anybody did.
pub(super) type Asker = Option<oneshot::Sender<Result<Pruned, EngineError>>>;

pub(super) enum Done {
    Did(Input),
    /// In the order in which it was sought.
    Found(Result<Vec<Option<Found>>, StoreError>),
    Leader(Result<Option<Leader>, StoreError>),
    Letters(Result<Vec<Letter>, StoreError>),
    Pruned(Result<Pruned, StoreError>, Asker),
}

/// Who waits for a look-up.
pub(super) enum Lookups {
    Errand(Errand),
    Letters(Vec<Newcomer>),
    /// Who asked was told that it takes too long.
    Gone,
}

pub(super) fn store_thread(
    name: Name,
    mut store: Box<dyn Store>,
    commits: CommitTimes,
    wake: impl Fn() + Send + Sync + 'static,
) -> (std::sync::mpsc::Sender<Job>, mpsc::UnboundedReceiver<Done>) {
    let (jobs, inbox) = std::sync::mpsc::channel();
    let (results, outbox) = mpsc::unbounded_channel();
    let work = move || {
        store.listen(Box::new(wake));
        for job in inbox {
            let done = carry_out(&name, store.as_mut(), &commits, job);
            if done.is_some_and(|done| results.send(done).is_err()) {
                return;
            }
        }
        // Closed before the end of the results says so.
        drop(store);
        drop(results);
    };
    // Without its thread nothing can be stored: every command is then answered as unavailable.
    let _ = std::thread::Builder::new().name("store".to_owned()).spawn(work);
    (jobs, outbox)
}

fn carry_out(name: &Name, store: &mut dyn Store, commits: &CommitTimes, job: Job) -> Option<Done> {
    match job {
        Job::Do(output) => serve(name, store, commits, output).map(Done::Did),
        Job::Find(sought) => Some(Done::Found(store.find(&sought))),
        Job::Announce(contact) => {
            // It is said again and again.
            let _ = store.announce(name, &contact);
            None
        }
        Job::Leader => Some(Done::Leader(store.leader())),
        Job::Letters { after, most } => Some(Done::Letters(store.letters(after, most))),
        Job::SetAside { letter, why } => {
            // If this cannot be said now the letter is read again.
            let _ = store.set_aside(letter, &why);
            None
        }
        Job::Prune { before, most, asked } => Some(Done::Pruned(store.prune(before, most), asked)),
    }
}

fn serve(name: &Name, store: &mut dyn Store, commits: &CommitTimes, output: Output) -> Option<Input> {
    match output {
        Output::Lead { mine, lease } => Some(Input::Led(store.lead(name, mine, lease))),
        Output::Load => Some(Input::Loaded(store.load())),
        Output::Commit(entry) => {
            let begun = Instant::now();
            let committed = store.commit(&entry);
            commits.note(begun.elapsed());
            Some(Input::Committed(committed))
        }
        Output::Resign { term } => {
            // The lease ends by itself if this cannot be said.
            let _ = store.resign(term);
            None
        }
        Output::Reopen => {
            // If it cannot be opened, what is asked next fails and says why.
            let _ = store.reopen();
            None
        }
        Output::Answer { .. } | Output::Effect(_) | Output::Written(_) | Output::Abort(_) => None,
    }
}
