//! How long history is kept: a policy of two spans, and what it means at one moment.

use std::time::Duration;
use tidegate_core::time::{Moment, Span};

/// How long what has ended is kept, by how its root ended. [`Span::MAX`] is for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    pub succeeded: Span,
    /// What ended in any other way: somebody may still want to know why.
    pub failed: Span,
}

impl Default for Retention {
    fn default() -> Self {
        Retention { succeeded: Span::days(30), failed: Span::days(90) }
    }
}

/// The same however it ended.
impl From<Duration> for Retention {
    fn from(span: Duration) -> Self {
        Retention::of_all(span.into())
    }
}

impl Retention {
    pub const FOREVER: Retention = Retention::of_all(Span::MAX);

    /// The same however it ended.
    pub const fn of_all(span: Span) -> Self {
        Retention { succeeded: span, failed: span }
    }

    pub fn at_least(self, span: Span) -> Self {
        Retention { succeeded: self.succeeded.max(span), failed: self.failed.max(span) }
    }

    /// What this policy lets go of at a moment.
    pub fn before(self, now: Moment) -> Before {
        Before { succeeded: now - self.succeeded, failed: now - self.failed }
    }
}

/// Roots that ended before these moments may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Before {
    pub succeeded: Moment,
    pub failed: Moment,
}

impl Before {
    /// The same however it ended.
    pub const fn all(moment: Moment) -> Self {
        Before { succeeded: moment, failed: moment }
    }

    /// One outcome after the other: whether it is success, and the moment.
    pub fn outcomes(self) -> [(bool, Moment); 2] {
        [(true, self.succeeded), (false, self.failed)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_two_moments_and_for_ever_is_before_everything() {
        let now = Moment(0) + Span::days(100);
        let before = Retention::default().before(now);
        assert_eq!(before.outcomes(), [(true, now - Span::days(30)), (false, now - Span::days(90))]);
        let first = Moment(-1_000_000_000_000_000_000);
        assert!(Retention::FOREVER.before(now).outcomes().iter().all(|(_, before)| *before < first));
        let short = Retention { succeeded: Span::ZERO, failed: Span::MAX }.at_least(Span::minutes(1));
        assert_eq!(short, Retention { succeeded: Span::minutes(1), failed: Span::MAX });
    }
}
