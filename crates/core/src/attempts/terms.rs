//! What a lease's length leaves a worker: how long it may run, how long a process may take to die, how often
//! to ask for more.

use crate::time::Span;

/// How long a process may take to end after it was asked to, unless the worker says otherwise.
pub const GRACE: Span = Span::seconds(5);

/// Room for messages under way and for a scheduler that is late.
const SLACK: Span = Span::millis(500);

/// How long a report may go unacknowledged, at most.
const REPEAT: Span = Span::seconds(1);

/// The parts of one lease.
///
/// ```text
/// |---------------- usable ----------------|-- grace --|- slack -|- drift -|
/// granted                               deadline   all is gone        the engine takes it away
/// ```
///
/// Drift (1 % of the length) covers clocks that run at different speeds. The grace is what was asked for, at
/// most a third of the length. The slack is half a second, at most a twentieth of the length, so that a lease
/// of one second still leaves 606 ms: without this cap 157 ms would be left, less than the engine needs to
/// answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    length: Span,
    grace: Span,
    usable: Span,
}

impl Terms {
    pub fn new(length: Span, grace: Span) -> Terms {
        let grace = grace.min(length.third());
        let slack = SLACK.min(Span(length.0 / 20));
        let drift = Span(length.0 / 100);
        let margin = drift + slack + grace;
        Terms { length, grace, usable: Span(length.0.saturating_sub(margin.0)) }
    }

    pub fn length(self) -> Span {
        self.length
    }

    pub fn grace(self) -> Span {
        self.grace
    }

    /// From the grant or renewal to the worker's own deadline.
    pub fn usable(self) -> Span {
        self.usable
    }

    /// The same for a lease of which only `left` is left: what is gone is gone from the usable part.
    pub fn usable_of(self, left: Span) -> Span {
        Span(self.usable.0.saturating_sub(self.length.0.saturating_sub(left.0)))
    }

    /// How often to ask for a renewal: a third of what is usable, so that two answers may be lost or late
    /// before anything has to die. Never less than a millisecond, so that no lease makes a worker spin.
    pub fn beat(self) -> Span {
        self.usable.third().max(Span::millis(1))
    }

    /// How soon to say again what was not acknowledged: somebody waits for what an ended attempt still holds.
    pub fn repeat(self) -> Span {
        self.beat().min(REPEAT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_lease_leaves_most_of_its_length() {
        let terms = Terms::new(Span::seconds(30), GRACE);
        assert_eq!(terms.grace(), Span::seconds(5));
        assert_eq!(terms.usable(), Span::millis(24_200), "30 s less 300 ms, 500 ms and 5 s");
        assert!(terms.beat().times(2) < terms.usable());
    }

    #[test]
    fn a_lease_of_one_second_still_works() {
        let terms = Terms::new(Span::seconds(1), GRACE);
        assert_eq!(terms.grace(), Span::micros(333_333));
        assert_eq!(terms.usable(), Span::micros(606_667));
        assert_eq!(terms.beat(), Span::micros(202_222));
    }

    #[test]
    fn parts_never_exceed_the_whole() {
        for length in [0, 1, 2, 3, 19, 20, 99, 100, 1_000, 10_000_000, u64::MAX] {
            let terms = Terms::new(Span(length), Span(u64::MAX));
            assert!(terms.usable() + terms.grace() <= Span(length), "{length}");
            assert!(terms.beat() >= Span::millis(1));
        }
    }
}
