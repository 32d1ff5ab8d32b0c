//! The thread that owns the store: one job after the other, in the order they were given.

use crate::server::{Input, Output};
use tidegate_core::ids::{Name, NodeId, RunId};
use tidegate_store::{Sought, Store, StoreError};
use tokio::sync::mpsc;

/// Whether something was accepted under an id, and as what.
pub(super) type Found = Result<Option<NodeId>, StoreError>;

pub(super) enum Job {
    /// What the server wants of the store.
    Do(Output),
    Find(Vec<RunId>),
}

pub(super) enum Done {
    Did(Input),
    /// In the order of the ids.
    Found(Vec<Found>),
}

pub(super) fn store_thread(
    name: Name,
    mut store: Box<dyn Store>,
) -> (std::sync::mpsc::Sender<Job>, mpsc::UnboundedReceiver<Done>) {
    let (jobs, inbox) = std::sync::mpsc::channel();
    let (results, outbox) = mpsc::unbounded_channel();
    let work = move || {
        for job in inbox {
            let done = match job {
                Job::Do(output) => carry_out(&name, store.as_mut(), output).map(Done::Did),
                Job::Find(ids) => Some(Done::Found(find(store.as_mut(), ids))),
            };
            if done.is_some_and(|done| results.send(done).is_err()) {
                return;
            }
        }
    };
    // Without its thread nothing can be stored: every command is then answered as unavailable.
    let _ = std::thread::Builder::new().name("store".to_owned()).spawn(work);
    (jobs, outbox)
}

fn find(store: &mut dyn Store, ids: Vec<RunId>) -> Vec<Found> {
    let sought: Vec<Sought> = ids.into_iter().map(Sought::Id).collect();
    match store.find(&sought) {
        Ok(found) => found.into_iter().map(|found| Ok(found.map(|found| found.node))).collect(),
        Err(error) => vec![Err(error); sought.len()],
    }
}

fn carry_out(name: &Name, store: &mut dyn Store, output: Output) -> Option<Input> {
    match output {
        Output::Lead { mine, lease } => Some(Input::Led(store.lead(name, mine, lease))),
        Output::Load => Some(Input::Loaded(store.load())),
        Output::Commit(entry) => Some(Input::Committed(store.commit(&entry))),
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
        Output::Answer { .. } | Output::Effect(_) | Output::Written(_) => None,
    }
}
