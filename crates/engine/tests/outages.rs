//! A store that cannot be used for a while: nobody is kept waiting, nothing accepted is lost, and work goes on by
//! itself soon after.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tidegate_core::Asked;
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::{Answer, Command, Evaluation, Payload, Snapshot, Submission, Submit};
use tidegate_core::time::{Moment, Span};
use tidegate_engine::{Definition, Engine, EngineError, Evaluate, Input, Output, Prepared, Server, Settings};
use tidegate_store::{
    Commit, Contact, Ended, Entry, Found, Leader, Letter, Loaded, MemoryStore, Reads, Sought, Store,
    StoreError, Term,
};

/// A disk that can be full. As with SQLite, a handle that met this works again only once it was opened anew.
struct Disk {
    store: MemoryStore,
    is_full: Arc<AtomicBool>,
    is_shut: bool,
    opened: Arc<AtomicU32>,
}

fn full() -> StoreError {
    StoreError::Unusable("disk full".to_owned())
}

impl Disk {
    fn new() -> Disk {
        Disk { store: MemoryStore::new(), is_full: Arc::default(), is_shut: false, opened: Arc::default() }
    }

    fn check(&mut self) -> Result<&mut MemoryStore, StoreError> {
        self.is_shut |= self.is_full.load(Ordering::SeqCst);
        if self.is_shut { Err(full()) } else { Ok(&mut self.store) }
    }
}

impl Reads for Disk {
    fn load(&mut self) -> Result<Loaded, StoreError> {
        self.check()?.load()
    }

    fn find(&mut self, sought: &[Sought]) -> Result<Vec<Option<Found>>, StoreError> {
        self.check()?.find(sought)
    }

    fn payload(&mut self, task: TaskId) -> Result<Option<Payload>, StoreError> {
        self.check()?.payload(task)
    }

    fn ended(&mut self, task: TaskId) -> Result<Option<Ended>, StoreError> {
        self.check()?.ended(task)
    }

    fn ended_items(&mut self, step: NodeId, from: u32, to: u32) -> Result<Vec<(u32, Ended)>, StoreError> {
        self.check()?.ended_items(step, from, to)
    }

    fn entries(&mut self, after: u64, most: usize) -> Result<Option<Vec<Arc<Entry>>>, StoreError> {
        self.check()?.entries(after, most)
    }

    fn reach(&mut self, sequence: u64, patience: Duration) -> Result<bool, StoreError> {
        self.check()?.reach(sequence, patience)
    }
}

impl Store for Disk {
    fn lead(&mut self, server: &Name, mine: Option<u32>, lease: Span) -> Result<Option<Term>, StoreError> {
        self.check()?.lead(server, mine, lease)
    }

    fn resign(&mut self, term: u32) -> Result<(), StoreError> {
        self.check()?.resign(term)
    }

    fn commit(&mut self, entry: &Entry) -> Result<Commit, StoreError> {
        self.check()?.commit(entry)
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        self.opened.fetch_add(1, Ordering::SeqCst);
        self.is_shut = false;
        self.check().map(drop)
    }

    fn announce(&mut self, server: &Name, contact: &Contact) -> Result<(), StoreError> {
        self.check()?.announce(server, contact)
    }

    fn leader(&mut self) -> Result<Option<Leader>, StoreError> {
        self.check()?.leader()
    }

    fn letters(&mut self, after: u64, most: usize) -> Result<Vec<Letter>, StoreError> {
        self.check()?.letters(after, most)
    }

    fn set_aside(&mut self, letter: u64, why: &str) -> Result<(), StoreError> {
        self.check()?.set_aside(letter, why)
    }

    fn prune(&mut self, before: Moment, most: u32) -> Result<u64, StoreError> {
        self.check()?.prune(before, most)
    }
}

fn submit(id: u128) -> Command {
    let what = Submission::Job { action: Name::new("mail"), key: None, order: Payload::null() };
    Command::Submit(Submit { id: RunId(id), what, tags: vec![], priority: 0, due: None, idempotency: None })
}

/// A server over a disk, in virtual time.
struct Driven {
    server: Server,
    disk: Disk,
    now: Moment,
    answers: Vec<Option<Answer>>,
}

impl Driven {
    fn new() -> Driven {
        let (server, disk) = (Server::new(Name::new("server")), Disk::new());
        Driven { server, disk, now: Moment(0), answers: Vec::new() }
    }

    fn handle(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let mut outputs = Vec::new();
            self.server.handle(input, self.now, &mut outputs);
            for output in outputs {
                match output {
                    Output::Lead { mine, lease } => {
                        inputs.push(Input::Led(self.disk.lead(&Name::new("server"), mine, lease)));
                    }
                    Output::Load => inputs.push(Input::Loaded(self.disk.load())),
                    Output::Commit(entry) => inputs.push(Input::Committed(self.disk.commit(&entry))),
                    Output::Reopen => drop(self.disk.reopen()),
                    Output::Answer { answer, .. } => self.answers.push(answer),
                    Output::Resign { .. } | Output::Effect(_) | Output::Written(_) | Output::Abort(_) => {}
                }
            }
        }
    }

    fn advance(&mut self, span: Span) {
        let end = self.now + span;
        while let Some(wake) = self.server.next_wake().filter(|wake| *wake <= end) {
            self.now = self.now.max(wake);
            self.disk.store.set_clock(self.now);
            self.handle(Input::Tick);
        }
        self.now = end;
    }

    /// What came of a submission.
    fn submit(&mut self, id: u128) -> Option<Answer> {
        self.handle(Input::Command { ticket: 0, command: submit(id) });
        self.handle(Input::Tick);
        self.answers.pop().expect("it is answered at once")
    }

    fn fill(&mut self, is_full: bool) {
        self.disk.is_full.store(is_full, Ordering::SeqCst);
    }
}

