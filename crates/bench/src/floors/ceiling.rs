//! The very commits that an engine makes, prepared beforehand and issued by a plain loop: what a store allows.

use super::Halves;
use crate::definitions::{action, job};
use anyhow::{Result, bail, ensure};
use std::collections::VecDeque;
use std::time::Instant;
use tidegate_core::Core;
use tidegate_core::admission::{Skills, SlotCounts};
use tidegate_core::ids::{Name, RunId};
use tidegate_core::protocol::{
    Answer, Command, Declare, Effect, Finish, Join, Lease, Outcome, Payload, Submit,
};
use tidegate_core::time::{Moment, Span};
use tidegate_store::{Commit, Entry, Store};

/// In 2020: whoever goes on with such a store finds nothing in it that was decided in the future.
const LONG_AGO: Moment = Moment(1_600_000_000_000_000);
/// Jobs of an entry where nobody measures.
const FILL: usize = 5_000;

/// The entries of the lives of some jobs.
pub struct Script {
    pub enqueue: Vec<Entry>,
    pub drain: Vec<Entry>,
}

/// As a core that leads for the first time decides them, so many jobs an entry.
pub fn script(jobs: u64, batch: usize) -> Result<Script> {
    let mut author = Author::new();
    let noop = Name::new("noop");
    let mut enqueue = Vec::new();
    author.enqueue(&noop, jobs, batch, |entry| {
        enqueue.push(entry);
        Ok(())
    })?;
    author.apply(Command::Join(Join {
        worker: "worker".into(),
        incarnation: 1,
        skills: Skills { functions: vec![noop], ..Skills::plain() },
        slots: SlotCounts { process: 0, io: batch as u32 },
    }))?;
    let mut drain = vec![author.entry()];
    let mut ended = 0;
    while ended < jobs {
        ended += author.finish(batch)?;
        drain.push(author.entry());
    }
    Ok(Script { enqueue, drain })
}

/// Commits a script to a store that nobody has led before.
pub fn play(store: &mut dyn Store, script: &Script) -> Result<Halves> {
    lead(store)?;
    let mut commit_all = |entries: &[Entry]| {
        let begin = Instant::now();
        entries.iter().try_for_each(|entry| commit(store, entry)).map(|()| begin.elapsed())
    };
    Ok(Halves { enqueue: commit_all(&script.enqueue)?, drain: commit_all(&script.drain)? })
}

/// Commits a script as [`play`] does; how many seconds each commit of the drain took.
pub fn time_commits(store: &mut dyn Store, script: &Script) -> Result<Vec<f64>> {
    lead(store)?;
    script.enqueue.iter().try_for_each(|entry| commit(store, entry))?;
    let time = |entry: &Entry| {
        let begin = Instant::now();
        commit(store, entry).map(|()| begin.elapsed().as_secs_f64())
    };
    script.drain.iter().map(time).collect()
}

/// Puts so many jobs into a store that nobody has led before. They wait for a worker.
pub fn fill(store: &mut dyn Store, jobs: u64) -> Result<()> {
    lead(store)?;
    Author::new().enqueue(&Name::new("noop"), jobs, FILL, |entry| commit(store, &entry))?;
    Ok(store.resign(1)?)
}

fn lead(store: &mut dyn Store) -> Result<()> {
    let term = store.lead(&"ceiling".into(), None, Span::hours(1))?;
    ensure!(term.is_some_and(|term| term.term == 1), "the store was led before");
    Ok(())
}

fn commit(store: &mut dyn Store, entry: &Entry) -> Result<()> {
    loop {
        match store.commit(entry)? {
            Commit::Done => return Ok(()),
            Commit::Later => {}
            refused => bail!("entry {} was not taken: {refused:?}", entry.sequence),
        }
    }
}

fn submit(action: &Name, number: u64) -> Submit {
    // Like a UUID of version 7: the time, then something that does not sort.
    let chance = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let id = RunId((0x0199_0000_0000 + u128::from(number / 100)) << 80 | 7 << 76 | u128::from(chance));
    Submit { id, what: job(action, number), tags: Vec::new(), priority: 0, due: None, idempotency: None }
}

/// Drives a core and keeps what it writes.
struct Author {
    core: Core,
    now: Moment,
    sequence: u64,
    running: VecDeque<Lease>,
}

impl Author {
    fn new() -> Author {
        Author { core: Core::new(1), now: LONG_AGO, sequence: 0, running: VecDeque::new() }
    }

    fn enqueue(
        &mut self,
        noop: &Name,
        jobs: u64,
        batch: usize,
        mut commit: impl FnMut(Entry) -> Result<()>,
    ) -> Result<()> {
        let actions = vec![action(noop.as_str(), None, &[])];
        self.apply(Command::Declare(Declare { actions, ..Declare::default() }))?;
        commit(self.entry())?;
        for number in 1..=jobs {
            self.apply(Command::Submit(submit(noop, number)))?;
            if number.is_multiple_of(batch as u64) || number == jobs {
                commit(self.entry())?;
            }
        }
        Ok(())
    }

    fn apply(&mut self, command: Command) -> Result<()> {
        self.now = self.now + Span::micros(1);
        match self.core.apply(command, self.now) {
            Answer::Refused(refusal) => bail!(refusal),
            _ => Ok(()),
        }
    }

    /// Ends so many of those that run, and says how many.
    fn finish(&mut self, most: usize) -> Result<u64> {
        let count = self.running.len().min(most);
        ensure!(count > 0, "nothing runs and not all have ended");
        for lease in self.running.drain(..count).collect::<Vec<_>>() {
            let outcome = Outcome::Succeeded(Payload::null());
            self.apply(Command::Finish(Finish { worker: "worker".into(), lease, outcome, offer: None }))?;
        }
        Ok(count as u64)
    }

    fn entry(&mut self) -> Entry {
        let output = self.core.take_output();
        for effect in output.effects {
            if let Effect::Deliver { lease, .. } = effect {
                self.running.push_back(lease);
            }
        }
        self.sequence += 1;
        Entry {
            sequence: self.sequence,
            term: 1,
            batch: u128::from(self.sequence),
            now: self.now,
            next: self.core.next(),
            letters: Vec::new(),
            digest: None,
            writes: output.writes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::ids::TaskId;
    use tidegate_core::protocol::Write;
    use tidegate_store::{MemoryStore, Reads};

    #[test]
    fn a_script_takes_every_job_to_its_end() {
        let script = script(250, 100).expect("a script");
        assert_eq!((script.enqueue.len(), script.drain.len()), (1 + 3, 1 + 3));
        let mut store = MemoryStore::default();
        play(&mut store, &script).expect("it is taken");
        assert!(store.load().expect("it loads").snapshot.nodes.is_empty(), "nothing is open");
        let nodes = script.enqueue.iter().flat_map(|entry| &entry.writes).filter_map(|write| match write {
            Write::NodeAdded(row) => Some(row.node),
            _ => None,
        });
        let nodes: Vec<_> = nodes.collect();
        assert_eq!(nodes.len(), 250);
        assert!(nodes.iter().all(|node| store.ended(TaskId::node(*node)).expect("it answers").is_some()));
    }
}
