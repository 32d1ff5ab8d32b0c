//! The life of a task, as one table of legal moves.

use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum State {
    /// A time has not come: a delayed start, a `wait` step, the pause before a retry.
    Scheduled,
    /// Asks to start, and is told what it waits for.
    Waiting,
    Running,
    Succeeded,
    Failed,
    TimedOut,
    Cancelled,
    /// A step whose turn came and whose rule said no.
    Skipped,
    /// Waited longer than `start_within`.
    Expired,
    /// Never accepted into the line.
    Refused,
    /// A newer task of its key took its place in line.
    Replaced,
}

impl State {
    pub const ALL: [State; 11] = [
        State::Scheduled,
        State::Waiting,
        State::Running,
        State::Succeeded,
        State::Failed,
        State::TimedOut,
        State::Cancelled,
        State::Skipped,
        State::Expired,
        State::Refused,
        State::Replaced,
    ];

    pub fn is_end(self) -> bool {
        !matches!(self, State::Scheduled | State::Waiting | State::Running)
    }

    /// Whether it ended badly by itself, and nobody ended it from outside.
    pub fn is_failure(self) -> bool {
        matches!(self, State::Failed | State::TimedOut | State::Expired | State::Refused)
    }

    /// The one table of moves. End states are final.
    pub fn may_become(self, next: State) -> bool {
        use State::*;
        match self {
            // A `wait` step succeeds when its time has come.
            Scheduled => {
                matches!(next, Waiting | Succeeded | Failed | TimedOut | Cancelled | Expired | Refused)
            }
            // A task may fail before it starts: its templates did, or it was refused at its action's limit.
            Waiting => {
                matches!(
                    next,
                    Scheduled
                        | Running
                        | Failed
                        | TimedOut
                        | Cancelled
                        | Skipped
                        | Expired
                        | Refused
                        | Replaced
                )
            }
            // Back in line after a lost or handed-back attempt; scheduled before a retry.
            Running => matches!(next, Scheduled | Waiting | Succeeded | Failed | TimedOut | Cancelled),
            Succeeded | Failed | TimedOut | Cancelled | Skipped | Expired | Refused | Replaced => false,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            State::Scheduled => "scheduled",
            State::Waiting => "waiting",
            State::Running => "running",
            State::Succeeded => "succeeded",
            State::Failed => "failed",
            State::TimedOut => "timed_out",
            State::Cancelled => "cancelled",
            State::Skipped => "skipped",
            State::Expired => "expired",
            State::Refused => "refused",
            State::Replaced => "replaced",
        }
    }

    pub fn parse(text: &str) -> Option<State> {
        State::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_states_are_final_and_every_open_state_can_end() {
        for state in State::ALL {
            let moves: Vec<State> = State::ALL.into_iter().filter(|&next| state.may_become(next)).collect();
            assert_eq!(moves.is_empty(), state.is_end(), "{state}");
            assert!(!state.may_become(state), "{state} is no move");
            assert_eq!(State::parse(state.as_str()), Some(state));
            if !state.is_end() {
                assert!(state.may_become(State::Cancelled), "{state} can be cancelled");
            }
        }
        assert_eq!(State::parse("done"), None);
        assert!(!State::Scheduled.may_become(State::Running), "everything that starts has asked");
        assert!(!State::Running.may_become(State::Expired), "what has started cannot expire");
        assert_eq!(format!("{:>10}", State::Failed), "    failed");
    }
}
