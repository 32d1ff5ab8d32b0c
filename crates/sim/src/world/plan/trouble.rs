//! What goes wrong in a seed.

use crate::random::Random;

/// How often what goes wrong, in percent (of messages, of commits) or as a number of times.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trouble {
    pub lost: u64,
    pub late: u64,
    pub doubled: u64,
    pub unknown_commits: u64,
    pub server_crashes: u64,
    pub server_pauses: u64,
    pub worker_kills: u64,
    pub worker_pauses: u64,
    pub worker_shutdowns: u64,
    pub worker_cuts: u64,
    pub limit_changes: u64,
    pub cancels: u64,
    pub priorities: u64,
    pub pauses: u64,
    pub rescopes: u64,
    pub cancel_storms: u64,
    /// In percent.
    pub slow_commits: u64,
    /// A process hands back what it runs, makes everything durable and ends, to begin anew soon after.
    pub ends: u64,
}

impl Trouble {
    pub(super) fn new(random: &mut Random, embedded: bool) -> Trouble {
        // A third of the seeds are calm, so that rules about order are judged undisturbed; the others have it all.
        let calm = random.chance(33);
        match (embedded, calm) {
            (false, true) => calm_cluster(random),
            (false, false) => cluster(random),
            (true, true) => calm_process(random),
            (true, false) => process(random),
        }
    }
}

fn calm_cluster(random: &mut Random) -> Trouble {
    let mut few = |most| random.below(most);
    Trouble {
        limit_changes: few(3),
        cancels: few(8),
        worker_shutdowns: few(2),
        worker_kills: few(2),
        server_crashes: few(2),
        pauses: few(3),
        rescopes: few(2),
        ..Trouble::default()
    }
}

fn cluster(random: &mut Random) -> Trouble {
    let mut few = |most| random.below(most);
    Trouble {
        lost: few(6),
        late: few(10),
        doubled: few(6),
        unknown_commits: few(8),
        server_crashes: few(4),
        server_pauses: few(3),
        worker_kills: few(4),
        worker_pauses: few(4),
        worker_shutdowns: few(3),
        worker_cuts: few(4),
        limit_changes: few(6),
        cancels: few(12),
        priorities: few(6),
        pauses: few(5),
        rescopes: few(4),
        cancel_storms: few(2),
        ..Trouble::default()
    }
}

fn calm_process(random: &mut Random) -> Trouble {
    let mut few = |most| random.below(most);
    Trouble {
        slow_commits: few(12),
        ends: few(2),
        limit_changes: few(2),
        cancels: few(6),
        worker_shutdowns: few(2),
        ..Trouble::default()
    }
}

/// Within a process no message is lost. What happens to it happens to all of it at once.
fn process(random: &mut Random) -> Trouble {
    let mut few = |most| random.below(most);
    Trouble {
        unknown_commits: few(8),
        slow_commits: few(20),
        server_crashes: few(4),
        server_pauses: few(3),
        // Only what begins after a clean end runs ahead at once.
        ends: 1 + few(6),
        worker_shutdowns: few(3),
        limit_changes: few(6),
        cancels: few(12),
        priorities: few(6),
        pauses: few(5),
        rescopes: few(4),
        cancel_storms: few(2),
        ..Trouble::default()
    }
}
