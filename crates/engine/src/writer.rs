//! The writer: drains commands, applies them to the core, and commits the outcome in batches.
//!
//! Nothing is answered before the commit it belongs to, and nothing leaves before it, with one exception: where this
//! process alone owns the store, functions that die with it may be handed over at once. While one commit is under way
//! the next batch is already being applied; one commit is under way at a time.
//!
//! An entry has a bound in bytes, because every store has one: a batch takes commands in until they bring 8 MiB of
//! payloads with them, and no command adds more than 16 MiB, except the list of a loop (64 MiB). So an entry has 24 MiB
//! of payloads at most, and 72 MiB if a list comes last. A slice of a loop is no exception: it is rendered up to 8 MiB, and
//! 1 MiB for the last of its items.

use std::collections::VecDeque;
use std::sync::Arc;
use tidegate_core::Core;
use tidegate_core::protocol::{Answer, BATCH_BYTES, Command, Effect, Lease, Output, Write};
use tidegate_core::time::Moment;
use tidegate_store::Entry;

/// What a caller recognises its answer by.
pub type Ticket = u64;

/// Commands waiting to be applied; more are turned away.
pub const QUEUE: usize = 100_000;
/// Commands and writes of one batch: a bound on how long a caller waits for others.
const BATCH_COMMANDS: usize = 2_000;
const BATCH_WRITES: usize = 4_000;

/// What may be told and done after a commit.
#[derive(Debug, Default)]
pub struct Released {
    pub answers: Vec<(Ticket, Answer)>,
    pub effects: Vec<Effect>,
    /// The entry that is durable now, for whoever wants to know what happened.
    pub entry: Option<Arc<Entry>>,
}

/// A command on its way, and the letter that it was found in.
#[derive(Debug)]
struct Queued {
    ticket: Ticket,
    letter: Option<u64>,
    command: Command,
}

/// What was applied and is not durable yet.
#[derive(Debug, Default)]
struct Batch {
    writes: Vec<Write>,
    letters: Vec<u64>,
    answers: Vec<(Ticket, Answer)>,
    /// What the commands brought with them.
    bytes: usize,
    effects: Vec<Effect>,
    /// Handed over before the commit.
    ahead: Vec<Lease>,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.is_full_with(0)
    }

    /// The same with so many more writes.
    fn is_full_with(&self, writes: usize) -> bool {
        self.answers.len() >= BATCH_COMMANDS
            || self.writes.len() + writes >= BATCH_WRITES
            || self.bytes >= BATCH_BYTES
    }

    fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.effects.is_empty() && !self.needs_commit()
    }

    fn needs_commit(&self) -> bool {
        !self.writes.is_empty() || !self.letters.is_empty()
    }

    fn release(self, entry: Option<Arc<Entry>>) -> Released {
        Released { answers: self.answers, effects: self.effects, entry }
    }
}

/// Who gets nothing more from a writer that is given up.
#[derive(Debug, Default)]
pub struct GivenUp {
    /// Callers without an answer.
    pub unanswered: Vec<Ticket>,
    /// Attempts that may run although nobody knows whether their grants are durable.
    pub ahead: Vec<Lease>,
}

