//! `tidegate runs logs` and `tidegate runs events`: what was kept of a run beside the store.

use super::{find, open, part};
use crate::args::{self, Output};
use crate::diary::{Note, Reading, What};
use crate::failure::{Exit, Failure};
use crate::line::{Line, Tone};
use crate::out::{print, say};
use crate::run::{Open, Reused, no_definition};
use crate::time::{clock, now};
use jiff::tz::TimeZone;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;
use tidegate_core::ids::{Epoch, NodeId, TaskId};
use tidegate_core::time::Moment;
use tidegate_store::{Reads, SqliteReader, StoreError};

/// How often a diary that is followed is looked into.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often it is looked into after the run has ended, for its last notes: nobody waits for them to be written, and
/// whoever would have written them may have been killed.
const LAST_LOOKS: u32 = 10;
/// Of a line that was written in pieces; the rest of it is a line of its own.
const LONGEST_LINE: usize = 1024 * 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Logs,
    Events,
}

pub fn print_diary(options: &args::RunsDiary, kind: Kind) -> Result<Exit, Failure> {
    let (mut reader, path) = open(&options.store)?;
    let failed = |error| Failure::store(&error, path);
    let (run, part) = match options.id.as_deref().map(|id| id.split_once('/').unwrap_or((id, ""))) {
        Some((run, part)) => (Some(run), part),
        None => (None, ""),
    };
    let root = find(&mut reader, run, path)?;
    let seen = see(&mut reader, root).map_err(failed)?.ok_or_else(|| no_definition(path))?;
    if !part.is_empty() {
        part::check(&seen, part, path)?;
    }
    let id = seen.id;
    let mut printer = Printer::new(kind, options.output, seen, part.to_owned());
    let mut reading = None;
    let mut last_looks = 0;
    loop {
        last_looks += u32::from(reader.ended(TaskId::node(root)).map_err(failed)?.is_some());
        if reading.is_none() {
            reading = existing(Reading::open(path, id)).map_err(|error| unreadable(&error, path))?;
        }
        if let Some(reading) = &mut reading {
            while let Some(note) = reading.next().map_err(|error| unreadable(&error, path))? {
                if printer.is_strange(&note) {
                    printer.seen =
                        see(&mut reader, root).map_err(failed)?.ok_or_else(|| no_definition(path))?;
                }
                printer.print(note)?;
            }
        }
        if !options.follow || printer.is_over || last_looks == LAST_LOOKS {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    printer.finish(reading.is_some())
}

fn see(reader: &mut SqliteReader, root: NodeId) -> Result<Option<Open>, StoreError> {
    let declared = reader.load()?.snapshot.declared;
    Ok(Open::seen(&declared, &reader.tree(root)?))
}

fn existing(opened: io::Result<Reading>) -> io::Result<Option<Reading>> {
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

fn unreadable(error: &io::Error, path: &Path) -> Failure {
    Failure::new("logs", format!("what was kept beside the store cannot be read: {error}")).at(path.display())
}

struct Printer {
    kind: Kind,
    output: Output,
    seen: Open,
    /// Only of this step or item, and of what is inside it.
    part: String,
    zone: TimeZone,
    /// The attempts of each task so far, by what tells them apart.
    attempts: BTreeMap<TaskId, Vec<Epoch>>,
    /// Lines of which only a piece is known.
    begun: BTreeMap<(TaskId, bool), (Epoch, String)>,
    printed: bool,
    /// That the run finished is noted, after everything else.
    is_over: bool,
}

impl Printer {
    fn new(kind: Kind, output: Output, seen: Open, part: String) -> Printer {
        let (attempts, begun) = Default::default();
        Printer {
            kind,
            output,
            seen,
            part,
            zone: TimeZone::system(),
            attempts,
            begun,
            printed: false,
            is_over: false,
        }
    }

    /// Whether it is about something that came into being after the store was looked at.
    fn is_strange(&self, note: &Note) -> bool {
        note.task.is_some_and(|task| self.seen.view.name(task).is_none())
    }

    fn print(&mut self, note: Note) -> Result<(), Failure> {
        let name = note.task.and_then(|task| self.seen.view.name(task)).unwrap_or_default();
        let Note { at, task, what } = note;
        self.is_over |= matches!(&what, What::Happened { event, .. } if event == "run.finished");
        match (what, task) {
            (What::Wrote { epoch, stderr, text, newline }, Some(task)) if self.kind == Kind::Logs => {
                let attempt = self.attempt(task, epoch);
                let (_, begun) = self.begun.remove(&(task, stderr)).filter(|(of, _)| *of == epoch).unzip();
                let text = begun.unwrap_or_default() + &text;
                if !newline && text.len() < LONGEST_LINE {
                    self.begun.insert((task, stderr), (epoch, text));
                    return Ok(());
                }
                self.line(at, &name, attempt, stderr, &text)
            }
            (What::Happened { id, event, more }, _) if self.kind == Kind::Events => {
                self.event(at, &name, &id, &event, more)
            }
            // Whoever has ended writes no more: a line without an end is whole now.
            (What::Happened { .. }, Some(task)) => self.end_lines(at, |of| of == task),
            (What::Missed(_), _) => {
                say("… something is missing here: it came faster than it could be kept");
                Ok(())
            }
            (What::Full {}, _) => {
                say("… what came after this was not kept: 64 MiB are");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The number of an attempt, from 1.
    fn attempt(&mut self, task: TaskId, epoch: Epoch) -> usize {
        let known = self.attempts.entry(task).or_default();
        match known.iter().position(|other| *other == epoch) {
            Some(at) => at + 1,
            None => {
                known.push(epoch);
                known.len()
            }
        }
    }

    fn is_wanted(&self, name: &str) -> bool {
        let rest = name.strip_prefix(&self.part);
        self.part.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '#']))
    }

    fn line(
        &mut self,
        at: Moment,
        name: &str,
        attempt: usize,
        stderr: bool,
        text: &str,
    ) -> Result<(), Failure> {
        if !self.is_wanted(name) {
            return Ok(());
        }
        self.printed = true;
        if self.output == Output::Json {
            let stream = if stderr { "stderr" } else { "stdout" };
            let time = at.timestamp().to_string();
            return print(
                json!({ "time": time, "task": name, "attempt": attempt, "stream": stream, "text": text }),
            );
        }
        let attempt = if attempt > 1 { format!(" (try {attempt})") } else { String::new() };
        print(self.begin(at, &format!("{name}{attempt}")).with(Tone::Dim, "| ").with(Tone::Plain, text))
    }

    fn event(
        &mut self,
        at: Moment,
        name: &str,
        id: &str,
        event: &str,
        more: Map<String, Json>,
    ) -> Result<(), Failure> {
        let count = more.get("count").and_then(Json::as_u64).unwrap_or(1);
        if !self.is_wanted(name) && !is_among(&self.part, name, count) {
            return Ok(());
        }
        self.printed = true;
        if self.output == Output::Json {
            let mut fields = json!({
                "id": id, "time": at.timestamp().to_string(), "event": event,
                "run": self.seen.id.to_string(), "task": name,
            });
            more.into_iter().for_each(|(name, value)| fields[name] = value);
            return print(fields);
        }
        let line = self.begin(at, name).with(Tone::Strong, format!("{event:<13}"));
        let shown = more.iter().filter(|(_, value)| value.as_object().is_none_or(|map| !map.is_empty()));
        print(shown.fold(line, |line, (name, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            line.with(Tone::Dim, format!("  {name}=")).with(Tone::Plain, value)
        }))
    }

    fn begin(&self, at: Moment, name: &str) -> Line {
        let line = Line::new().with(Tone::Dim, clock(at, &self.zone)).with(Tone::Plain, "  ");
        line.with(Tone::Plain, name).pad(12 + self.seen.width).with(Tone::Plain, "  ")
    }

    fn end_lines(&mut self, at: Moment, of: impl Fn(TaskId) -> bool) -> Result<(), Failure> {
        let ended: Vec<_> = self.begun.extract_if(.., |(task, _), _| of(*task)).collect();
        for ((task, stderr), (epoch, text)) in ended {
            let name = self.seen.view.name(task).unwrap_or_default();
            let attempt = self.attempt(task, epoch);
            self.line(at, &name, attempt, stderr, &text)?;
        }
        Ok(())
    }

    /// Prints what has no end yet, and says if there was nothing at all.
    fn finish(mut self, is_kept: bool) -> Result<Exit, Failure> {
        self.end_lines(now(), |_| true)?;
        if self.printed {
            return Ok(Exit::Success);
        }
        let reused = self.seen.view.step_named(&self.part).and_then(|step| step.reused);
        match (reused, is_kept, self.kind) {
            (Some(Reused { run, .. }), _, Kind::Logs) => {
                say(format!("it was reused: see `tidegate runs logs {run}/{}`", self.part));
            }
            (_, false, _) => say("nothing was kept of it"),
            (_, true, Kind::Logs) => say("nothing was written"),
            (_, true, Kind::Events) => say("nothing happened"),
        }
        Ok(Exit::Success)
    }
}

/// Whether an item is one of so many that ended together, of which only the first is named.
fn is_among(part: &str, first: &str, count: u64) -> bool {
    let parse =
        |name: &str| name.rsplit_once('#').and_then(|(of, at)| Some((of.to_owned(), at.parse().ok()?)));
    let (Some((wanted, at)), Some((step, from))) = (parse(part), parse(first)) else { return false };
    let from: u64 = from;
    wanted == step && (from..from + count).contains(&at)
}
