//! The file: a document, then commands, remarks, and what must be said. Reading it, writing it, comparing it.

use std::fmt;

const RULE: &str = "====";

pub struct Script {
    pub document: String,
    parts: Vec<Part>,
}

enum Part {
    /// A comment or an empty line, kept as it is.
    Remark(String),
    Command(Command),
}

pub struct Command {
    /// Where it stands in the file.
    pub line: usize,
    pub words: String,
    pub body: Vec<String>,
    expected: Vec<String>,
}

impl Script {
    pub fn read(text: &str) -> Result<Script, String> {
        let (mut document, mut parts, mut in_script) = (String::new(), Vec::new(), false);
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_end();
            if !in_script {
                in_script = line == RULE;
                if !in_script {
                    document += line;
                    document.push('\n');
                }
            } else if let Some(words) = line.strip_prefix('>') {
                let (words, line) = (words.trim().to_owned(), number + 1);
                parts.push(Part::Command(Command { line, words, body: Vec::new(), expected: Vec::new() }));
            } else if line.is_empty() || line.starts_with('#') {
                parts.push(Part::Remark(line.to_owned()));
            } else {
                let Some(Part::Command(command)) = parts.last_mut() else {
                    return Err(format!("line {}: `{line}` follows no command", number + 1));
                };
                match line.strip_prefix('|') {
                    Some(body) => command.body.push(body.strip_prefix(' ').unwrap_or(body).to_owned()),
                    None => command.expected.push(line.to_owned()),
                }
            }
        }
        if in_script { Ok(Script { document, parts }) } else { Err(format!("no line says {RULE}")) }
    }

    pub fn commands(&self) -> impl Iterator<Item = &Command> {
        self.parts.iter().filter_map(|part| match part {
            Part::Command(command) => Some(command),
            Part::Remark(_) => None,
        })
    }

    /// Expects what was said.
    pub fn bless(&mut self, said: Vec<Vec<String>>) {
        let commands = self.parts.iter_mut().filter_map(|part| match part {
            Part::Command(command) => Some(command),
            Part::Remark(_) => None,
        });
        for (command, said) in commands.zip(said) {
            command.expected = said;
        }
    }

    /// Every command after which something else was said than expected.
    pub fn difference(&self, said: &[Vec<String>]) -> Option<String> {
        let differ = self.commands().zip(said).filter(|(command, said)| command.expected != **said);
        let mut text = String::new();
        for (command, said) in differ {
            text += &format!(":{}\n    > {}\n", command.line, command.words);
            for (sign, line) in compare(&command.expected, said) {
                text += &format!("  {sign} {line}\n");
            }
        }
        (!text.is_empty()).then_some(text)
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}{RULE}", self.document)?;
        for part in &self.parts {
            match part {
                Part::Remark(line) => writeln!(f, "{line}")?,
                Part::Command(command) => {
                    writeln!(f, "> {}", command.words)?;
                    command.body.iter().try_for_each(|line| writeln!(f, "| {line}"))?;
                    command.expected.iter().try_for_each(|line| writeln!(f, "{line}"))?;
                }
            }
        }
        Ok(())
    }
}

/// Lines with a sign: `-` was expected and not said, `+` was said and not expected.
fn compare<'a>(expected: &'a [String], said: &'a [String]) -> Vec<(char, &'a str)> {
    let (rows, columns) = (expected.len(), said.len());
    // The length of the longest common rest, from each place on.
    let mut shared = vec![vec![0usize; columns + 1]; rows + 1];
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            shared[row][column] = if expected[row] == said[column] {
                shared[row + 1][column + 1] + 1
            } else {
                shared[row + 1][column].max(shared[row][column + 1])
            };
        }
    }
    let (mut row, mut column, mut lines) = (0, 0, Vec::new());
    while row < rows || column < columns {
        if row < rows && column < columns && expected[row] == said[column] {
            lines.push((' ', said[column].as_str()));
            (row, column) = (row + 1, column + 1);
        } else if column == columns || (row < rows && shared[row + 1][column] >= shared[row][column + 1]) {
            lines.push(('-', expected[row].as_str()));
            row += 1;
        } else {
            lines.push(('+', said[column].as_str()));
            column += 1;
        }
    }
    lines
}

#[test]
fn a_script_reads_back_and_says_where_it_differs() {
    let text = "pools: {}\n====\n# A remark.\n> job a x\n| body\none\ntwo\n\n> finish a\n";
    let mut script = Script::read(text).expect("a good script");
    assert_eq!(script.to_string(), text);
    let said = vec![vec!["two".to_owned(), "three".to_owned()], Vec::new()];
    let difference = script.difference(&said).expect("it differs");
    assert_eq!(difference, ":4\n    > job a x\n  - one\n    two\n  + three\n");
    script.bless(said.clone());
    assert_eq!(script.difference(&said), None);
    assert!(Script::read("a: 1\n").is_err(), "no script");
    assert!(Script::read("====\nsaid\n").is_err(), "nobody was asked");
}