#[test]
fn a_full_disk_turns_callers_away_and_serves_them_again_once_there_is_room() {
    let mut driven = Driven::new();
    driven.advance(Span::seconds(1));
    assert!(matches!(driven.submit(1), Some(Answer::Accepted { .. })));
    driven.fill(true);
    assert_eq!(driven.submit(2), None, "turned away, not kept");
    assert_eq!(driven.server.outage(), Some(&full()));
    driven.advance(Span::minutes(10));
    assert_eq!(driven.submit(3), None);
    assert_eq!(driven.server.outage(), Some(&full()));

    driven.fill(false);
    driven.advance(Span::seconds(10));
    assert_eq!(driven.server.outage(), None, "known without anybody asking for anything");
    assert!(matches!(driven.submit(4), Some(Answer::Accepted { .. })));
    let core = driven.server.core().expect("it leads");
    assert_eq!(core.roots(), [RunId(1), RunId(4)], "what was accepted, and nothing else");
}

#[test]
fn a_disk_that_stays_full_is_tried_now_and_then() {
    let mut driven = Driven::new();
    driven.fill(true);
    driven.advance(Span::seconds(60));
    let opened = driven.disk.opened.load(Ordering::SeqCst);
    assert!((30..=40).contains(&opened), "every two seconds in the end, {opened} times in a minute");
}

#[test]
fn room_for_the_lead_alone_does_not_end_an_outage() {
    let mut driven = Driven::new();
    driven.advance(Span::seconds(1));
    driven.fill(true);
    driven.submit(1);
    driven.fill(false);
    driven.advance(Span::millis(150));
    assert!(driven.server.leads(), "it leads again");
    assert_eq!(driven.server.outage(), Some(&full()), "and has nothing to show for it yet");
    driven.submit(2);
    assert_eq!(driven.server.outage(), None);
}

#[test]
fn for_who_follows_an_outage_ends_when_the_store_says_that_another_leads() {
    let mut server = Server::new(Name::new("second"));
    let mut out = Vec::new();
    for trouble in [StoreError::Unknown("no answer".to_owned()), full()] {
        server.handle(Input::Tick, Moment(0), &mut out);
        server.handle(Input::Led(Err(trouble.clone())), Moment(0), &mut out);
        assert_eq!(server.outage(), Some(&trouble));
        server.handle(Input::Tick, Moment(0) + Span::seconds(5), &mut out);
        server.handle(Input::Led(Ok(None)), Moment(0) + Span::seconds(5), &mut out);
        assert_eq!(server.outage(), None, "what is asked of it can be forwarded");
    }
}

#[test]
fn a_store_that_was_written_by_a_clock_that_was_ahead_is_served_at_once() {
    let ahead = Moment(0) + Span::hours(9_000);
    let mut server = Server::new("engine".into());
    let mut outputs = Vec::new();
    let term = Term { term: 1, clock: Moment(5), alone: true, clean: true };
    let loaded = Loaded { snapshot: Snapshot { now: ahead, ..Snapshot::default() }, ..Loaded::default() };
    for input in [
        Input::Led(Ok(Some(term))),
        Input::Loaded(Ok(loaded)),
        Input::Command { ticket: 1, command: submit(1) },
        Input::Tick,
    ] {
        server.handle(input, Moment(100), &mut outputs);
    }
    let committed = outputs.iter().find_map(|output| match output {
        Output::Commit(entry) => Some(entry.now),
        _ => None,
    });
    assert_eq!(committed, Some(ahead), "time goes on from there");
    assert!(
        server.next_wake().is_some_and(|wake| wake <= Moment(100) + Span::seconds(1)),
        "it extends its lead"
    );
}

struct NoTemplates;

impl Evaluate for NoTemplates {
    fn evaluate(&self, _: &Asked, _: &mut dyn Reads) -> Result<Evaluation, StoreError> {
        Ok(Evaluation::Failed { error: "there are no flows here".to_owned() })
    }

    fn prepare(&self, _: &Name, _: &Definition, _: &Payload) -> Result<Prepared, String> {
        Err("there are no letters here".to_owned())
    }
}

#[tokio::test]
async fn an_engine_says_that_its_store_is_full_and_when_it_is_not_any_more() {
    let disk = Disk::new();
    let is_full = disk.is_full.clone();
    let reader = Box::new(disk.store.handle());
    let engine = Engine::start(Settings::new("engine"), Box::new(disk), reader, Arc::new(NoTemplates));
    let mut outage = engine.outage();
    engine.insist(submit(1)).await.unwrap();
    is_full.store(true, Ordering::SeqCst);
    let refused = engine.insist(submit(2)).await;
    assert!(matches!(refused, Err(EngineError::Outage(why)) if why == full()));
    assert_eq!(*outage.wait_for(Option::is_some).await.unwrap(), Some(full()));
    is_full.store(false, Ordering::SeqCst);
    outage.wait_for(Option::is_none).await.unwrap();
    engine.outlast(submit(2)).await.unwrap();
    assert_eq!(engine.read(|core, _| core.roots()).await.unwrap(), [RunId(1), RunId(2)]);
}
