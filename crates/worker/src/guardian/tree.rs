//! Signals to a child of the guardian and to all that descend from it.
//!
//! The guardian's own child keeps its number until the guardian has waited for it. Anybody else is held by a
//! file descriptor first and then asked for its parent, and the parent must still be alive after the answer: so
//! the number given was the parent's, and not that of somebody who came later.

use super::proc::{self, Kinship};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use std::os::fd::OwnedFd;

/// Whoever is deeper is reached when those above are gone. Each level holds a file descriptor.
const DEEPEST: usize = 200;

#[derive(Clone, Copy)]
pub(super) enum Send {
    /// SIGTERM to everybody outside this group, which is sent it as a whole: twice might mean something else.
    TerminateOutside(Pid),
    Kill,
}

impl Send {
    /// `child` is a child of this process that has not been waited for.
    pub(super) fn to(self, child: Pid, kinship: &Kinship) {
        let member = Member { pid: child, held: None };
        match self {
            Send::TerminateOutside(group) => terminate(&member, group, kinship, 0),
            Send::Kill => kill(&member, kinship, 0),
        }
    }
}

/// Parents first: a shell whose child has ended would go on with its script. But not before their children have
/// been found: whoever ends has none any more.
fn terminate(member: &Member, group: Pid, kinship: &Kinship, depth: usize) {
    let children: Vec<Member> = if depth < DEEPEST { member.children(kinship).collect() } else { Vec::new() };
    if member.group() != Some(group) {
        member.send(Signal::TERM);
    }
    for child in children {
        terminate(&child, group, kinship, depth + 1);
    }
}

/// Children first, and nobody can fork meanwhile.
fn kill(member: &Member, kinship: &Kinship, depth: usize) {
    member.send(Signal::STOP);
    if depth < DEEPEST {
        for child in member.children(kinship) {
            kill(&child, kinship, depth + 1);
        }
    }
    member.send(Signal::KILL);
}

struct Member {
    pid: Pid,
    /// Absent for a child of the guardian, whose number is certain.
    held: Option<OwnedFd>,
}

impl Member {
    fn children(&self, kinship: &Kinship) -> impl Iterator<Item = Member> {
        kinship.children(self.pid).into_iter().filter_map(|pid| self.child(pid))
    }

    fn child(&self, pid: Pid) -> Option<Member> {
        let held = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let is_child = proc::stat(pid)?.parent == Some(self.pid) && self.is_alive();
        is_child.then_some(Member { pid, held: Some(held) })
    }

    fn is_alive(&self) -> bool {
        let Some(held) = &self.held else { return true };
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(held, PollFlags::IN)], Some(&at_once)) == Ok(0)
    }

    fn group(&self) -> Option<Pid> {
        proc::stat(self.pid)?.group
    }

    fn send(&self, signal: Signal) {
        // It may be gone, which is what is wanted, or belong to another user, which nothing here can change.
        let _ = match &self.held {
            Some(held) => pidfd_send_signal(held, signal),
            None => kill_process(self.pid, signal),
        };
    }
}
