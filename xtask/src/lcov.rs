//! Reading a coverage trace in the LCOV format, as far as line coverage goes.
//!
//! Test code is left out: a test module is always reached by its own tests, and would flatter the figure.

use std::collections::BTreeMap;

/// How often each line of a file that holds code was reached.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lines(BTreeMap<usize, u64>);

impl Lines {
    pub fn total(&self) -> usize {
        self.0.len()
    }

    pub fn reached(&self) -> usize {
        self.0.values().filter(|count| **count > 0).count()
    }

    /// Line numbers never reached, as ranges: `12, 30-34`. Lines without code do not end a range.
    pub fn missed(&self) -> String {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        let mut open = false;
        for (line, count) in &self.0 {
            match ranges.last_mut() {
                _ if *count > 0 => open = false,
                Some(range) if open => range.1 = *line,
                _ => {
                    ranges.push((*line, *line));
                    open = true;
                }
            }
        }
        let name = |(from, to): &(usize, usize)| {
            if from == to { from.to_string() } else { format!("{from}-{to}") }
        };
        ranges.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// Forgets the test module at the end of a file.
    pub fn without_tests(mut self, source: &str) -> Self {
        let lines: Vec<&str> = source.lines().collect();
        let begins = |pair: &[&str]| {
            pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
        };
        if let Some(before) = lines.windows(2).position(begins) {
            self.0.retain(|line, _| *line <= before);
        }
        self
    }
}

/// The lines of each file of a trace. A line instantiated several times counts as reached if any was.
pub fn parse(trace: &str) -> BTreeMap<String, Lines> {
    let mut files: BTreeMap<String, Lines> = BTreeMap::new();
    let mut current = String::new();
    for record in trace.lines() {
        if let Some(path) = record.strip_prefix("SF:") {
            current = path.to_owned();
        } else if let Some((line, count)) = record.strip_prefix("DA:").and_then(|data| data.split_once(',')) {
            // A count may be followed by a checksum.
            let count = count.split(',').next().unwrap_or_default();
            if let (Ok(line), Ok(count)) = (line.parse(), count.parse::<u64>()) {
                let lines = &mut files.entry(current.clone()).or_default().0;
                let known = lines.entry(line).or_default();
                *known = (*known).max(count);
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "SF:a.rs\nDA:1,1\nDA:2,0\nDA:4,0\nDA:5,7\nDA:9,0\nend_of_record\n\
                         SF:b.rs\nDA:1,0\nDA:1,3,checksum\nend_of_record\n";

    #[test]
    fn lines_are_counted_a_file() {
        let files = parse(TRACE);
        assert_eq!((files["a.rs"].reached(), files["a.rs"].total()), (2, 5));
        assert_eq!((files["b.rs"].reached(), files["b.rs"].total()), (1, 1));
    }

    #[test]
    fn missed_lines_are_named_as_ranges() {
        assert_eq!(parse(TRACE)["a.rs"].missed(), "2-4, 9");
        assert_eq!(parse(TRACE)["b.rs"].missed(), "");
    }

    #[test]
    fn the_test_module_does_not_count() {
        let source = "fn a() {}\n\n\n\nfn b() {}\n#[cfg(test)]\nmod tests {\n}\n\n";
        let lines = parse(TRACE).remove("a.rs").expect("the trace has it").without_tests(source);
        assert_eq!((lines.reached(), lines.total()), (2, 4));
    }
}
