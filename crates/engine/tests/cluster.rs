//! Servers that share a store: one leads, the others forward to it, and their workers work for it.

mod support;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use support::{attempt, engine, join, node_of, server, submit, succeeded, worker};
use tidegate_core::admission::SlotCounts;
use tidegate_core::ids::{Name, RunId, TaskId};
use tidegate_core::protocol::{
    Answer, Command, Heartbeat, Join, LARGEST_PAYLOAD, Payload, Refusal, Submission, Submit,
};
use tidegate_core::state::State;
use tidegate_core::time::{Moment, Span};
use tidegate_engine::events::{Position, Subscription};
use tidegate_engine::{Delivery, Engine, EngineError, Listener, Reader, Settings};
use tidegate_store::{Contact, MemoryStore, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Two servers, of which the first leads.
async fn two(store: &MemoryStore) -> (Engine, Engine) {
    let first = server("first", store.handle(), store).await;
    first.insist(Command::Wake).await.unwrap();
    (first, server("second", store.handle(), store).await)
}

#[tokio::test]
async fn a_server_that_follows_forwards_and_answers() {
    let store = MemoryStore::new();
    let (first, second) = two(&store).await;
    let node = node_of(&second.insist(Command::Submit(submit(1))).await.unwrap());
    assert_eq!(first.find(RunId(1)).await.unwrap(), Some(node));
    assert_eq!(second.find(RunId(1)).await.unwrap(), Some(node));
    let task = TaskId::node(node);
    let (here, there) =
        (first.explain(task).await.unwrap().unwrap(), second.explain(task).await.unwrap().unwrap());
    assert_eq!((here.name, here.reason), (there.name, there.reason));
    let again = second.insist(Command::Submit(submit(1))).await.unwrap();
    assert_eq!(again, Answer::Accepted { node, again: true });
    assert!(
        matches!(second.read(|_, _| ()).await, Err(EngineError::Unavailable)),
        "it has no core of its own"
    );
}

#[tokio::test]
async fn the_worker_of_a_follower_works_for_the_leader() {
    let store = MemoryStore::new();
    let (first, second) = two(&store).await;
    let mut deliveries = second.attach(worker(), 1);
    second.insist(join(1)).await.unwrap();
    first.send(Command::Submit(submit(1))).await.unwrap();
    let lease = attempt(&mut deliveries).await;
    let heartbeat = Heartbeat { worker: worker(), incarnation: 1, has: vec![lease] };
    let Answer::Renewal(renewal) = second.send(Command::Heartbeat(heartbeat)).await.unwrap() else {
        panic!()
    };
    assert_eq!(renewal.renewed, [lease]);
    second.report(vec![succeeded(lease)]);
    assert!(matches!(deliveries.recv().await, Some(Delivery::Reported(reported)) if reported == lease));
    assert_eq!(second.result(RunId(1)).await.unwrap().unwrap().state, State::Succeeded);
}

#[tokio::test]
async fn when_the_leader_ends_the_other_leads_and_goes_on() {
    let store = MemoryStore::new();
    let (first, second) = two(&store).await;
    let mut deliveries = second.attach(worker(), 1);
    second.insist(join(1)).await.unwrap();
    second.insist(Command::Submit(submit(1))).await.unwrap();
    let lease = attempt(&mut deliveries).await;
    let waiting = second.result(RunId(1));
    first.shut_down().await;
    assert!(waiting.await.is_err(), "who waits is told to ask again");
    second.insist(Command::Submit(submit(2))).await.unwrap();
    assert!(second.read(|_, _| ()).await.is_ok(), "it leads");
    second.report(vec![succeeded(lease)]);
    assert!(matches!(deliveries.recv().await, Some(Delivery::Reported(_))));
    attempt(&mut deliveries).await;
    assert_eq!(second.result(RunId(1)).await.unwrap().unwrap().state, State::Succeeded);
}

#[tokio::test]
async fn who_begins_to_lead_has_its_own_workers_whatever_was_thought_of_them_before() {
    let store = MemoryStore::new();
    let (first, second) = two(&store).await;
    let mut deliveries = second.attach(worker(), 1);
    second.insist(join(1)).await.unwrap();
    // As when the connection between the two is gone a moment before the first ends.
    let slots = SlotCounts::default();
    first.insist(Command::Offer { worker: worker(), incarnation: 1, slots }).await.unwrap();
    first.shut_down().await;
    second.insist(Command::Submit(submit(1))).await.unwrap();
    let delivered = tokio::time::timeout(Duration::from_secs(30), attempt(&mut deliveries)).await;
    second.report(vec![succeeded(delivered.expect("its worker is given something"))]);
    assert_eq!(second.result(RunId(1)).await.unwrap().unwrap().state, State::Succeeded);
}

#[tokio::test]
async fn who_begins_to_lead_does_not_speak_of_workers_that_it_was_told_to_forget() {
    let store = MemoryStore::new();
    let (first, second) = two(&store).await;
    let attachment = second.attach_to(worker(), 1, Box::new(|_| true));
    second.insist(join(1)).await.unwrap();
    second.forget(worker(), 1, attachment);
    let slots = SlotCounts::default();
    first.insist(Command::Offer { worker: worker(), incarnation: 1, slots }).await.unwrap();
    first.shut_down().await;
    second.insist(Command::Submit(submit(1))).await.unwrap();
    let mut deliveries = second.attach(Name::new("other"), 1);
    let Command::Join(join) = join(1) else { panic!() };
    second.insist(Command::Join(Join { worker: Name::new("other"), ..join })).await.unwrap();
    let delivered = tokio::time::timeout(Duration::from_secs(30), attempt(&mut deliveries)).await;
    delivered.expect("nobody else has it");
}

#[tokio::test]
async fn a_worker_that_finds_a_new_leader_is_told_at_once_what_to_stop() {
    let store = MemoryStore::new();
    let (first, second) = two(&store).await;
    let mut deliveries = second.attach(worker(), 1);
    second.insist(join(1)).await.unwrap();
    let node = node_of(&second.insist(Command::Submit(submit(1))).await.unwrap());
    let lease = attempt(&mut deliveries).await;
    second.insist(Command::Cancel(TaskId::node(node))).await.unwrap();
    first.shut_down().await;
    second.insist(Command::Wake).await.unwrap();
    let stops = async {
        let mut stops = 0;
        while stops < 2 {
            stops +=
                u32::from(matches!(deliveries.recv().await, Some(Delivery::Stop(told)) if told == lease));
        }
    };
    // Well before it says what it has.
    tokio::time::timeout(Duration::from_secs(5), stops).await.expect("by both who led");
}

#[tokio::test]
async fn a_leader_whose_lease_is_over_is_deposed_and_follows() {
    let store = MemoryStore::new();
    let (first, second) = two(&store).await;
    second.insist(Command::Submit(submit(1))).await.unwrap();
    // By the store's clock the first was silent for too long: whoever asks first leads, and both may ask.
    store.set_clock(Moment(0) + Span::seconds(60));
    let mut handle = store.handle();
    let term = handle.lead(&"third".into(), None, Span::seconds(1)).unwrap();
    assert!(term.is_some(), "a third took it");
    assert!(first.send(Command::Submit(submit(2))).await.is_err(), "what it decides is not taken");
    handle.resign(term.unwrap().term).unwrap();
    for (id, server) in [(3, &first), (4, &second)] {
        node_of(&server.insist(Command::Submit(submit(id))).await.unwrap());
    }
    let leaders = [first.read(|_, _| ()).await.is_ok(), second.read(|_, _| ()).await.is_ok()];
    assert_eq!(leaders.iter().filter(|leads| **leads).count(), 1, "{leaders:?}");
    let found = [first.find(RunId(2)).await.unwrap(), second.find(RunId(2)).await.unwrap()];
    assert_eq!(found, [None, None], "nothing of the deposed is left");
}

fn events(engine: &Engine, store: &MemoryStore, after: Option<Position>) -> Subscription {
    Subscription::new(engine, Reader::from(Box::new(store.handle())), after)
}

#[tokio::test]
async fn what_happens_is_told_by_a_server_that_follows_from_its_last_answer_on() {
    let store = MemoryStore::new();
    let (first, second) = two(&store).await;
    first.insist(Command::Submit(submit(1))).await.unwrap();
    for id in 2..20 {
        second.insist(Command::Submit(submit(id))).await.unwrap();
        let mut events = events(&second, &store, None);
        first.insist(Command::Submit(submit(100 + id))).await.unwrap();
        assert_eq!(events.next().await.unwrap().run, Some(RunId(100 + id)));
    }
}

#[tokio::test]
async fn what_happens_is_told_where_nothing_is_heard_of_the_leader_too() {
    let store = MemoryStore::new();
    // It leads, and nobody can reach it.
    let first = engine(Settings::new("first"), &store);
    first.insist(Command::Wake).await.unwrap();
    let second = server("second", store.handle(), &store).await;
    let mut events = events(&second, &store, Some(Position::START));
    for id in 1..4 {
        let (event, submitted) = tokio::join!(events.next(), first.insist(Command::Submit(submit(id))));
        assert_eq!((event.unwrap().run, submitted.is_ok()), (Some(RunId(id)), true));
    }
}

#[tokio::test]
async fn a_leader_that_was_deposed_takes_nobodys_workers_along() {
    let store = MemoryStore::new();
    let (first, second) = two(&store).await;
    let mut deliveries = second.attach(worker(), 1);
    second.insist(join(1)).await.unwrap();
    // While the first is stopped, the second takes over; then the first goes on.
    store.set_clock(Moment(0) + Span::seconds(60));
    assert!(store.handle().lead(&"second".into(), None, Span::seconds(1_000)).unwrap().is_some());
    while second.read(|_, _| ()).await.is_err() {
        second.insist(Command::Wake).await.unwrap();
    }
    // What the first forwards comes after whatever it says first.
    first.insist(Command::Submit(submit(1))).await.unwrap();
    let delivered = tokio::time::timeout(Duration::from_secs(10), attempt(&mut deliveries)).await;
    let lease = delivered.expect("the worker is reached where it is");
    second.report(vec![succeeded(lease)]);
    assert_eq!(first.result(RunId(1)).await.unwrap().unwrap().state, State::Succeeded);
}

/// A job with an order of so many bytes.
fn sized(id: u128, bytes: usize) -> Submit {
    let order = Payload::new(vec![b'1'; bytes]);
    Submit { what: Submission::Job { action: "mail".into(), key: None, order }, ..submit(id) }
}

#[tokio::test]
async fn what_no_message_can_hold_is_refused_and_everything_else_goes_on() {
    let store = MemoryStore::new();
    let (first, second) = two(&store).await;
    let too_large = [sized(1, 90 << 20)];
    let too_many = (2..8).map(|id| sized(id, LARGEST_PAYLOAD));
    for errand in [too_large.to_vec(), too_many.collect()] {
        let count = errand.len();
        let answers = second.submit_new(errand).await.unwrap();
        let is_refused = |answer: &Answer| matches!(answer, Answer::Refused(Refusal::TooLarge { .. }));
        assert!(answers.len() == count && answers.iter().all(is_refused), "{answers:?}");
    }
    assert_eq!(first.find(RunId(2)).await.unwrap(), None);
    let answers = second.submit_new((8..12).map(|id| sized(id, LARGEST_PAYLOAD)).collect()).await.unwrap();
    assert!(answers.iter().all(|answer| matches!(answer, Answer::Accepted { .. })), "{answers:?}");
}

#[tokio::test]
async fn strangers_are_not_served() {
    let store = MemoryStore::new();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(address, Some("localhost")).await.unwrap();
    let Contact { address, token } = listener.contact().clone();
    assert!(address.starts_with("localhost:") && token.len() == 64, "{address} {token}");
    listener.serve(engine(Settings::new("first"), &store));
    for hello in [
        tidegate_wire::Request::Hello { version: tidegate_wire::VERSION, token: "guessed".to_owned() },
        tidegate_wire::Request::Hello { version: 0, token },
        tidegate_wire::Request::Ping { sent: 1 },
        // It is closed before all of it was listened to.
        tidegate_wire::Request::Hello { version: tidegate_wire::VERSION, token: "x".repeat(8 << 20) },
    ] {
        let mut socket = TcpStream::connect(&address).await.unwrap();
        let mut bytes = Vec::new();
        tidegate_wire::frame(&hello, &mut bytes).unwrap();
        let _ = socket.write_all(&bytes).await;
        let mut received = [0; 64];
        let closed = socket.read(&mut received);
        let read = tokio::time::timeout(Duration::from_secs(10), closed).await.expect("it is closed");
        assert_eq!(read.unwrap_or(0), 0, "{} bytes", bytes.len());
    }
}
