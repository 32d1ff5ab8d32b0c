//! How fast a store takes in jobs that are added, granted and ended, in groups: `measure sqlite:FILE|postgres://… JOBS
//! GROUP`. Figures are jobs a second, and of a load also rows a second.

use std::error::Error;
use std::time::{Duration, Instant};
use tidegate_core::ids::{Epoch, Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::{Body, GrantRow, JobBody, Life, NodeRow, Payload, Write};
use tidegate_core::state::State;
use tidegate_core::time::{Moment, Span};
use tidegate_store::{Commit, Entry, PostgresStore, SqliteStore, Store};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, jobs, group] = arguments.as_slice() else { return Err("measure URL JOBS GROUP".into()) };
    let (jobs, group): (u64, u64) = (jobs.parse()?, group.parse()?);
    let mut store: Box<dyn Store> = match url.strip_prefix("sqlite:") {
        Some(path) => Box::new(SqliteStore::open(path)?),
        None => Box::new(PostgresStore::open(url)?),
    };
    let term = store.lead(&Name::new("measure"), None, Span::hours(1))?.ok_or("somebody else leads")?.term;
    let loaded = store.load()?;
    let mut journal = Journal { term, sequence: loaded.sequence, next: loaded.snapshot.next.max(1) };
    let first = journal.next;
    // Enqueued first, then granted and ended a group at a time, as a drain does.
    let begin = Instant::now();
    for from in (first..first + jobs).step_by(group as usize) {
        journal.commit(store.as_mut(), (from..from + group).map(added).collect())?;
    }
    say("enqueued", jobs, begin.elapsed());
    let begin = Instant::now();
    let loaded = store.load()?.snapshot.nodes.len() as u64;
    say("loaded", loaded, begin.elapsed());
    let begin = Instant::now();
    let mut last: Vec<Write> = Vec::new();
    for from in (first..first + jobs).step_by(group as usize) {
        last.extend((from..from + group).map(granted));
        journal.commit(store.as_mut(), std::mem::take(&mut last))?;
        last = (from..from + group).map(ended).collect();
    }
    journal.commit(store.as_mut(), last)?;
    say("drained, committed", jobs, begin.elapsed());
    store.load()?;
    say("drained, in the tables", jobs, begin.elapsed());
    let (begin, first) = (Instant::now(), journal.next);
    for from in (first..first + jobs).step_by(group as usize) {
        let nodes = from..from + group;
        let all = nodes.clone().map(added).chain(nodes.clone().map(granted)).chain(nodes.map(ended));
        journal.commit(store.as_mut(), all.collect())?;
    }
    store.load()?;
    say("came and went, in the tables", jobs, begin.elapsed());
    Ok(())
}

fn say(what: &str, rows: u64, time: Duration) {
    println!("{what:<30} {:>10.0} a second", rows as f64 / time.as_secs_f64());
}

struct Journal {
    term: u32,
    sequence: u64,
    next: u64,
}

impl Journal {
    fn commit(&mut self, store: &mut dyn Store, writes: Vec<Write>) -> Result<(), Box<dyn Error>> {
        self.sequence += 1;
        self.next += writes.iter().filter(|write| matches!(write, Write::NodeAdded(_))).count() as u64;
        let entry = Entry {
            sequence: self.sequence,
            term: self.term,
            batch: u128::from(self.sequence) << 64,
            now: Moment(1_700_000_000_000_000 + self.sequence as i64),
            next: self.next,
            letters: Vec::new(),
            digest: None,
            writes,
        };
        loop {
            match store.commit(&entry) {
                Ok(Commit::Done) => return Ok(()),
                Ok(other) => return Err(format!("{other:?}").into()),
                Err(error) if error.may_pass() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn added(node: u64) -> Write {
    let id = RunId(0x0199_0000_0000_7000_8000_0000_0000_0000 + (u128::from(node) << 64));
    let action = Name::new("bench.nothing");
    let body = JobBody { id, action, key: None, tags: Vec::new(), start_by: None, idempotency: None };
    Write::NodeAdded(Box::new(NodeRow {
        node: NodeId(node),
        parent: None,
        root: node,
        priority: 0,
        accepted: Moment(1_700_000_000_000_000),
        body: Body::Job(body),
        payload: Some(Payload::new(format!("{{\"number\":{node}}}"))),
        life: Life::new(State::Waiting),
    }))
}

fn granted(node: u64) -> Write {
    let grant = GrantRow {
        epoch: Epoch { incarnation: 1, grant: node },
        worker: Name::new("worker-1"),
        at: Moment(1_700_000_000_000_000),
        until: Moment(1_700_000_030_000_000),
        length: Span::seconds(30),
    };
    Write::Granted { task: TaskId::node(NodeId(node)), grant, number: 1 }
}

fn ended(node: u64) -> Write {
    let task = TaskId::node(NodeId(node));
    let (output, at) = (Some(Payload::null()), Moment(1_700_000_000_000_000));
    Write::Ended { task, state: State::Succeeded, output, error: None, at }
}
