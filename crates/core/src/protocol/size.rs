//! How many bytes there may be of what others give us. Stores, messages and memory have an end, and what does not fit must
//! be refused where it comes in: once it was accepted, it would be tried for ever.
//!
//! Counted is what callers choose: payloads, names and errors. What we add to them is small, and not counted.

use super::{
    Command, Evaluation, Failure, Finish, Outcome, Past, Payload, Refusal, Rendered, Submission, Submit,
};
use std::fmt;

/// Of one submission (with its tags), and of what a run puts out.
pub const LARGEST_PAYLOAD: usize = 16 * MIB;
/// Of what an attempt puts out, and of the list of a loop, which is often made of one.
pub const LARGEST_OUTPUT: usize = 64 * MIB;
/// Of what is said about one failure; the rest is cut off.
pub const LONGEST_ERROR: usize = 64 * KIB;
/// Of what is sent, rendered or committed together, before the last of it is added: one thing is always taken.
pub const BATCH_BYTES: usize = 8 * MIB;

const KIB: usize = 1_024;
const MIB: usize = KIB * KIB;

/// Refuses what is larger than a payload may be.
pub fn check_size(size: usize) -> Result<(), Refusal> {
    within(size, LARGEST_PAYLOAD)
}

fn within(size: usize, most: usize) -> Result<(), Refusal> {
    match size > most {
        true => Err(Refusal::TooLarge { size, most }),
        false => Ok(()),
    }
}

/// A number of bytes, as people read it. Never less than it is.
pub(super) struct Readable(pub usize);

impl fmt::Display for Readable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            bytes if bytes < KIB => return write!(f, "{bytes} bytes"),
            bytes if bytes < MIB => (KIB, "KiB"),
            _ => (MIB, "MiB"),
        };
        let tenths = (u128::from(self.0 as u64) * 10).div_ceil(unit as u128);
        match tenths % 10 {
            0 => write!(f, "{} {name}", tenths / 10),
            rest => write!(f, "{}.{rest} {name}", tenths / 10),
        }
    }
}

impl Submission {
    pub fn payload(&self) -> &Payload {
        match self {
            Submission::Job { order, .. } => order,
            Submission::Run { inputs, .. } => inputs,
        }
    }
}

impl Submit {
    pub fn size(&self) -> usize {
        let tags = self.tags.iter().map(|(tag, value)| tag.as_str().len() + value.as_str().len());
        self.what.payload().bytes().len() + tags.sum::<usize>()
    }
}

impl Past {
    fn size(&self) -> usize {
        self.root.payload.as_ref().map_or(0, |payload| payload.bytes().len())
    }
}

impl Command {
    pub fn size(&self) -> usize {
        match self {
            Command::Submit(submit) => submit.size(),
            Command::Post { submit, flaw } => submit.size() + flaw.as_ref().map_or(0, String::len),
            Command::Retry(retry) => retry.past.as_ref().map_or(0, |past| past.size()),
            Command::Finish(finish) => finish.size(),
            Command::Evaluated { evaluation, .. } => evaluation.size(),
            Command::By { command, .. } => command.size(),
            // Definitions are bounded where they are read; the others are made of names and numbers.
            _ => 0,
        }
    }
}

impl Finish {
    pub fn size(&self) -> usize {
        match &self.outcome {
            Outcome::Succeeded(output) => output.bytes().len(),
            Outcome::Failed(Failure { error, output, .. }) => {
                error.len() + output.as_ref().map_or(0, |output| output.bytes().len())
            }
            Outcome::Stopped | Outcome::HandedBack => 0,
        }
    }
}

impl Rendered {
    fn size(&self) -> usize {
        self.order.bytes().len() + self.key.as_ref().map_or(0, |key| key.as_str().len())
    }
}

impl Evaluation {
    fn size(&self) -> usize {
        match self {
            Evaluation::Order(rendered) => rendered.size(),
            Evaluation::List { items: payload, .. }
            | Evaluation::SubFlow { inputs: payload }
            | Evaluation::Outputs(payload) => payload.bytes().len(),
            Evaluation::Items(items) => items.iter().map(size_of_item).sum(),
            Evaluation::Failed { error } => error.len(),
            Evaluation::Skipped | Evaluation::Until(_) => 0,
        }
    }
}

/// Of one item of a loop, or of why it cannot be rendered.
pub fn size_of_item(item: &Result<Rendered, String>) -> usize {
    item.as_ref().map_or_else(String::len, Rendered::size)
}

impl Outcome {
    /// The same within bounds: an output that is too large is a failure, and an error that is too long is cut.
    pub fn within_bounds(self) -> Outcome {
        match self {
            Outcome::Succeeded(output) => match within(output.bytes().len(), LARGEST_OUTPUT) {
                Ok(()) => Outcome::Succeeded(output),
                Err(refusal) => Outcome::failed(format!("its output: {refusal}")),
            },
            Outcome::Failed(Failure { error, output, cause, retry_after }) => Outcome::Failed(Failure {
                error: cut(error),
                output: output.filter(|output| output.bytes().len() <= LARGEST_OUTPUT),
                cause,
                retry_after,
            }),
            Outcome::Stopped | Outcome::HandedBack => self,
        }
    }
}

