//! What a server answers, in the form that was asked for, once or again and again.

use crate::args::{Form, Shown};
use crate::failure::{Exit, Failure};
use crate::out::{print, say};
use crate::server::{connect, failed};
use crate::time::took;
use serde_json::Value as Json;
use std::io::IsTerminal;
use std::time::Duration;
use tidegate_core::time::Moment;

/// Between two looks of `--watch`.
const AGAIN: Duration = Duration::from_secs(1);
/// To the upper left corner, and everything away.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Something that can be read, and drawn for people.
pub struct Reading<'a> {
    pub path: &'a str,
    /// The field that holds the list, if it is in one.
    pub items: &'static str,
    pub draw: fn(&Json) -> Vec<String>,
}

pub async fn show(shown: &Shown, reading: &Reading<'_>) -> Result<Exit, Failure> {
    let client = connect(&shown.server)?;
    let mut last = None;
    loop {
        let read: Json = client.get(reading.path).await.map_err(|error| failed(&error))?;
        // For programs, only what is new.
        if shown.output == Form::Table || last.as_ref() != Some(&read) {
            if shown.watch && std::io::stdout().is_terminal() {
                print(CLEAR)?;
            }
            form(shown.output, &read, reading)?;
        }
        if !shown.watch {
            return Ok(Exit::Success);
        }
        last = Some(read);
        tokio::time::sleep(AGAIN).await;
    }
}

fn form(form: Form, read: &Json, reading: &Reading<'_>) -> Result<(), Failure> {
    let items = if reading.items.is_empty() { read } else { &read[reading.items] };
    match form {
        Form::Table => (reading.draw)(read).into_iter().try_for_each(print),
        Form::Json => print(format!("{read:#}")),
        Form::Jsonl => match items {
            Json::Array(items) => items.iter().try_for_each(print),
            one => print(one),
        },
        Form::Yaml => {
            let yaml = serde_saphyr::to_string(read);
            print(yaml.map_err(|error| Failure::new("output", error.to_string()))?.trim_end())
        }
    }
}

/// What is no part of a table: below it on a terminal, and beside stdout for programs.
pub fn note(lines: &mut Vec<String>, note: &str) {
    match std::io::stdout().is_terminal() {
        true => lines.push(note.to_owned()),
        false => say(note),
    }
}

/// Text as it is, anything else as JSON writes it, nothing for null.
pub fn text(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub fn list(value: &Json) -> &[Json] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// How long ago this time was.
pub fn age(time: &Json) -> String {
    let at = time.as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok());
    at.map(|at| took(crate::time::now().since(Moment(at.as_microsecond())))).unwrap_or_default()
}
