//! What tells to whom an orphan belonged: a variable in its environment, which children inherit.

use super::proc;
use super::wire::Id;
use crate::clock;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

/// In the guardian's environment it names the guardian, in that of its processes the attempt as well.
pub(super) const VARIABLE: &str = "TIDEGATE_GUARDED";

/// Names one guardian and no other, also where several machines or containers share a view of processes.
#[derive(Clone, Debug)]
pub(super) struct Mark(String);

impl Mark {
    pub(super) fn fresh() -> Mark {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Mark(format!("{}-{}-{count}", std::process::id(), clock::now().0))
    }

    /// The one its worker has given to this guardian.
    pub(super) fn given() -> Mark {
        std::env::var(VARIABLE).map_or_else(|_| Mark::fresh(), Mark)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn of_attempt(&self, id: Id) -> String {
        format!("{}/{id}", self.0)
    }

    /// Whose attempt this process says it belongs to.
    pub(super) fn read(&self, pid: Pid) -> Option<Id> {
        proc::variable(pid, VARIABLE)?.strip_prefix(&self.0)?.strip_prefix('/')?.parse().ok()
    }

    /// Kills whoever bears this mark, wherever it is now. For a worker whose guardian died: nobody descends from
    /// that any more.
    pub(super) fn kill_bearers(&self) {
        let mut killed = HashSet::new();
        // Who has been killed cannot fork, so a round that finds nobody new has found everybody.
        while proc::everybody().into_iter().filter(|&pid| self.kill_bearer(pid) && killed.insert(pid)).count()
            > 0
        {}
    }

    /// Held before it is asked: who answers is who is killed.
    fn kill_bearer(&self, pid: Pid) -> bool {
        let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
        self.read(pid).is_some() && pidfd_send_signal(held, Signal::KILL).is_ok()
    }
}
