//! Several commands at once, results that are waited for, and letters in the mailbox.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{NoTemplates, attempt, engine, join, node_of, submit, succeeded, worker};
use tidegate_core::Asked;
use tidegate_core::ids::{Name, RunId};
use tidegate_core::protocol::{
    Answer, Body, Command, Evaluation, Payload, Refusal, Retry, Submission, Submit, Write,
};
use tidegate_core::state::State;
use tidegate_engine::{Definition, Delivery, Engine, Evaluate, Prepared, Settings};
use tidegate_store::{MemoryStore, Reads, StoreError};

fn alone(store: &MemoryStore) -> Engine {
    engine(Settings::new("engine"), store)
}

#[tokio::test]
async fn commands_of_one_errand_are_answered_in_order() {
    let store = MemoryStore::new();
    let engine = alone(&store);
    let other = submit(3).under("once");
    let conflict = Submit {
        what: Submission::Job { action: "mail".into(), key: None, order: Payload::new("2") },
        ..submit(4)
    }
    .under("once");
    let answers = engine.submit_new(vec![submit(1), submit(2), other, conflict]).await.unwrap();
    let nodes: Vec<u64> = answers[..3].iter().map(|answer| node_of(answer).0).collect();
    assert!(nodes.is_sorted(), "{nodes:?}");
    assert_eq!(answers[3], Answer::Refused(Refusal::KeyConflict("once".into())));
    assert_eq!(engine.insist_on_all(Vec::new()).await.unwrap(), []);
    let again = engine.insist_on_all([submit(1), submit(2)].map(Command::Submit).to_vec()).await.unwrap();
    assert_eq!(again[1], Answer::Accepted { node: node_of(&answers[1]), again: true });
}

#[tokio::test]
async fn a_key_is_known_after_its_task_has_ended_and_the_engine_was_started_anew() {
    let store = MemoryStore::new();
    let first = alone(&store);
    let mut deliveries = first.attach(worker(), 1);
    first.insist(join(1)).await.unwrap();
    let once = submit(1).under("once");
    let node = node_of(&first.send(Command::Submit(once.clone())).await.unwrap());
    first.report(vec![succeeded(attempt(&mut deliveries).await)]);
    first.result(RunId(1)).await.unwrap();
    first.shut_down().await;

    let second = alone(&store);
    let again = Submit { id: RunId(2), ..once.clone() };
    assert_eq!(
        second.insist(Command::Submit(again)).await.unwrap(),
        Answer::Accepted { node, again: true },
        "the same under another id"
    );
    let other = Submission::Job { action: "other".into(), key: None, order: Payload::new("1") };
    let conflict = Submit { id: RunId(3), what: other, ..once }.under("once");
    let answer = second.insist(Command::Submit(conflict)).await.unwrap();
    assert_eq!(answer, Answer::Refused(Refusal::KeyConflict("once".into())));
}

#[tokio::test]
async fn a_result_is_told_when_there_is_one() {
    let store = MemoryStore::new();
    let engine = alone(&store);
    let mut deliveries = engine.attach(worker(), 1);
    engine.insist(join(1)).await.unwrap();
    assert_eq!(engine.result(RunId(1)).await.unwrap(), None, "nobody submitted it");
    let node = node_of(&engine.send(Command::Submit(submit(1))).await.unwrap());
    let (waiting, lease) = (engine.result(RunId(1)), attempt(&mut deliveries).await);
    let report = async {
        engine.report(vec![succeeded(lease)]);
        assert!(matches!(deliveries.recv().await, Some(Delivery::Reported(reported)) if reported == lease));
    };
    let (result, ()) = tokio::join!(waiting, report);
    let result = result.unwrap().unwrap();
    assert_eq!((result.node, result.state, result.attempts), (node, State::Succeeded, 1));
    assert_eq!(result.output, Some(Payload::new("\"done\"")));
    assert_eq!(engine.result(RunId(1)).await.unwrap(), Some(result), "and afterwards");
}

#[tokio::test]
async fn an_engine_that_ends_first_makes_durable_what_it_took_in() {
    let mut store = MemoryStore::new();
    let engine = alone(&store);
    engine.insist(Command::Submit(submit(1))).await.unwrap();
    let (answer, ()) = tokio::join!(engine.send(Command::Submit(submit(2))), engine.shut_down());
    let is_accepted = answer.is_ok();
    let open = store.load().unwrap().snapshot.nodes.len();
    assert_eq!(open, if is_accepted { 2 } else { 1 });
    assert_eq!(
        engine.send(Command::Submit(submit(3))).await.unwrap_err().to_string(),
        "the engine has ended"
    );
    engine.ended().await;
}

