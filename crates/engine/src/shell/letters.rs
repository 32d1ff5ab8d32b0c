//! The mailbox: what other programs left to be submitted, in transactions of their own.
//!
//! Letters are read in the order of their numbers, made into submissions off the writer, and leave the mailbox with the
//! entry that decides what becomes of them.

use super::errands::known;
use super::evaluate::Prepared;
use super::one_form::in_one_form;
use super::request::{Request, Waiter};
use super::results::definition;
use super::store_thread::{Job, Lookups};
use super::work::Shell;
use crate::server::Input;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tidegate_core::ids::Name;
use tidegate_core::protocol::{Answer, Command, Idempotency, Payload, Submit};
use tidegate_core::time::Moment;
use tidegate_store::{Found, LETTERS_BYTES, Letter, Sought, StoreError};
use tidegate_wire::Definition;

/// How often the mailbox is looked into, if nobody says that something came.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Letters read at a time.
const MOST: usize = 1_000;
/// While so many, or so many bytes of them, are on their way into an entry, no more are read.
const IN_PROGRESS: usize = 4 * MOST;
const IN_PROGRESS_BYTES: usize = 4 * LETTERS_BYTES;

/// A letter that was made into a submission.
pub(super) struct Newcomer {
    pub number: u64,
    pub submit: Submit,
    pub flaw: Option<String>,
}

/// The mailbox, as far as this server is at work on it.
#[derive(Default)]
pub(super) struct Letters {
    /// How large each is.
    in_progress: BTreeMap<u64, usize>,
    bytes: usize,
    looking: bool,
    look_at: Option<Instant>,
    /// The last one that was new when the mailbox was looked into: more may stand behind it.
    last: Option<u64>,
}

impl Letters {
    pub(super) fn forget(&mut self, number: u64) {
        self.bytes -= self.in_progress.remove(&number).unwrap_or(0);
    }

    /// Whether it was not at work on this one yet.
    fn begin(&mut self, letter: &Letter) -> bool {
        let (number, size) = (letter.number, letter.content.len());
        let is_new = !self.in_progress.contains_key(&number);
        if is_new {
            self.in_progress.insert(number, size);
            self.bytes += size;
        }
        is_new
    }

    fn has_room(&self) -> bool {
        self.in_progress.len() < IN_PROGRESS && self.bytes < IN_PROGRESS_BYTES
    }

    /// From where on to look now, if at all. One with a smaller number may come late: now and then all are looked at.
    fn look_after(&self, now: Instant, hinted: bool) -> Option<u64> {
        let is_due = hinted || self.look_at.is_none_or(|at| at <= now);
        let after = if is_due { Some(0) } else { self.last };
        after.filter(|_| !self.looking && self.has_room())
    }

    /// When to look next, for who leads.
    pub(super) fn next_look(&self) -> Option<Instant> {
        let at = if self.last.is_some() { Some(Instant::now()) } else { self.look_at };
        at.filter(|_| !self.looking && self.has_room())
    }
}

/// What a letter says.
#[derive(Deserialize)]
struct Content<'a> {
    name: Name,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(default)]
    tags: BTreeMap<Name, Name>,
    #[serde(default)]
    priority: i8,
    key: Option<Name>,
    due: Option<jiff::Timestamp>,
}

impl Shell {
    /// Looks into the mailbox if it is time to.
    pub(super) fn look_for_letters(&mut self, now: Instant, hinted: bool) {
        if !self.server.leads() {
            return;
        }
        if let Some(after) = self.letters.look_after(now, hinted) {
            self.letters.looking = true;
            if after == 0 {
                self.letters.look_at = Some(now + LOOK_EVERY);
            }
            let _ = self.store_jobs.send(Job::Letters { after, most: MOST });
        }
    }