/// As much of an error as is kept.
pub(crate) fn cut(mut error: String) -> String {
    if error.len() > LONGEST_ERROR {
        let end = (0..=LONGEST_ERROR).rev().find(|&end| error.is_char_boundary(end)).unwrap_or(0);
        error.truncate(end);
        error.push('…');
    }
    error
}

#[cfg(test)]
mod tests {
    use super::super::{Body, Life, NodeRow, Retry, StepBody, StepKind};
    use super::*;
    use crate::ids::{NodeId, RunId};
    use crate::state::State;
    use crate::time::Moment;

    #[test]
    fn sizes_are_read_by_people() {
        let cases = [
            (0, "0 bytes"),
            (1_023, "1023 bytes"),
            (1_024, "1 KiB"),
            (1_025, "1.1 KiB"),
            (LARGEST_PAYLOAD, "16 MiB"),
            (LARGEST_PAYLOAD + 1, "16.1 MiB"),
            (usize::MAX, "17592186044416 MiB"),
        ];
        for (bytes, read) in cases {
            assert_eq!(Readable(bytes).to_string(), read);
        }
    }

    #[test]
    fn an_output_that_is_too_large_is_a_failure_that_says_so() {
        let largest = Outcome::Succeeded(Payload::new(vec![b'1'; LARGEST_OUTPUT]));
        assert!(matches!(largest.within_bounds(), Outcome::Succeeded(_)));
        let larger = Payload::new(vec![b'1'; LARGEST_OUTPUT + 1]);
        let error = "its output: it is too large, it has 64.1 MiB and 64 MiB are allowed".to_owned();
        let failed = Outcome::Succeeded(larger.clone()).within_bounds();
        assert!(failed == Outcome::failed(error));
        let failed = Outcome::Failed(Failure { output: Some(larger), ..Failure::new("boom") });
        assert!(failed.within_bounds() == Outcome::failed("boom"));
        let small = Outcome::Failed(Failure { output: Some(Payload::null()), ..Failure::new("boom") });
        assert_eq!(small.clone().within_bounds(), small);
        assert_eq!(Outcome::Stopped.within_bounds(), Outcome::Stopped);
    }

    #[test]
    fn an_error_is_cut_between_two_letters() {
        assert_eq!(cut("x".repeat(LONGEST_ERROR)), "x".repeat(LONGEST_ERROR));
        assert_eq!(cut("x".repeat(LONGEST_ERROR + 1)), "x".repeat(LONGEST_ERROR) + "…");
        let odd = format!("x{}", "é".repeat(LONGEST_ERROR));
        assert_eq!(cut(odd.clone()), format!("{}…", &odd[..LONGEST_ERROR - 1]));
    }

    #[test]
    fn everything_that_comes_with_a_command_counts() {
        let (payload, name) = (|| Payload::new("12345"), || "abc".into());
        let submit = Submit {
            id: RunId(1),
            what: Submission::Job { action: name(), key: None, order: payload() },
            tags: vec![(name(), name())],
            priority: 0,
            due: None,
            idempotency: None,
        };
        assert_eq!(Command::Submit(submit.clone()).size(), 11);
        assert_eq!(Command::Post { submit, flaw: Some("1234".to_owned()) }.size(), 15);
        let retry = Retry { id: RunId(2), of: RunId(1), from_start: false, queue: None, past: None };
        assert_eq!(Command::Retry(retry.clone()).size(), 0);
        let root = NodeRow {
            node: NodeId(1),
            parent: None,
            root: 1,
            priority: 0,
            accepted: Moment(0),
            body: Body::Step(StepBody { index: 0, kind: StepKind::Nothing, start_by: None }),
            payload: Some(payload()),
            life: Life::new(State::Failed),
        };
        let past = Some(Box::new(Past { root, steps: Vec::new() }));
        assert_eq!(Command::Retry(Retry { past, ..retry }).size(), 5);
        let question = super::super::Question::Outputs { run: NodeId(1) };
        let evaluated = |evaluation| Command::Evaluated { question, evaluation }.size();
        let item = Rendered { order: payload(), key: Some(name()) };
        assert_eq!(evaluated(Evaluation::Items(vec![Ok(item.clone()), Err("12".to_owned())])), 10);
        assert_eq!(evaluated(Evaluation::Order(item)), 8);
        assert_eq!(evaluated(Evaluation::List { items: payload(), count: 1 }), 5);
        assert_eq!(evaluated(Evaluation::Failed { error: "123".to_owned() }), 3);
        assert_eq!(Command::Wake.size(), 0);
    }
}
