//! Admission alone, for tests: a few limits, ranks in the order of their numbers, and the end of a command.

use super::{Admission, Ask, ClassId, Gauge, Level, LimitKey, Rank, Rate};
use crate::ids::{NodeId, TaskId};
use crate::model::{RatePolicy, WhenExhausted};
use crate::time::{Moment, Span};

pub(super) const NOW: Moment = Moment(1_000_000);

/// `limit` starts a second, of which two may come at once.
pub(super) fn rate(limit: u32) -> Ask {
    let policy = RatePolicy { limit, per: Span::seconds(1), burst: 2, when_busy: WhenExhausted::Wait };
    let key = LimitKey::Rate { of: "mail".into(), key: None };
    Ask { key, units: 1, gauge: Gauge::Rate(Rate::new(policy)) }
}

/// The only unit of a pool.
pub(super) fn pool() -> Ask {
    Ask { key: LimitKey::Pool("db".into()), units: 1, gauge: Gauge::Units { capacity: 1, used: 0 } }
}

pub(super) fn class(admission: &mut Admission, asks: Vec<Ask>) -> ClassId {
    let demands = admission.demands(asks);
    admission.add_class(Level::Attempt, &demands)
}

pub(super) fn rank(n: u64) -> Rank {
    Rank::new(0, n, TaskId::node(NodeId(n)))
}

/// Ends a command: says who starts.
pub(super) fn settle(admission: &mut Admission, now: Moment) -> Vec<Rank> {
    let mut budget = admission.begin();
    let grants = std::iter::from_fn(|| admission.next_grant(Level::Attempt, now, &mut budget));
    let started = grants.map(|grant| grant.rank).collect();
    admission.settle_wakes(now);
    admission.check_places(now);
    started
}