#[tokio::test]
async fn letters_become_submissions_in_their_order_and_leave_the_mailbox() {
    let mut store = MemoryStore::new();
    let engine = alone(&store);
    let mut entries = engine.subscribe();
    engine.insist(Command::Wake).await.unwrap();
    let letters: [(u128, &str); 5] = [
        (1, r#"{"name": "mail", "input": {"to": "a"}, "priority": 3, "tags": {"team": "x"}, "key": "once"}"#),
        (2, r#"{"name": "mail", "input": {"to": "a"}, "key": "once"}"#),
        (3, r#"{"name": "impossible"}"#),
        (4, "no letter at all"),
        (5, r#"{"name": "mail", "due": "2100-01-01T00:00:00+00:00"}"#),
    ];
    letters.iter().for_each(|(id, content)| store.post(RunId(*id), content.as_bytes()));
    let (mut added, mut taken) = (Vec::new(), BTreeSet::new());
    while taken.len() < 4 {
        let entry = entries.recv().await.unwrap();
        taken.extend(entry.letters.iter().copied());
        added.extend(entry.writes.iter().filter_map(|write| match write {
            Write::NodeAdded(row) => Some((row.node, row.life.state, row.life.error.clone())),
            _ => None,
        }));
    }
    let states: Vec<State> = added.iter().map(|(_, state, _)| *state).collect();
    assert_eq!(states, [State::Waiting, State::Refused, State::Scheduled], "the second is the first again");
    assert_eq!(added[1].2.as_deref(), Some("nobody can do that"));
    let row = store.load().unwrap().snapshot.nodes.into_iter().find(|row| row.node == added[0].0).unwrap();
    assert_eq!((row.priority, row.payload), (3, Some(Payload::new(r#"{"to":"a"}"#))));
    engine.shut_down().await;
    assert_eq!(
        tidegate_store::Store::letters(&mut store, 0, 10).unwrap(),
        [],
        "what cannot be read is set aside"
    );
}

/// Says when it begins, and takes longer than it takes to look for more.
struct Laborious(std::sync::mpsc::Sender<()>);

impl Evaluate for Laborious {
    fn evaluate(&self, asked: &Asked, store: &mut dyn Reads) -> Result<Evaluation, StoreError> {
        NoTemplates.evaluate(asked, store)
    }

    fn prepare(&self, name: &Name, _: &Definition, input: &Payload) -> Result<Prepared, String> {
        let begin = Instant::now();
        let _ = self.0.send(());
        while name.as_str() == "laborious" && begin.elapsed() < Duration::from_millis(500) {
            std::thread::yield_now();
        }
        Ok(Prepared::job(name, None, input.clone()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_that_take_long_are_not_overtaken() {
    let store = MemoryStore::new();
    let (begins, begun) = std::sync::mpsc::channel();
    let (owner, reader, evaluator) = (store.handle(), store.handle(), Arc::new(Laborious(begins)));
    let engine = Engine::start(Settings::new("server"), Box::new(owner), Box::new(reader), evaluator);
    let mut entries = engine.subscribe();
    engine.insist(Command::Wake).await.unwrap();
    store.post(RunId(1), br#"{"name": "laborious"}"#);
    tokio::task::block_in_place(|| begun.recv().unwrap());
    store.post(RunId(2), br#"{"name": "mail"}"#);
    let mut added = Vec::new();
    while added.len() < 2 {
        let entry = entries.recv().await.unwrap();
        added.extend(entry.writes.iter().filter_map(|write| match write {
            Write::NodeAdded(row) => Some((row.node, row.body.clone())),
            _ => None,
        }));
    }
    let id = |body: &Body| matches!(body, Body::Job(job) if job.id == RunId(1));
    assert!(id(&added[0].1) && !id(&added[1].1), "{added:?}");
    engine.shut_down().await;
}

#[tokio::test]
async fn a_letter_whose_key_means_something_else_is_refused_and_says_so() {
    let store = MemoryStore::new();
    let engine = alone(&store);
    let mut entries = engine.subscribe();
    engine.insist(Command::Submit(submit(1).under("once"))).await.unwrap();
    store.post(RunId(2), br#"{"name": "other", "key": "once"}"#);
    loop {
        let entry = entries.recv().await.unwrap();
        if entry.letters.is_empty() {
            continue;
        }
        let Some(Write::NodeAdded(row)) = entry.writes.first() else { panic!("{entry:?}") };
        assert_eq!(row.life.state, State::Refused);
        assert_eq!(row.life.error.as_deref(), Some("idempotency key `once` was used for something else"));
        return;
    }
}

#[tokio::test]
async fn a_retry_whose_answer_was_lost_makes_one_run_also_after_that_has_ended() {
    let store = MemoryStore::new();
    let first = alone(&store);
    let retry = |id, of| Retry { id: RunId(id), of: RunId(of), from_start: true, queue: None, past: None };
    assert_eq!(first.retry(retry(2, 1)).await.unwrap(), Answer::Refused(Refusal::UnknownRun(RunId(1))));
    let mut deliveries = first.attach(worker(), 1);
    first.insist(join(1)).await.unwrap();
    first.send(Command::Submit(submit(1))).await.unwrap();
    assert_eq!(first.retry(retry(2, 1)).await.unwrap(), Answer::Refused(Refusal::StillOpen(RunId(1))));
    first.report(vec![succeeded(attempt(&mut deliveries).await)]);
    first.result(RunId(1)).await.unwrap();
    assert!(matches!(deliveries.recv().await, Some(Delivery::Reported(_))));
    let node = node_of(&first.retry(retry(2, 1)).await.unwrap());
    let again = Answer::Accepted { node, again: true };
    assert_eq!(first.insist(Command::Retry(retry(2, 1))).await.unwrap(), again);
    first.report(vec![succeeded(attempt(&mut deliveries).await)]);
    assert_eq!(first.result(RunId(2)).await.unwrap().map(|result| result.node), Some(node));
    first.shut_down().await;
    let second = alone(&store);
    assert_eq!(second.insist(Command::Retry(retry(2, 1))).await.unwrap(), again);
    second.shut_down().await;
}
