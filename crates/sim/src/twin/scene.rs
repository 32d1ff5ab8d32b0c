//! What both versions are told: limits, sources of tasks, workers, and the commands that change them.

use super::pace::Pace;
use tidegate_core::admission::{LimitKey, Rank, Rules, Skills, SlotCounts};
use tidegate_core::ids::Name;
use tidegate_core::time::Moment;

/// Units of one limit, by the limit's number. Numbers follow the fixed order in which demands are tried.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Need {
    pub limit: usize,
    pub units: u32,
}

/// What a limit counts by.
#[derive(Clone, PartialEq, Debug)]
pub enum Bound {
    Units(u64),
    Pace(Pace),
    Slots,
}

/// Where a sequence begins.
#[derive(Clone, Debug)]
pub struct Scene {
    pub rules: Rules,
    /// In the order of their keys.
    pub limits: Vec<(LimitKey, Bound)>,
    /// What the tasks of each source need; sorted by limit, each limit once. Tasks of one source are a class.
    pub sources: Vec<Vec<Need>>,
    /// Classes that nobody is in are forgotten at once, and their limits with them.
    pub forgetful: bool,
    /// A reload makes everything anew from who runs and who waits; otherwise only places are forgotten.
    pub rebuilds: bool,
    pub now: Moment,
}

/// One command, walked to its end (or to the end of its budget) before the next.
#[derive(Clone, Debug)]
pub enum Command {
    /// A newcomer, a retry, or `count` items in a row.
    Enqueue {
        source: usize,
        first: Rank,
        count: u32,
    },
    /// A running task gives back what it holds.
    Finish(Rank),
    Withdraw(Rank),
    WithdrawRange {
        source: usize,
        first: Rank,
        last: Rank,
    },
    /// Cancel and submit under the same sequence, in one command.
    Rerank {
        from: Rank,
        to: Rank,
    },
    SetCapacity {
        limit: usize,
        capacity: u64,
    },
    SetPace {
        limit: usize,
        pace: Pace,
    },
    SetPaused {
        limit: usize,
        paused: bool,
    },
    /// A limit was set, removed or re-scoped: these sources need something else from now on.
    Resolve(Vec<(usize, Vec<Need>)>),
    SetWorker {
        name: Name,
        skills: Skills,
        slots: SlotCounts,
    },
    RemoveWorker(Name),
    /// As after a load: places are forgotten, every head is fresh.
    Reload,
    /// Time passes, and what was left to do goes on.
    Advance(Moment),
    /// Several changes, and one walk after all of them.
    Together(Vec<Command>),
}

/// Who started, and on which worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Start {
    pub rank: Rank,
    pub worker: Option<Name>,
}

/// Where a head is parked, by the number of the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parked {
    pub under: usize,
    pub moves: u32,
    pub reserves: bool,
}
