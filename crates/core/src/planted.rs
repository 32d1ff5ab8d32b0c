//! Bugs on purpose. Each breaks one rule, so that the simulator's oracle can be shown to notice.
//!
//! Without the feature `planted-bugs`, which nothing that ships turns on, no bug can be planted.

use crate::admission::Demand;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    /// A write with an old epoch is taken for a live one.
    FencingOff,
    /// Now and then a limit that accepts more is not listed.
    WakeupDropped,
    /// What a task held is given back two times.
    ReleaseTwice,
    /// A limit is checked against what was used when the command began.
    CountThenClaim,
    /// A newcomer takes what those before it in line wait for.
    Barging,
    /// A finished item makes room for two.
    WindowRefilledTwice,
    /// What a reserver set aside is given to others.
    ReservationIgnored,
    /// A retry goes to the end of the line.
    RetryLosesPlace,
    /// A worker takes its own heartbeat for the answer, so that its lease is renewed after it has run out.
    RenewedAfterExpiry,
    /// A cancelled attempt's units are never given back.
    CancelLeaksSlot,
    /// A loop ends at its last two items.
    ParentEndsTwice,
    /// A quota window grants one more than it may.
    QuotaOffByOne,
    /// A lost worker costs a task nothing, for ever.
    LossesNotCounted,
    /// The last item of a loop is forgotten when its list is expanded.
    ItemForgotten,
    /// A new leader forgets what was told to stop.
    StopForgottenAtLoad,
    /// An unfinished attempt of a leaving worker counts as a failure.
    HandBackCharged,
    /// A pool's units are counted once, however many were asked for.
    WeightIgnored,
    /// After a core was given up the next one does not wait for the end of what ran ahead of it.
    AbortedNotJoined,
    /// Functions run ahead of their commits although other servers may lead.
    AheadWhereShared,
    /// Functions run ahead of their commits although the last leader did not resign.
    AheadAfterCrash,
}

impl Bug {
    pub const ALL: [Bug; 20] = [
        Bug::FencingOff,
        Bug::WakeupDropped,
        Bug::ReleaseTwice,
        Bug::CountThenClaim,
        Bug::Barging,
        Bug::WindowRefilledTwice,
        Bug::ReservationIgnored,
        Bug::RetryLosesPlace,
        Bug::RenewedAfterExpiry,
        Bug::CancelLeaksSlot,
        Bug::ParentEndsTwice,
        Bug::QuotaOffByOne,
        Bug::LossesNotCounted,
        Bug::ItemForgotten,
        Bug::StopForgottenAtLoad,
        Bug::HandBackCharged,
        Bug::WeightIgnored,
        Bug::AbortedNotJoined,
        Bug::AheadWhereShared,
        Bug::AheadAfterCrash,
    ];
}

/// The bug that is planted, if any.
#[derive(Clone, Debug, Default)]
pub struct Planted {
    #[cfg(feature = "planted-bugs")]
    bug: Option<Bug>,
    #[cfg(feature = "planted-bugs")]
    times: u32,
    /// Claims that are not counted before the next command.
    #[cfg(feature = "planted-bugs")]
    uncounted: Vec<Demand>,
}

#[cfg(feature = "planted-bugs")]
impl Planted {
    pub fn bug(bug: Bug) -> Self {
        Planted { bug: Some(bug), ..Planted::default() }
    }

    pub fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// Strikes only every so often, as such bugs do.
    pub fn strikes(&mut self, bug: Bug, every: u32) -> bool {
        self.times = self.times.wrapping_add(u32::from(self.has(bug)));
        self.has(bug) && self.times.is_multiple_of(every)
    }

    /// Whether the core's own assertions are off, so that the oracle is alone.
    pub fn is_any(&self) -> bool {
        self.bug.is_some()
    }

    pub fn put_off(&mut self, claim: Demand) -> bool {
        if self.has(Bug::CountThenClaim) {
            self.uncounted.push(claim);
        }
        self.has(Bug::CountThenClaim)
    }

    pub fn take_uncounted(&mut self) -> Vec<Demand> {
        std::mem::take(&mut self.uncounted)
    }
}

#[cfg(not(feature = "planted-bugs"))]
impl Planted {
    pub fn has(&self, _: Bug) -> bool {
        false
    }

    pub fn strikes(&mut self, _: Bug, _: u32) -> bool {
        false
    }

    pub fn is_any(&self) -> bool {
        false
    }

    pub fn put_off(&mut self, _: Demand) -> bool {
        false
    }

    pub fn take_uncounted(&mut self) -> [Demand; 0] {
        []
    }
}
