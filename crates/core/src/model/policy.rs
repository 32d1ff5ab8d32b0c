//! What operators and authors say about actions, tags and pools: capacity, pace, and what happens in a crowd.

use super::{Requirement, Retry};
use crate::ids::Name;
use crate::time::Span;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a newcomer does when its action's (or flow's) own limit refuses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum WhenBusy {
    #[default]
    Queue,
    Reject,
    /// The waiting task of that key ends `replaced` and the newcomer takes its place in line.
    Replace,
    /// The longest-running tasks of that key are told to stop, as few as make room.
    CancelRunning,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum WhenFull {
    #[default]
    Reject,
    DropOldest,
}

/// What a newcomer does when a rate or quota is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum WhenExhausted {
    #[default]
    Wait,
    Reject,
}

/// `limit` starts per `per`, of which `burst` may come at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RatePolicy {
    pub limit: u32,
    pub per: Span,
    pub burst: u32,
    pub when_busy: WhenExhausted,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum QuotaWindow {
    Minute,
    Hour,
    Day,
    Week,
    Month,
}

impl QuotaWindow {
    pub fn as_str(self) -> &'static str {
        match self {
            QuotaWindow::Minute => "minute",
            QuotaWindow::Hour => "hour",
            QuotaWindow::Day => "day",
            QuotaWindow::Week => "week",
            QuotaWindow::Month => "month",
        }
    }

    /// How long it lasts, near enough for an estimate.
    pub fn roughly(self) -> Span {
        match self {
            QuotaWindow::Minute => Span::minutes(1),
            QuotaWindow::Hour => Span::hours(1),
            QuotaWindow::Day => Span::hours(24),
            QuotaWindow::Week => Span::hours(7 * 24),
            QuotaWindow::Month => Span::hours(30 * 24),
        }
    }
}

/// `limit` starts in each calendar window of `zone`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QuotaPolicy {
    pub limit: u32,
    pub window: QuotaWindow,
    /// An IANA name; `UTC` unless told otherwise.
    pub zone: Name,
    pub when_busy: WhenExhausted,
}

/// The line of an action: accepted root tasks that have not started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Line {
    pub max_length: u32,
    pub start_within: Option<Span>,
    pub when_full: WhenFull,
}

impl Default for Line {
    fn default() -> Self {
        Line { max_length: 10_000, start_within: Some(Span::hours(1)), when_full: WhenFull::Reject }
    }
}

/// Where a limit was written down: `file` and `line`, so that an explanation can point at it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Origin {
    pub file: Option<Name>,
    pub line: u32,
}

impl Origin {
    /// The same file on that line, if it is known.
    pub fn on(&self, line: Option<u32>) -> Origin {
        Origin { file: self.file.clone(), line: line.unwrap_or(self.line) }
    }
}

/// Nothing, unless it was written down in a file.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{file}:{}", self.line),
            None => Ok(()),
        }
    }
}

/// What an action says about itself. `key` was rendered into the task before it was submitted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ActionPolicy {
    /// `pack.name`, or a plain name.
    pub action: Name,
    pub each: Each,
    /// `each` holds for every key of its own. Otherwise the keys of its tasks do not matter.
    pub keyed: bool,
    pub when_busy: WhenBusy,
    pub line: Line,
    /// Pools claimed by every attempt of the action, besides those its step names.
    pub pools: Vec<(Name, u32)>,
    pub needs: Requirement,
    pub retry: Retry,
    pub max_losses: u32,
    /// Bounds the running time of one attempt.
    pub timeout: Option<Span>,
    pub origin: Origin,
}

impl ActionPolicy {
    /// What holds for an action that nobody said anything about.
    pub fn silent(action: Name) -> Self {
        ActionPolicy {
            needs: Requirement::function(action.clone()),
            action,
            each: Each::default(),
            keyed: true,
            when_busy: WhenBusy::Queue,
            line: Line::default(),
            pools: Vec::new(),
            retry: Retry::ONCE,
            max_losses: super::MAX_LOSSES,
            timeout: None,
            origin: Origin::default(),
        }
    }
}

/// Bounds that hold for each action (and key) they apply to. The most specific one wins, part by part.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Each {
    pub concurrency: Option<u32>,
    pub rate: Option<RatePolicy>,
    pub quota: Option<QuotaPolicy>,
    #[serde(default)]
    pub lines: EachLines,
}

impl Each {
    pub fn is_silent(&self) -> bool {
        self.concurrency.is_none() && self.rate.is_none() && self.quota.is_none()
    }
}

/// On which line of its file each part stands, if it stands in one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct EachLines {
    pub concurrency: Option<u32>,
    pub rate: Option<u32>,
    pub quota: Option<u32>,
}

/// Bounds on all matching actions together; they always add.
pub type Total = Each;

/// `{ match: "billing.*", each: …, total: … }`. A pattern is a literal prefix and perhaps a final `*`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MatchRule {
    pub pattern: Name,
    pub each: Each,
    pub total: Total,
    pub origin: Origin,
}

impl MatchRule {
    pub fn matches(&self, action: &str) -> bool {
        match self.pattern.as_str().strip_suffix('*') {
            Some(prefix) => action.starts_with(prefix),
            None => self.pattern.as_str() == action,
        }
    }

    /// Length of the literal prefix; an exact name is more specific than any pattern.
    pub fn specificity(&self) -> (bool, usize) {
        let text = self.pattern.as_str();
        (!text.ends_with('*'), text.trim_end_matches('*').len())
    }
}

/// A bound on runs that carry a tag.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TagLimit {
    pub tag: Name,
    /// `Some`: runs with exactly this value share the bound; `None`: each value has its own.
    pub value: Option<Name>,
    pub limit: u32,
    pub origin: Origin,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Pool {
    pub name: Name,
    pub slots: u32,
    pub lease: Option<Span>,
    pub origin: Origin,
}

/// The operator's documents: capacity, as all files together declare it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LimitsDocument {
    /// Runs of flows at once; `None` is unlimited.
    pub runs: Option<u32>,
    pub runs_origin: Origin,
    pub tags: Vec<TagLimit>,
    pub actions: Vec<MatchRule>,
    pub pools: Vec<Pool>,
}

impl Default for LimitsDocument {
    fn default() -> Self {
        LimitsDocument {
            runs: Some(super::RUNS),
            runs_origin: Origin::default(),
            tags: Vec::new(),
            actions: Vec::new(),
            pools: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(pattern: &str) -> MatchRule {
        MatchRule {
            pattern: pattern.into(),
            each: Each::default(),
            total: Each::default(),
            origin: Origin::default(),
        }
    }

    #[test]
    fn patterns_match_by_prefix_and_the_longest_is_most_specific() {
        assert!(rule("billing.*").matches("billing.charge"));
        assert!(!rule("billing.*").matches("billing"));
        assert!(rule("*").matches("anything"));
        assert!(rule("billing.charge").matches("billing.charge"));
        assert!(!rule("billing.charge").matches("billing.charges"));
        assert!(rule("billing.*").specificity() > rule("*").specificity());
        assert!(rule("b").specificity() > rule("billing.*").specificity());
    }
}
