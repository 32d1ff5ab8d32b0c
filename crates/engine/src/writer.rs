//! The writer: drains commands, applies them to the core, and commits the outcome in batches.
//!
//! Nothing is answered and nothing leaves before the commit it belongs to. While one commit is under way the next
//! batch is already being applied; effects leave in commit order.

use std::collections::VecDeque;
use std::sync::Arc;
use tidegate_core::Core;
use tidegate_core::protocol::{Answer, Command, Effect, Write};
use tidegate_core::time::Moment;
use tidegate_store::Entry;

/// What a caller recognises its answer by.
pub type Ticket = u64;

/// Commands waiting to be applied; more are turned away.
pub const QUEUE: usize = 100_000;
/// Commands and writes of one batch: a bound on how long a caller waits for others.
const BATCH_COMMANDS: usize = 1_000;
const BATCH_WRITES: usize = 4_000;

/// What may be told and done after a commit.
#[derive(Debug, Default)]
pub struct Released {
    pub answers: Vec<(Ticket, Answer)>,
    pub effects: Vec<Effect>,
    /// The entry that is durable now, for whoever wants to know what happened.
    pub entry: Option<Arc<Entry>>,
}

#[derive(Debug, Default)]
struct Batch {
    entry: Option<Arc<Entry>>,
    answers: Vec<(Ticket, Answer)>,
    effects: Vec<Effect>,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.entry.is_none() && self.answers.is_empty() && self.effects.is_empty()
    }

    fn release(self) -> Released {
        Released { answers: self.answers, effects: self.effects, entry: self.entry }
    }
}

#[derive(Debug)]
pub struct Writer {
    core: Core,
    term: u32,
    sequence: u64,
    batches: u64,
    urgent: VecDeque<(Ticket, Command)>,
    normal: VecDeque<(Ticket, Command)>,
    in_flight: Option<Batch>,
    /// Applied while `in_flight` is being committed.
    ready: Option<Batch>,
}

impl Writer {
    /// `sequence` is that of the last entry in the store.
    pub fn new(core: Core, term: u32, sequence: u64) -> Self {
        Writer {
            core,
            term,
            sequence,
            batches: 0,
            urgent: VecDeque::new(),
            normal: VecDeque::new(),
            in_flight: None,
            ready: None,
        }
    }

    pub fn core(&self) -> &Core {
        &self.core
    }

    pub fn term(&self) -> u32 {
        self.term
    }

    /// Takes a command in. False: too many wait already, and the caller should try later.
    pub fn push(&mut self, ticket: Ticket, command: Command) -> bool {
        // What keeps or frees something goes before what asks for more.
        let lane = match command {
            Command::Finish(_) | Command::Heartbeat(_) | Command::Cancel(_) | Command::Wake => {
                &mut self.urgent
            }
            _ => &mut self.normal,
        };
        if lane.len() >= QUEUE {
            return false;
        }
        lane.push_back((ticket, command));
        true
    }

    /// Applies what waits, and gives the entry to be committed next if none is under way. While one is, the next
    /// batch is made ready. What needs no commit is released as soon as everything before it is durable.
    pub fn step(&mut self, now: Moment) -> (Option<Arc<Entry>>, Released) {
        if self.ready.is_some() {
            return (None, Released::default());
        }
        let answers = self.apply_batch(now);
        let output = self.core.take_output();
        let entry = self.entry(output.writes);
        let batch = Batch { entry, answers, effects: output.effects };
        match (&self.in_flight, &batch.entry) {
            (None, None) => (None, batch.release()),
            (None, Some(entry)) => {
                let entry = entry.clone();
                self.in_flight = Some(batch);
                (Some(entry), Released::default())
            }
            (Some(_), _) => {
                self.ready = Some(batch).filter(|batch| !batch.is_empty());
                (None, Released::default())
            }
        }
    }

    fn entry(&mut self, writes: Vec<Write>) -> Option<Arc<Entry>> {
        if writes.is_empty() {
            return None;
        }
        self.sequence += 1;
        self.batches += 1;
        Some(Arc::new(Entry {
            sequence: self.sequence,
            term: self.term,
            // No other leader has this term, and this one never repeats a number.
            batch: u128::from(self.term) << 64 | u128::from(self.batches),
            now: self.core.now(),
            next: self.core.next(),
            letters: Vec::new(),
            digest: None,
            writes,
        }))
    }

    fn apply_batch(&mut self, now: Moment) -> Vec<(Ticket, Answer)> {
        let mut answers = Vec::new();
        if self.core.next_wake().is_some_and(|at| at <= now) {
            self.core.apply(Command::Wake, now);
        }
        while answers.len() < BATCH_COMMANDS && self.core.pending_writes() < BATCH_WRITES {
            let Some((ticket, command)) = self.urgent.pop_front().or_else(|| self.normal.pop_front()) else {
                break;
            };
            answers.push((ticket, self.core.apply(command, now)));
        }
        answers
    }

    /// The entry under way is durable: its answers and effects may leave, and the next one may be committed.
    pub fn committed(&mut self) -> (Option<Arc<Entry>>, Released) {
        let mut released = self.in_flight.take().map(Batch::release).unwrap_or_default();
        match self.ready.take() {
            Some(next) if next.entry.is_some() => {
                let entry = next.entry.clone();
                self.in_flight = Some(next);
                (entry, released)
            }
            next => {
                let next = next.map(Batch::release).unwrap_or_default();
                released.answers.extend(next.answers);
                released.effects.extend(next.effects);
                (None, released)
            }
        }
    }

    /// The entry under way, to be asked for again.
    pub fn in_flight(&self) -> Option<&Arc<Entry>> {
        self.in_flight.as_ref()?.entry.as_ref()
    }

    /// Everybody who will not get an answer any more, because what is in memory is given up.
    pub fn give_up(self) -> Vec<Ticket> {
        let batches = self.in_flight.into_iter().chain(self.ready);
        let unanswered = batches.flat_map(|batch| batch.answers).map(|(ticket, _)| ticket);
        let waiting = self.urgent.into_iter().chain(self.normal).map(|(ticket, _)| ticket);
        unanswered.chain(waiting).collect()
    }

    /// When `step` has something to do, if nothing comes in before. Engine time.
    pub fn next_wake(&self) -> Option<Moment> {
        if self.ready.is_some() {
            return None;
        }
        if !self.urgent.is_empty() || !self.normal.is_empty() {
            return Some(self.core.now());
        }
        self.core.next_wake()
    }
}
