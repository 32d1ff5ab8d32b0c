//! Limits: their names, the order in which they are tried, and what each counts.

use super::class::ClassId;
use super::quota::Quota;
use super::rank::Rank;
use super::rate::Rate;
use crate::ids::{Name, NodeId};
use crate::model::{Requirement, SlotKind};
use crate::time::{Moment, Span};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What a limit bounds. The order of the variants is the one fixed order in which demands are tried.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum LimitKey {
    /// Root runs of flows.
    Runs,
    /// Root runs that carry this value of a tag.
    Tag {
        tag: Name,
        value: Name,
    },
    /// Root runs of one flow, per key.
    Flow {
        flow: Name,
        key: Option<Name>,
    },
    /// Steps of one run at once.
    Steps(NodeId),
    /// Items of one loop at once.
    Window(NodeId),
    /// Attempts of one action that carry this key.
    ActionKey {
        action: Name,
        key: Name,
    },
    /// Attempts of one action.
    Action(Name),
    /// Attempts of all actions that match a pattern, together.
    Total(Name),
    Pool(Name),
    /// Starts per calendar window, of an action (and key) or of a pattern.
    Quota {
        of: Name,
        key: Option<Name>,
    },
    /// Starts per time, of an action (and key) or of a pattern.
    Rate {
        of: Name,
        key: Option<Name>,
    },
    /// A free slot of a worker that fits.
    Slot(Requirement),
}

/// Who holds a level waits only for deeper ones; hence no deadlock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    Run,
    Step,
    Attempt,
}

impl Level {
    pub const ALL: [Level; 3] = [Level::Run, Level::Step, Level::Attempt];
}

impl LimitKey {
    pub fn level(&self) -> Level {
        match self {
            LimitKey::Runs | LimitKey::Tag { .. } | LimitKey::Flow { .. } => Level::Run,
            LimitKey::Steps(_) => Level::Step,
            _ => Level::Attempt,
        }
    }
}

impl fmt::Display for LimitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with_key = |f: &mut fmt::Formatter<'_>, kind: &str, name: &Name, key: &Option<Name>| match key {
            None => write!(f, "{kind}:{name}"),
            Some(key) => write!(f, "{kind}:{name}/{key}"),
        };
        match self {
            LimitKey::Runs => f.write_str("runs"),
            LimitKey::Tag { tag, value } => write!(f, "tag:{tag}={value}"),
            LimitKey::Flow { flow, key } => with_key(f, "flow", flow, key),
            LimitKey::Steps(run) => write!(f, "run:{}", run.0),
            LimitKey::Window(step) => write!(f, "window:{}", step.0),
            LimitKey::ActionKey { action, key } => write!(f, "action:{action}/{key}"),
            LimitKey::Action(action) => write!(f, "action:{action}"),
            LimitKey::Total(pattern) => write!(f, "total:{pattern}"),
            LimitKey::Pool(pool) => write!(f, "pool:{pool}"),
            LimitKey::Quota { of, key } => with_key(f, "quota", of, key),
            LimitKey::Rate { of, key } => with_key(f, "rate", of, key),
            LimitKey::Slot(need) => {
                write!(f, "workers:{}", need.queue)?;
                need.labels.iter().try_for_each(|label| write!(f, "+{label}"))
            }
        }
    }
}

/// A limit's place in the core's table; meaningful only while the limit exists.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LimitId(pub(super) u32);

/// What a limit counts by.
#[derive(Clone, PartialEq, Debug)]
pub enum Gauge {
    /// Units held by running tasks.
    Units {
        capacity: u64,
        used: u64,
    },
    Rate(Rate),
    Quota(Quota),
    /// Slots of connected workers, matched rather than counted.
    Slots(SlotKind),
}

/// One limit with its line of waiters.
#[derive(Debug)]
pub struct Limit {
    pub key: LimitKey,
    pub gauge: Gauge,
    pub paused: bool,
    /// Heads that stand here, best first.
    pub(super) line: BTreeMap<Rank, ClassId>,
    /// Those of them that reserve.
    pub(super) reservers: BTreeMap<Rank, ClassId>,
    /// Classes that name this limit.
    pub(super) users: BTreeSet<ClassId>,
    /// The next time at which this limit may accept more, if that is known: the key of its timer.
    pub(super) wake: Option<Moment>,
}

impl Limit {
    pub(super) fn new(key: LimitKey, gauge: Gauge) -> Self {
        Limit {
            key,
            gauge,
            paused: false,
            line: BTreeMap::new(),
            reservers: BTreeMap::new(),
            users: BTreeSet::new(),
            wake: None,
        }
    }

    /// Rate and quota: they are not given back, and a head that waits for one stands in no other line.
    pub fn is_pace(&self) -> bool {
        matches!(self.gauge, Gauge::Rate(_) | Gauge::Quota(_))
    }

    /// Units that nobody has, at `now`. May be negative after a capacity was lowered. Not asked of slots.
    pub(crate) fn unused(&self, now: Moment) -> i64 {
        match &self.gauge {
            Gauge::Units { capacity, used } => clamp(*capacity) - clamp(*used),
            Gauge::Rate(rate) => i64::from(rate.available(now)),
            Gauge::Quota(quota) => i64::from(quota.available(now)),
            Gauge::Slots(_) => 0,
        }
    }

    /// The most units it could ever grant at once. Not asked of slots.
    pub fn capacity(&self) -> u64 {
        match &self.gauge {
            Gauge::Units { capacity, .. } => *capacity,
            Gauge::Rate(rate) => u64::from(rate.policy().burst),
            Gauge::Quota(quota) => u64::from(quota.policy().limit),
            Gauge::Slots(_) => 0,
        }
    }

    /// Whether nothing at all can be had of it.
    pub fn is_closed(&self) -> bool {
        match &self.gauge {
            Gauge::Rate(rate) => rate.policy().limit == 0,
            Gauge::Units { .. } | Gauge::Quota(_) => self.capacity() == 0,
            Gauge::Slots(_) => false,
        }
    }

    pub fn used(&self) -> u64 {
        match &self.gauge {
            Gauge::Units { used, .. } => *used,
            _ => 0,
        }
    }

    pub(super) fn take(&mut self, units: u32, now: Moment) {
        match &mut self.gauge {
            Gauge::Units { used, .. } => *used += u64::from(units),
            Gauge::Rate(rate) => rate.take(units, now),
            Gauge::Quota(quota) => quota.take(units, now),
            Gauge::Slots(_) => {}
        }
    }

    /// How long from `now` until `units` are there, if time alone brings them.
    pub(crate) fn available_at(&self, units: i64, now: Moment) -> Option<Moment> {
        let units = u32::try_from(units).ok()?;
        match &self.gauge {
            Gauge::Rate(rate) => Some(rate.available_at(units)),
            Gauge::Quota(quota) => Some(quota.available_at(units, now)),
            _ => None,
        }
        .map(|at| at.max(now + Span::micros(1)))
    }
}

fn clamp(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{NOW, pool, rate};
    use super::*;

    #[test]
    fn only_a_pace_has_more_by_itself_and_never_before_the_next_moment() {
        let [pace, units] = [rate(2), pool()].map(|ask| Limit::new(ask.key, ask.gauge));
        assert_eq!(pace.available_at(1, NOW), Some(NOW + Span::micros(1)));
        assert_eq!(units.available_at(1, NOW), None);
    }
}
