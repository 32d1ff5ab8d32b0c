//! All that descends from the guardian, and which attempt it belongs to.
//!
//! The guardian is a subreaper: whoever loses its parent becomes its child. So an attempt consists of what
//! descends from its leader, and of orphans with all that descends from them. An orphan belongs to the attempt
//! whose process group it is in or whose mark it bears; one without either may belong to any attempt that was
//! running when it was first seen, and is counted to the last of those.

use super::mark::{self, Mark};
use super::proc::{self, Kinship};
use super::tree::Send;
use super::wire::Id;
use crate::clock;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process_group, set_child_subreaper, wait,
};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidegate_core::time::{Moment, Span};
use tokio::sync::{oneshot, watch};

/// How long after it was first seen an orphan may still turn out to bear a mark: a process has no environment
/// for a moment while it becomes another program.
const SETTLING: Span = Span::millis(20);

/// Who of an attempt is left besides its leader.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Left {
    Nobody,
    /// Nobody that is known to belong to it, but somebody may turn out to.
    Perhaps,
    Somebody,
}

pub(super) struct Family {
    mark: Mark,
    members: Mutex<Members>,
    /// Changes when somebody has ended.
    ends: watch::Sender<()>,
}

#[derive(Default)]
struct Members {
    attempts: BTreeMap<Id, Attempt>,
    /// Leaders that have not been waited for.
    leaders: HashMap<Pid, Id>,
    /// Children of the guardian that it did not start, as far as they have been looked at. Their numbers are
    /// theirs until they are waited for, and then they leave this list.
    orphans: HashMap<Pid, Origin>,
}

struct Attempt {
    /// Also the number of its group.
    leader: Pid,
    /// Taken when the leader has been waited for.
    ended: Option<oneshot::Sender<WaitStatus>>,
}

#[derive(Clone, Copy)]
enum Origin {
    Attempt(Id),
    /// No attempt newer than this one.
    Unknown {
        newest: Id,
        seen: Moment,
    },
}

impl Family {
    /// Makes this process the one that gets the orphans. Once, before anything is started.
    pub(super) fn found(mark: Mark) -> io::Result<Family> {
        if !proc::is_usable() {
            return Err(io::Error::other("without /proc it cannot find the processes it has to end"));
        }
        set_child_subreaper(Some(getpid()))?;
        Ok(Family { mark, members: Mutex::default(), ends: watch::Sender::new(()) })
    }

    /// Starts the leader of an attempt; the receiver gets how it ended.
    pub(super) fn start(
        &self,
        id: Id,
        command: &mut Command,
    ) -> io::Result<(Child, oneshot::Receiver<WaitStatus>)> {
        command.env(mark::VARIABLE, self.mark.of_attempt(id));
        // Held all along, so that nobody waits for a leader that is not on the list yet.
        let mut members = self.members();
        let child = command.spawn()?;
        let leader = Pid::from_child(&child);
        let (ended, end) = oneshot::channel();
        members.leaders.insert(leader, id);
        members.attempts.insert(id, Attempt { leader, ended: Some(ended) });
        Ok((child, end))
    }

    /// Waits for everybody who has ended, leaders and orphans.
    pub(super) fn reap(&self) {
        self.members().reap();
        self.ends.send_replace(());
    }

    /// Becomes ready after each [`Family::reap`].
    pub(super) fn ends(&self) -> watch::Receiver<()> {
        self.ends.subscribe()
    }

    /// SIGTERM to everybody of the attempt; `false`, and nothing sent, if its leader has already ended.
    pub(super) fn terminate(&self, id: Id) -> bool {
        let mut members = self.members();
        members.reap();
        let Some(leader) = members.living_leader(id) else { return false };
        let kinship = Kinship::look();
        let (orphans, _) = members.orphans_of(id, &kinship, &self.mark);
        // The group last: when the leader ends, what descends from it cannot be found through it any more.
        for child in orphans.into_iter().chain([leader]) {
            Send::TerminateOutside(leader).to(child, &kinship);
        }
        let _ = kill_process_group(leader, Signal::TERM);
        true
    }