#[derive(Debug)]
pub struct Writer {
    core: Core,
    term: u32,
    sequence: u64,
    batches: u64,
    urgent: VecDeque<Queued>,
    normal: VecDeque<Queued>,
    in_flight: Option<(Arc<Entry>, Batch)>,
    /// Applied while `in_flight` is being committed.
    next: Batch,
    /// From when on functions need not wait for the commit of their grant.
    ahead_from: Option<Moment>,
    keeps_digests: bool,
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
            next: Batch::default(),
            ahead_from: None,
            keeps_digests: false,
        }
    }

    /// Functions run ahead of the commit from `from` on. Only where this process alone owns the store.
    pub fn running_ahead(self, from: Option<Moment>) -> Self {
        Writer { ahead_from: from, ..self }
    }

    /// Every entry says what the durable state amounts to after it, which takes as long as there is much of it.
    pub fn keeping_digests(self, keeps_digests: bool) -> Self {
        Writer { keeps_digests, ..self }
    }

    pub fn core(&self) -> &Core {
        &self.core
    }

    pub fn term(&self) -> u32 {
        self.term
    }

    /// How many commands wait to be applied.
    pub fn waiting(&self) -> usize {
        self.urgent.len() + self.normal.len()
    }

    /// Takes a command in. False: too many wait already, and the caller should try later.
    pub fn push(&mut self, ticket: Ticket, letter: Option<u64>, command: Command) -> bool {
        // What keeps or frees something goes before what asks for more.
        let lane = match command.plain() {
            Command::Finish(_) | Command::Heartbeat(_) | Command::Cancel(_) | Command::Wake => {
                &mut self.urgent
            }
            _ => &mut self.normal,
        };
        if lane.len() >= QUEUE {
            return false;
        }
        lane.push_back(Queued { ticket, letter, command });
        true
    }

    /// Applies what waits, and gives the entry to be committed next if none is under way. While one is, the next
    /// batch grows. What needs no commit is released as soon as everything before it is durable.
    pub fn step(&mut self, now: Moment) -> (Option<Arc<Entry>>, Released) {
        if !self.can_step() {
            return (None, Released::default());
        }
        self.apply(now);
        let Output { writes, effects } = self.core.take_output();
        let runs_ahead = self.ahead_from.is_some_and(|from| from <= now);
        let (ahead, effects) = effects.into_iter().partition(|effect| runs_ahead && may_run_ahead(effect));
        append(&mut self.next.writes, writes);
        append(&mut self.next.effects, effects);
        self.next.ahead.extend(ahead.iter().filter_map(lease));
        let mut released = Released { effects: ahead, ..Released::default() };
        let entry = self.commit_next(&mut released);
        (entry, released)
    }

    fn can_step(&self) -> bool {
        self.in_flight.is_none() || !self.next.is_full()
    }

    fn apply(&mut self, now: Moment) {
        if self.core.next_wake().is_some_and(|at| at <= now) {
            self.core.apply(Command::Wake, now);
        }
        while !self.next.is_full_with(self.core.pending_writes()) {
            let Some(queued) = self.urgent.pop_front().or_else(|| self.normal.pop_front()) else { break };
            let Queued { ticket, letter, command } = queued;
            self.next.bytes += command.size();
            self.next.answers.push((ticket, self.core.apply(command, now)));
            self.next.letters.extend(letter);
        }
    }

    /// If nothing is under way, what was applied becomes the next entry, or is released if there is nothing to write.
    fn commit_next(&mut self, released: &mut Released) -> Option<Arc<Entry>> {
        if self.in_flight.is_some() {
            return None;
        }
        let mut batch = std::mem::take(&mut self.next);
        if !batch.needs_commit() {
            released.answers.append(&mut batch.answers);
            released.effects.append(&mut batch.effects);
            return None;
        }
        self.sequence += 1;
        self.batches += 1;
        let entry = Arc::new(Entry {
            sequence: self.sequence,
            term: self.term,
            // No other leader has this term, and this one never repeats a number.
            batch: u128::from(self.term) << 64 | u128::from(self.batches),
            now: self.core.now(),
            next: self.core.next(),
            letters: std::mem::take(&mut batch.letters),
            digest: self.keeps_digests.then(|| self.core.durable_digest()),
            writes: std::mem::take(&mut batch.writes),
        });
        self.in_flight = Some((entry.clone(), batch));
        Some(entry)
    }

    /// The entry under way is durable: its answers and effects may leave, and the next step commits what was applied
    /// meanwhile.
    pub fn committed(&mut self) -> Released {
        let done = self.in_flight.take();
        done.map(|(entry, batch)| batch.release(Some(entry))).unwrap_or_default()
    }

    /// The entry under way, to be asked for again.
    pub fn in_flight(&self) -> Option<&Arc<Entry>> {
        self.in_flight.as_ref().map(|(entry, _)| entry)
    }

    /// Nothing waits to be applied or to become durable.
    pub fn is_done(&self) -> bool {
        self.in_flight.is_none() && self.next.is_empty() && self.waiting() == 0
    }

    /// What is in memory is given up.
    pub fn give_up(self) -> GivenUp {
        let mut given_up = GivenUp::default();
        for batch in self.in_flight.into_iter().map(|(_, batch)| batch).chain([self.next]) {
            given_up.unanswered.extend(batch.answers.into_iter().map(|(ticket, _)| ticket));
            given_up.ahead.extend(batch.ahead);
        }
        given_up.unanswered.extend(self.urgent.into_iter().chain(self.normal).map(|queued| queued.ticket));
        given_up
    }

    /// When `step` has something to do, if nothing comes in before. Engine time.
    pub fn next_wake(&self) -> Option<Moment> {
        if !self.can_step() {
            return None;
        }
        if self.waiting() > 0 || self.in_flight.is_none() && !self.next.is_empty() {
            return Some(self.core.now());
        }
        self.core.next_wake()
    }
}

fn may_run_ahead(effect: &Effect) -> bool {
    matches!(effect, Effect::Deliver { ahead: true, order: Some(_), .. })
}

fn lease(effect: &Effect) -> Option<Lease> {
    match effect {
        Effect::Deliver { lease, .. } => Some(*lease),
        _ => None,
    }
}

/// Most batches are one step: then nothing is copied.
fn append<T>(all: &mut Vec<T>, mut more: Vec<T>) {
    if all.is_empty() {
        *all = more;
    } else {
        all.append(&mut more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::ids::RunId;
    use tidegate_core::protocol::{Payload, Submission, Submit};

    fn submit(id: u128, bytes: usize) -> Command {
        let order = Payload::new(vec![b'1'; bytes]);
        let what = Submission::Job { action: "mail".into(), key: None, order };
        let (tags, priority, due, idempotency) = (Vec::new(), 0, None, None);
        Command::Submit(Submit { id: RunId(id), what, tags, priority, due, idempotency })
    }

    #[test]
    fn a_batch_takes_no_more_in_once_it_has_its_bytes() {
        let mut writer = Writer::new(Core::new(1), 1, 0);
        let sizes = [1, BATCH_BYTES - 2, 1, 1, 2 * BATCH_BYTES, 1];
        for (id, bytes) in sizes.into_iter().enumerate() {
            assert!(writer.push(id as u64, None, submit(id as u128, bytes)));
        }
        let mut answered = Vec::new();
        while let (Some(_), _) = writer.step(Moment(0)) {
            writer.step(Moment(0));
            answered.push(writer.committed().answers.len());
        }
        assert_eq!(answered, [3, 2, 1]);
        assert!(writer.is_done());
    }
}
