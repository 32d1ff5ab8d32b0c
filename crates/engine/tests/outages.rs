//! A store that cannot be used for a while: nobody is kept waiting, nothing accepted is lost, and work goes on by
//! itself soon after.

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use support::disk::{Disk, full};
use tidegate_core::Asked;
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::{Answer, Command, Evaluation, Payload, Snapshot, Submission, Submit};
use tidegate_core::time::{Moment, Span};
use tidegate_engine::{Definition, Engine, EngineError, Evaluate, Input, Output, Prepared, Server, Settings};
use tidegate_store::{Before, Commit, Loaded, Reads, Store, StoreError, Term};

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
fn a_store_that_has_too_much_to_do_keeps_callers_waiting_and_is_no_outage() {
    let mut server = Server::new("engine".into());
    let term = Term { term: 1, clock: Moment(5), alone: false, clean: true };
    let mut handle = |input| {
        let mut outputs = Vec::new();
        server.handle(input, Moment(100), &mut outputs);
        server.handle(Input::Tick, Moment(100), &mut outputs);
        let committed = |output: &Output| matches!(output, Output::Commit(_));
        let answered = |output: &Output| matches!(output, Output::Answer { answer: Some(_), .. });
        let found = (outputs.iter().any(committed), outputs.iter().any(answered));
        (found, server.outage().cloned())
    };
    handle(Input::Led(Ok(Some(term))));
    handle(Input::Loaded(Ok(Loaded::default())));
    assert_eq!(handle(Input::Command { ticket: 1, command: submit(1) }), ((true, false), None));
    for _ in 0..3 {
        let later = handle(Input::Committed(Ok(Commit::Later)));
        assert_eq!(later, ((true, false), None), "the same is asked for again, and nobody is told anything");
    }
    assert_eq!(handle(Input::Committed(Ok(Commit::Done))), ((false, true), None));
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

/// Whatever is asked while the store cannot be used is answered with the reason.
async fn nobody_is_kept_waiting(engine: &Engine) {
    let told = [
        engine.find(RunId(1)).await.map(drop),
        engine.result(RunId(1)).await.map(drop),
        engine.explain(TaskId::node(NodeId(1))).await.map(drop),
        engine.definition("anything".into()).await.map(drop),
        engine.prune(Before::all(Moment(0))).await.map(drop),
    ];
    for answer in told {
        assert!(matches!(answer, Err(EngineError::Outage(why)) if why == full()));
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
    nobody_is_kept_waiting(&engine).await;
    is_full.store(false, Ordering::SeqCst);
    outage.wait_for(Option::is_none).await.unwrap();
    engine.outlast(submit(2)).await.unwrap();
    assert_eq!(engine.read(|core, _| core.roots()).await.unwrap(), [RunId(1), RunId(2)]);
}

/// A commit that does not come back keeps nobody waiting for ever; what was asked for happens when it does.
#[tokio::test]
async fn a_store_that_does_not_answer_is_said_to_whoever_waits() {
    let disk = Disk::new();
    let (gate, reads) = (disk.gate.clone(), disk.store.handle());
    let engine =
        Engine::start(Settings::new("server"), Box::new(disk), Box::new(reads), Arc::new(NoTemplates));
    engine.insist(Command::Wake).await.unwrap();
    gate.allow(0);
    let stalled = engine.insist(submit(1)).await;
    assert!(matches!(stalled, Err(EngineError::Outage(StoreError::Unknown(_)))), "{stalled:?}");
    let begin = std::time::Instant::now();
    assert!(matches!(engine.insist(submit(2)).await, Err(EngineError::Outage(_))));
    assert!(begin.elapsed() < std::time::Duration::from_secs(2), "who comes later is told at once");
    gate.open();
    let again = engine.outlast(submit(1)).await.unwrap();
    assert!(matches!(again, Answer::Accepted { again: true, .. }), "{again:?}");
    engine.shut_down().await;
}

#[tokio::test]
async fn a_store_that_puts_commits_off_is_said_to_whoever_waits() {
    let disk = Disk::new();
    let (is_behind, reads) = (disk.is_behind.clone(), disk.store.handle());
    let engine =
        Engine::start(Settings::new("server"), Box::new(disk), Box::new(reads), Arc::new(NoTemplates));
    engine.insist(Command::Wake).await.unwrap();
    is_behind.store(true, Ordering::SeqCst);
    let stalled = engine.insist(submit(1)).await;
    assert!(matches!(stalled, Err(EngineError::Outage(StoreError::Unknown(_)))), "{stalled:?}");
    is_behind.store(false, Ordering::SeqCst);
    let again = engine.outlast(submit(1)).await.unwrap();
    assert!(matches!(again, Answer::Accepted { again: true, .. }), "{again:?}");
    engine.shut_down().await;
}
