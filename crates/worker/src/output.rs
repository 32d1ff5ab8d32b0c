//! What a process wrote, kept within bounds.

use crate::guardian::wire::Stream;
use tidegate_core::protocol::{LARGEST_OUTPUT, Payload};

/// Kept of each output in the result: its end.
pub const KEPT: usize = 64 * 1024;
/// Up to this size all of stdout is read as JSON, although only its end is kept as text. Beside it there is room for both
/// texts, of which each byte may need six.
pub const JSON: usize = LARGEST_OUTPUT - 16 * KEPT;

/// The end of a text.
#[derive(Default)]
pub(crate) struct Tail {
    text: String,
    cut: u64,
}

impl Tail {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        // Cut when twice too long, so that each byte is moved at most once.
        if self.text.len() > 2 * KEPT {
            let from = self.start();
            self.cut += from as u64;
            self.text.drain(..from);
        }
    }

    /// Where what is kept begins, without cutting a character in two.
    fn start(&self) -> usize {
        let from = self.text.len().saturating_sub(KEPT);
        (from..=self.text.len()).find(|&place| self.text.is_char_boundary(place)).unwrap_or(from)
    }

    /// What is kept, and how many bytes before it are missing.
    fn last(&self) -> (&str, u64) {
        let from = self.start();
        (&self.text[from..], self.cut + from as u64)
    }
}

/// All of a text, as long as it may be JSON.
#[derive(Default)]
enum Whole {
    #[default]
    Blank,
    Begun(String),
    TooLongOrNoJson,
}

impl Whole {
    fn push(&mut self, text: &str) {
        match self {
            Whole::Blank => match text.trim_ascii_start() {
                "" => {}
                begin if begin.len() <= JSON && begin.starts_with(begins_json) => {
                    *self = Whole::Begun(begin.to_owned());
                }
                _ => *self = Whole::TooLongOrNoJson,
            },
            Whole::Begun(begin) if begin.len() + text.len() <= JSON => begin.push_str(text),
            Whole::Begun(_) => *self = Whole::TooLongOrNoJson,
            Whole::TooLongOrNoJson => {}
        }
    }

    fn json(&self) -> Option<&serde_json::value::RawValue> {
        match self {
            Whole::Begun(text) => serde_json::from_str(text.trim_ascii_end()).ok(),
            Whole::Blank | Whole::TooLongOrNoJson => None,
        }
    }
}

/// Most of what is no JSON shows it with its first letter, and need not be kept.
fn begins_json(letter: char) -> bool {
    matches!(letter, '{' | '[' | '"' | '-' | '0'..='9' | 't' | 'f' | 'n')
}

/// Both outputs of one process.
#[derive(Default)]
pub(crate) struct Capture {
    stdout: Tail,
    stderr: Tail,
    whole_stdout: Whole,
}

impl Capture {
    pub(crate) fn push(&mut self, stream: Stream, text: &str, newline: bool) {
        for text in [text, if newline { "\n" } else { "" }] {
            match stream {
                Stream::Stdout => {
                    self.stdout.push(text);
                    self.whole_stdout.push(text);
                }
                Stream::Stderr => self.stderr.push(text),
            }
        }
    }

    /// The last line of stderr that says anything: mostly the reason of a failure.
    pub(crate) fn complaint(&self) -> Option<&str> {
        const LONGEST: usize = 500;
        let line = self.stderr.text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
        Some(line.char_indices().nth(LONGEST).map_or(line, |(end, _)| &line[..end]))
    }

    /// The output that flows see: `{exit_code, stdout, stderr, json?}`, and how many bytes are missing at the
    /// beginning of a text that was too long.
    pub(crate) fn payload(&self, exit_code: Option<i32>) -> Payload {
        let (stdout, stdout_cut) = self.stdout.last();
        let (stderr, stderr_cut) = self.stderr.last();
        let json = self.whole_stdout.json();
        let output = Output { exit_code, stdout, stdout_cut, stderr, stderr_cut, json };
        // Text and numbers always serialise; `null` is only there to say so without a panic.
        serde_json::to_vec(&output).map_or_else(|_| Payload::null(), Payload::new)
    }
}