    /// SIGKILL to everybody of the attempt. Once is not enough: somebody may just have been forking.
    pub(super) fn kill(&self, id: Id) -> Left {
        let mut members = self.members();
        if !members.reap() {
            return Left::Nobody;
        }
        let kinship = Kinship::look();
        let (mut children, left) = members.orphans_of(id, &kinship, &self.mark);
        children.extend(members.living_leader(id));
        for &child in &children {
            Send::Kill.to(child, &kinship);
        }
        // Who has been killed and not been waited for stays in its group, so the number is still the group's. And
        // nobody of a group can fork past a signal to all of it.
        if let Some(group) = members.group(id)
            && children
                .into_iter()
                .any(|child| proc::stat(child).is_some_and(|stat| stat.group == Some(group)))
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
        left
    }

    pub(super) fn left(&self, id: Id) -> Left {
        let mut members = self.members();
        if !members.reap() {
            return Left::Nobody;
        }
        members.orphans_of(id, &Kinship::look(), &self.mark).1
    }

    /// Whatever is found of it from now on belongs to whichever attempt ends next.
    pub(super) fn forget(&self, id: Id) {
        self.members().attempts.remove(&id);
    }

    /// SIGKILL to all that descends from this process; `false` if nobody is left.
    pub(super) fn kill_all(&self) -> bool {
        let mut members = self.members();
        if !members.reap() {
            return false;
        }
        for &leader in members.leaders.keys() {
            let _ = kill_process_group(leader, Signal::KILL);
        }
        let kinship = Kinship::look();
        for child in kinship.children(getpid()) {
            Send::Kill.to(child, &kinship);
        }
        true
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Members {
    /// `false` if this process has no child left, and so nobody descends from it.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.ended(pid, status),
                Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn ended(&mut self, pid: Pid, status: WaitStatus) {
        self.orphans.remove(&pid);
        if let Some(id) = self.leaders.remove(&pid)
            && let Some(ended) = self.attempts.get_mut(&id).and_then(|attempt| attempt.ended.take())
        {
            // Nobody wants to know only while everything ends.
            let _ = ended.send(status);
        }
    }

    fn group(&self, id: Id) -> Option<Pid> {
        self.attempts.get(&id).map(|attempt| attempt.leader)
    }

    fn living_leader(&self, id: Id) -> Option<Pid> {
        let attempt = self.attempts.get(&id)?;
        attempt.ended.is_some().then_some(attempt.leader)
    }

    fn orphans_of(&mut self, id: Id, kinship: &Kinship, mark: &Mark) -> (Vec<Pid>, Left) {
        let mut left = Left::Nobody;
        let mut orphans = Vec::new();
        for pid in kinship.children(getpid()) {
            if self.leaders.contains_key(&pid) {
                continue;
            }
            let origin = self.origin(pid, mark);
            if self.counts_to(id, origin) {
                orphans.push(pid);
                left = Left::Somebody;
            } else if let Origin::Unknown { seen, .. } = origin
                && clock::now() < seen + SETTLING
                && left == Left::Nobody
            {
                left = Left::Perhaps;
            }
        }
        (orphans, left)
    }

    /// What has been found out once stays: an orphan may become another program, but not another's.
    fn origin(&mut self, pid: Pid, mark: &Mark) -> Origin {
        let known = self.orphans.get(&pid).copied();
        let origin = match known {
            Some(known @ Origin::Attempt(_)) => known,
            Some(known @ Origin::Unknown { seen, .. }) if seen + SETTLING <= clock::now() => known,
            _ => match (self.of_group(pid).or_else(|| mark.read(pid)), known) {
                (Some(id), _) => Origin::Attempt(id),
                (None, Some(known)) => known,
                (None, None) => Origin::Unknown { newest: self.newest(), seen: clock::now() },
            },
        };
        self.orphans.insert(pid, origin);
        origin
    }

    /// The number of a group is nobody else's as long as the group has a member. The newest attempt wins, because
    /// an older one of the same number can have no member left.
    fn of_group(&self, pid: Pid) -> Option<Id> {
        let group = proc::stat(pid)?.group?;
        self.attempts.iter().rev().find(|(_, attempt)| attempt.leader == group).map(|(&id, _)| id)
    }

    fn newest(&self) -> Id {
        self.attempts.last_key_value().map_or(0, |(&id, _)| id)
    }

    fn counts_to(&self, id: Id, origin: Origin) -> bool {
        match origin {
            Origin::Attempt(owner) => owner == id || !self.attempts.contains_key(&owner),
            Origin::Unknown { newest, .. } => self.attempts.range(..=newest).all(|(&other, _)| other == id),
        }
    }
}
