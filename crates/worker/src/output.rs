//! What a process wrote, kept within bounds.

use tidegate_core::protocol::Payload;

/// Kept of each output in the result: its end.
pub const KEPT: usize = 64 * 1024;
/// Up to this size all of stdout is read as JSON, although only its end is kept as text.
pub const JSON: usize = 1024 * 1024;

/// The end of a text.
pub(crate) struct Tail {
    text: String,
    most: usize,
    cut: u64,
}

impl Tail {
    pub(crate) fn new(most: usize) -> Tail {
        Tail { text: String::new(), most, cut: 0 }
    }

    pub(crate) fn push(&mut self, text: &str, newline: bool) {
        self.text.push_str(text);
        if newline {
            self.text.push('\n');
        }
        // Cut when twice too long, so that each byte is moved at most once.
        if self.text.len() > 2 * self.most {
            let from = self.start(self.most);
            self.cut += from as u64;
            self.text.drain(..from);
        }
    }

    /// Where the last `most` bytes begin, without cutting a character in two.
    fn start(&self, most: usize) -> usize {
        let from = self.text.len().saturating_sub(most);
        (from..=self.text.len()).find(|&place| self.text.is_char_boundary(place)).unwrap_or(from)
    }

    /// The last `most` bytes, and how many before them are missing.
    fn last(&self, most: usize) -> (&str, u64) {
        let from = self.start(most);
        (&self.text[from..], self.cut + from as u64)
    }

    /// All of it, if nothing is missing.
    fn whole(&self) -> Option<&str> {
        (self.cut == 0 && self.text.len() <= self.most).then_some(self.text.as_str())
    }
}

/// Both outputs of one process.
pub(crate) struct Capture {
    pub(crate) stdout: Tail,
    pub(crate) stderr: Tail,
}

impl Capture {
    pub(crate) fn new() -> Capture {
        Capture { stdout: Tail::new(JSON), stderr: Tail::new(KEPT) }
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
        let (stdout, stdout_cut) = self.stdout.last(KEPT);
        let (stderr, stderr_cut) = self.stderr.last(KEPT);
        let json = self.stdout.whole().and_then(|text| serde_json::from_str(text.trim()).ok());
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
        let mut capture = Capture::new();
        stdout.iter().for_each(|line| capture.stdout.push(line, true));
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
    fn the_complaint_is_the_last_line_that_says_anything() {
        let mut capture = Capture::new();
        assert_eq!(capture.complaint(), None);
        for line in ["first", " the reason ", "", "  "] {
            capture.stderr.push(line, true);
        }
        assert_eq!(capture.complaint(), Some("the reason"));
    }
}