#[derive(serde::Serialize)]
struct Output<'a> {
    /// `null` if a signal ended it.
    exit_code: Option<i32>,
    stdout: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    stdout_cut: u64,
    stderr: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    stderr_cut: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<&'a serde_json::value::RawValue>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn payload(stdout: &[&str]) -> Value {
        let mut capture = Capture::default();
        stdout.iter().for_each(|line| capture.push(Stream::Stdout, line, true));
        serde_json::from_slice(capture.payload(Some(0)).bytes()).unwrap()
    }

    #[test]
    fn stdout_that_is_json_is_given_as_such() {
        let with_json = payload(&["{\"a\":", " [1, 2.50]}"]);
        assert_eq!(with_json["json"], json!({"a": [1, 2.5]}));
        assert_eq!(with_json["stdout"], "{\"a\":\n [1, 2.50]}\n");
        assert_eq!(payload(&["done"]), json!({"exit_code": 0, "stdout": "done\n", "stderr": ""}));
        assert_eq!(payload(&[]).get("json"), None, "nothing is not JSON");
    }

    #[test]
    fn the_end_of_a_long_text_is_kept_and_the_cut_is_told() {
        let line = "é".repeat(1_000);
        let lines = vec![line.as_str(); 40];
        let long = payload(&lines);
        let kept = long["stdout"].as_str().unwrap();
        assert!(kept.len() <= KEPT && kept.len() > KEPT - 4 && kept.ends_with("é\n"));
        assert_eq!(kept.len() as u64 + long["stdout_cut"].as_u64().unwrap(), 40 * 2_001);
        let endless = payload(&vec![line.as_str(); 2_000]);
        let (kept, cut) = (endless["stdout"].as_str().unwrap(), endless["stdout_cut"].as_u64().unwrap());
        assert_eq!(kept.len() as u64 + cut, 2_000 * 2_001);
    }

    #[test]
    fn json_longer_than_the_text_kept_is_still_read_whole() {
        let list = format!("[{}1]", "1,".repeat(KEPT));
        let output = payload(&[&list]);
        assert_eq!(output["json"].as_array().unwrap().len(), KEPT + 1);
        assert!(output["stdout_cut"].as_u64().unwrap() > 0);
    }

    #[test]
    fn json_is_read_up_to_its_bound_and_always_fits_into_an_output() {
        let worst = "\u{1}".repeat(KEPT);
        let mut capture = Capture::default();
        capture.push(Stream::Stdout, &format!("\"{}", "x".repeat(JSON - KEPT - 2)), false);
        capture.push(Stream::Stdout, &" ".repeat(KEPT), false);
        capture.push(Stream::Stdout, "\"", false);
        capture.push(Stream::Stderr, &worst, false);
        let output = capture.payload(Some(0));
        assert!(output.bytes().len() > JSON && output.bytes().len() <= LARGEST_OUTPUT);
        capture.push(Stream::Stdout, "\n", false);
        assert!(capture.payload(Some(0)).bytes().len() < KEPT * 8, "one byte more is too much");
    }

    #[test]
    fn what_does_not_begin_like_json_is_not_kept() {
        let mut capture = Capture::default();
        capture.push(Stream::Stdout, "  \n", true);
        assert!(matches!(capture.whole_stdout, Whole::Blank));
        capture.push(Stream::Stdout, " [1,", false);
        assert!(matches!(&capture.whole_stdout, Whole::Begun(text) if text == "[1,"));
        let mut capture = Capture::default();
        capture.push(Stream::Stdout, "Listening", true);
        assert!(matches!(capture.whole_stdout, Whole::TooLongOrNoJson));
    }

    #[test]
    fn the_complaint_is_the_last_line_that_says_anything() {
        let mut capture = Capture::default();
        assert_eq!(capture.complaint(), None);
        for line in ["first", " the reason ", "", "  "] {
            capture.push(Stream::Stderr, line, true);
        }
        assert_eq!(capture.complaint(), Some("the reason"));
    }
}
