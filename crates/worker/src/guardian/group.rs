//! A process group, named by its leader's number.

use rustix::process::{Pid, Signal, kill_process_group};
use std::sync::atomic::{AtomicBool, Ordering};

/// As long as the leader has not been waited for, its number cannot belong to anybody else; afterwards this
/// refuses to send anything.
#[derive(Debug)]
pub(super) struct Group {
    leader: Pid,
    waited_for: AtomicBool,
}

impl Group {
    pub(super) fn new(leader: Pid) -> Group {
        Group { leader, waited_for: AtomicBool::new(false) }
    }

    pub(super) fn terminate(&self) {
        self.send(Signal::TERM);
    }

    /// A process that is being killed cannot fork any more, so once is enough for all of them.
    pub(super) fn kill(&self) {
        self.send(Signal::KILL);
    }

    pub(super) fn set_waited_for(&self) {
        self.waited_for.store(true, Ordering::Relaxed);
    }

    fn send(&self, signal: Signal) {
        if !self.waited_for.load(Ordering::Relaxed) {
            // The only failure that can happen here is that nobody is left, which is what was wanted.
            let _ = kill_process_group(self.leader, signal);
        }
    }
}
