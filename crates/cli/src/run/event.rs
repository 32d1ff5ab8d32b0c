//! What happened, one thing at a time, in words.

use crate::line::{Line, Tone};
use crate::time::{clock, took};
use jiff::tz::TimeZone;
use tidegate_core::ids::RunId;
use tidegate_core::protocol::Stop;
use tidegate_core::state::State;
use tidegate_core::time::{Moment, Span};

#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    pub at: Moment,
    /// Of whom: `outer/inner#2`.
    pub name: String,
    pub what: What,
}

#[derive(Clone, PartialEq, Debug)]
pub enum What {
    /// Attempt number so many, out of so many.
    Started {
        number: u32,
        of: u32,
    },
    /// A loop over so many items begins.
    Items(u32),
    /// A pause until then.
    Until(Moment),
    Waits(String),
    Retries {
        error: String,
        next: u32,
        of: u32,
        pause: Span,
    },
    /// Back in line: its worker was lost, or gave it back.
    Again {
        error: Option<String>,
    },
    Stopping(Stop),
    Ended {
        state: State,
        took: Option<Span>,
        error: Option<String>,
    },
    /// It ended in another run, and is not run again.
    Reused {
        state: State,
        run: RunId,
    },
    Wrote(String),
    /// It wrote so many lines faster than they could be shown.
    NotShown(usize),
    /// The store cannot be written, in words.
    Outage(String),
    /// It can be again.
    OutageOver(String),
}

impl Event {
    /// One line, with names of up to `width` in a column.
    pub fn line(&self, width: usize, zone: &TimeZone) -> Line {
        let (tone, text) = self.words(zone);
        let line = Line::new().with(Tone::Dim, clock(self.at, zone)).with(Tone::Plain, "  ");
        let line = line.with(Tone::Strong, &self.name).pad(12 + width).with(Tone::Plain, "  ");
        match &self.what {
            What::Wrote(text) => line.with(Tone::Dim, "| ").with(Tone::Plain, text),
            _ => line.with(tone, text),
        }
    }

    fn words(&self, zone: &TimeZone) -> (Tone, String) {
        match &self.what {
            What::Started { number: 1, .. } => (Tone::Plain, "started".to_owned()),
            What::Started { number, of } => (Tone::Plain, format!("started, {}", try_of(*number, *of))),
            What::Items(1) => (Tone::Plain, "started, 1 item".to_owned()),
            What::Items(count) => (Tone::Plain, format!("started, {count} items")),
            What::Until(until) => (Tone::Waits, format!("waits until {}", clock(*until, zone))),
            What::Waits(why) => (Tone::Waits, why.clone()),
            What::Retries { error, next, of, pause } => {
                let pause = took(*pause);
                (Tone::Waits, format!("failed: {error}; {} in {pause}", try_of(*next, *of)))
            }
            What::Again { error: Some(error) } => (Tone::Waits, format!("is back in line: {error}")),
            What::Again { error: None } => (Tone::Waits, "is back in line".to_owned()),
            What::Stopping(why) => (Tone::Waits, stopping(*why).to_owned()),
            What::Ended { state, took: span, error } => {
                let mut text = state_of(*state);
                if let Some(span) = span {
                    text = format!("{text} in {}", took(*span));
                }
                if let Some(error) = error {
                    text = format!("{text}: {error}");
                }
                (tone(*state), text)
            }
            What::Reused { state, run } => (tone(*state), reused(*state, *run)),
            What::Wrote(text) => (Tone::Plain, text.clone()),
            What::NotShown(1) => (Tone::Dim, "… 1 line not shown".to_owned()),
            What::NotShown(count) => (Tone::Dim, format!("… {count} lines not shown")),
            What::Outage(text) => (Tone::Bad, text.clone()),
            What::OutageOver(text) => (Tone::Good, text.clone()),
        }
    }
}

/// `try 2 of 3`.
pub fn try_of(number: u32, of: u32) -> String {
    if of >= number { format!("try {number} of {of}") } else { format!("try {number}") }
}

/// Of a step that is not run again.
pub fn reused(state: State, run: RunId) -> String {
    match state {
        State::Succeeded => format!("reused from {run}"),
        state => format!("{}, reused from {run}", state_of(state)),
    }
}

pub fn state_of(state: State) -> String {
    state.as_str().replace('_', " ")
}

pub fn tone(state: State) -> Tone {
    match state {
        State::Succeeded => Tone::Good,
        State::Failed | State::TimedOut | State::Expired | State::Refused => Tone::Bad,
        State::Running => Tone::Busy,
        State::Waiting | State::Scheduled => Tone::Waits,
        State::Cancelled | State::Skipped | State::Replaced => Tone::Dim,
    }
}

fn stopping(why: Stop) -> &'static str {
    match why {
        Stop::Cancelled => "is being cancelled",
        Stop::TimedOut => "has run out of time and is being stopped",
        Stop::FailedFast => "is being stopped: another step failed",
        Stop::LoopFailed => "is being stopped: too many items failed",
        Stop::Superseded => "is being stopped: a newer one takes its place",
    }
}