    /// Those that follow are not looked for before these are made into submissions: they would overtake them.
    pub(super) fn letters_came(&mut self, letters: Result<Vec<Letter>, StoreError>) {
        // What cannot be read now is read next time.
        let mut letters = letters.unwrap_or_default();
        letters.retain(|letter| self.letters.begin(letter));
        self.letters.last = letters.last().map(|letter| letter.number);
        let opened: Vec<(Letter, Definition)> =
            letters.into_iter().filter_map(|letter| self.address(letter)).collect();
        if opened.is_empty() {
            self.letters.looking = false;
            return;
        }
        let (evaluator, urgent) = (self.evaluator.clone(), self.engine.urgent.clone());
        let numbers: Vec<u64> = opened.iter().map(|(letter, _)| letter.number).collect();
        let made = tokio::task::spawn_blocking(move || {
            let newcomers = opened.iter().filter_map(|(letter, definition)| {
                let content = read(letter).ok()?;
                let input = input(&content);
                let made = evaluator.prepare(&content.name, definition, &input);
                Some(newcomer(letter, content, input, made))
            });
            newcomers.collect()
        });
        tokio::spawn(async move {
            // If the engine has ended, the next one reads them again.
            let _ = urgent.send(match made.await {
                Ok(newcomers) => Request::Post(newcomers),
                Err(_) => Request::Unread(numbers),
            });
        });
    }

    /// Nobody could make anything of them; they are read again.
    pub(super) fn letters_unread(&mut self, numbers: Vec<u64>) {
        self.letters.looking = false;
        numbers.into_iter().for_each(|number| self.letters.forget(number));
    }

    /// What a letter's name stands for. One that cannot be read is set aside.
    fn address(&mut self, letter: Letter) -> Option<(Letter, Definition)> {
        match read(&letter) {
            Ok(content) => {
                let definition =
                    self.server.core().map_or(Definition::Unknown, |core| definition(core, &content.name));
                Some((letter, definition))
            }
            Err(why) => {
                let _ = self.store_jobs.send(Job::SetAside { letter: letter.number, why });
                self.letters.forget(letter.number);
                None
            }
        }
    }

    /// Letters that are ready are taken in, together and in their order, once it is known whether what their keys stand
    /// for was accepted long ago.
    pub(super) fn look_up_keys(&mut self, newcomers: Vec<Newcomer>) {
        self.letters.looking = false;
        if !self.server.leads() {
            return newcomers.iter().for_each(|newcomer| self.letters.forget(newcomer.number));
        }
        let keys = newcomers.iter().filter_map(|newcomer| newcomer.submit.idempotency.as_ref());
        let sought = keys.map(|known| Sought::Key(known.key.clone())).collect();
        self.look_up(Lookups::Letters(newcomers), sought);
    }

    pub(super) fn post(&mut self, newcomers: Vec<Newcomer>, sought: &[Sought], found: &[Option<Found>]) {
        for Newcomer { number, submit, flaw } in newcomers {
            let command = match known(submit.id, submit.idempotency.as_ref(), sought, found) {
                // Nothing is left to do but to take the letter out.
                Some(Answer::Accepted { .. }) if flaw.is_none() => Command::Wake,
                Some(Answer::Refused(refusal)) if flaw.is_none() => {
                    Command::Post { submit, flaw: Some(refusal.to_string()) }
                }
                _ => Command::Post { submit, flaw },
            };
            self.take_letter(number, command);
        }
    }

    fn take_letter(&mut self, number: u64, command: Command) {
        let ticket = self.ticket(Waiter::Letter(number));
        self.handle(Input::Letter { ticket, number, command });
    }
}

fn read(letter: &Letter) -> Result<Content<'_>, String> {
    serde_json::from_slice(&letter.content).map_err(|error| error.to_string())
}

/// What is compared with what else comes under its key is written in one form.
fn input(content: &Content) -> Payload {
    match content.input {
        None => Payload::null(),
        Some(input) if content.key.is_some() => Payload::new(in_one_form(input.get())),
        Some(input) => Payload::new(input.get()),
    }
}

fn newcomer(letter: &Letter, content: Content, input: Payload, made: Result<Prepared, String>) -> Newcomer {
    let Content { name, tags, priority, key, due, .. } = content;
    let idempotency = key.map(|key| Idempotency::of(key, &name, &input));
    let (Prepared { what, tags: given }, flaw) = match made {
        Ok(prepared) => (prepared, None),
        Err(flaw) => (Prepared::job(&name, None, input), Some(flaw)),
    };
    // What the letter says wins.
    let tags = given.into_iter().chain(tags).collect::<BTreeMap<Name, Name>>().into_iter().collect();
    let due = due.map(|due| Moment(due.as_microsecond()));
    let submit = Submit { id: letter.id, what, tags, priority, due, idempotency };
    Newcomer { number: letter.number, submit, flaw }
}
