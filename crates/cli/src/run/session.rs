//! One `tidegate run` among several in a folder: a name under which its worker works, and a queue of the same name to which
//! its run goes.
//!
//! What a step does depends on where it is done: on the working directory, the environment, the secrets in it. So the work
//! of a run that was begun here is done here, and by whoever resumes it. The name stays with the run; whether its process
//! lives is told by a lock.

use crate::failure::{Exit, Failure};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidegate::Tidegate;
use tidegate_core::admission::{Skills, SlotCounts};
use tidegate_core::ids::{Name, RunId};
use tidegate_core::model::Requirement;
use tidegate_core::protocol::{Command, Join, Leave};
use tidegate_store::{Presence, StoreError};

/// What the names of sessions begin with.
const PREFIX: &str = "cli-";
/// How long what a session started may live on after it was killed: its guardian ends it at once, and waits no longer than
/// this for those who hang.
const DYING: Duration = Duration::from_secs(3);

pub struct Session {
    pub name: Name,
    /// What its worker works for.
    pub queues: Vec<Name>,
    _presence: Presence,
}

impl Session {
    /// For something new.
    pub fn begin(store: &Path) -> Result<Session, Failure> {
        // No other process of this number began at this moment.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = Name::from(format!("{PREFIX}{}-{:x}", std::process::id(), now.as_micros()));
        let presence = Presence::claim(store, &name).map_err(|error| Failure::store(&error, store))?;
        Ok(Session::of(name, presence))
    }

    /// For a run that was left: in the place of whoever had it, whose attempts are then known to be lost.
    pub fn resume(store: &Path, run: RunId, queue: Option<&Name>) -> Result<Session, Failure> {
        let Some(queue) = queue else { return Session::begin(store) };
        if !is_session(queue) {
            let mut session = Session::begin(store)?;
            session.queues.push(queue.clone());
            return Ok(session);
        }
        match Presence::claim(store, queue) {
            Ok(presence) => Ok(Session::of(queue.clone(), presence)),
            Err(StoreError::InUse(who)) => Err(under_way(run, &who).at(store.display())),
            Err(error) => Err(Failure::store(&error, store)),
        }
    }

    fn of(name: Name, presence: Presence) -> Session {
        let queues = vec![Name::new(Requirement::DEFAULT_QUEUE), name.clone()];
        Session { name, queues, _presence: presence }
    }
}

pub fn is_session(queue: &Name) -> bool {
    queue.as_str().starts_with(PREFIX)
}

/// The process that works on a run of this queue, if it is one that lives.
pub fn holder(store: &Path, queue: Option<&Name>) -> Option<String> {
    let queue = queue.filter(|queue| is_session(queue))?;
    Presence::holder(store, queue)
}

pub fn under_way(run: RunId, who: &str) -> Failure {
    let failure = Failure::new("under-way", format!("{run} is being worked on {who}")).exit(Exit::Refused);
    failure.help("wait for its end, or end it with `tidegate runs cancel`")
}

/// Sessions that were killed. Whoever leads sees to it that what they held is free before their leases end.
#[derive(Default)]
pub struct Killed {
    /// Since when each is known to be gone.
    since: BTreeMap<Name, Instant>,
}

impl Killed {
    /// Looks for them, and takes note of what those had that are gone for long enough.
    pub async fn release(&mut self, tide: &Tidegate, store: &Path) {
        let workers = tide.engine().read(|core, _| {
            let sessions = core.connected().filter(|(worker, _)| is_session(worker));
            sessions.map(|(worker, incarnation)| (worker.clone(), incarnation)).collect::<Vec<_>>()
        });
        // Only where this process leads.
        let Ok(workers) = workers.await else { return self.since.clear() };
        self.since.retain(|known, _| workers.iter().any(|(worker, _)| worker == known));
        for (worker, incarnation) in workers {
            if Presence::holder(store, &worker).is_some() {
                self.since.remove(&worker);
                continue;
            }
            let since = *self.since.entry(worker.clone()).or_insert_with(Instant::now);
            if since.elapsed() >= DYING {
                dismiss(tide, store, &worker, incarnation).await;
            }
        }
    }
}

/// Joins in the place of a session that is gone and leaves: the engine then knows that it has nothing any more. Somebody
/// who comes for its run in this moment does the same.
pub async fn dismiss(tide: &Tidegate, store: &Path, worker: &Name, incarnation: u64) {
    let Ok(_presence) = Presence::claim(store, worker) else { return };
    let (worker, incarnation) = (worker.clone(), incarnation + 1);
    let (skills, slots) = (Skills::plain(), SlotCounts::default());
    let join = Join { worker: worker.clone(), incarnation, skills, slots };
    let leave = Leave { worker, incarnation };
    // If nobody can be told now, the leases end by themselves.
    let _ = tide.engine().insist_on_all(vec![Command::Join(join), Command::Leave(leave)]).await;
}
