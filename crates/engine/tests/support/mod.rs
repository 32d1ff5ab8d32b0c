//! What several tests of the engine need: a worker named `worker` that knows the function `mail`, and no templates.
#![allow(dead_code, reason = "each test uses a part of it")]

pub mod disk;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tidegate_core::Asked;
use tidegate_core::admission::{Skills, SlotCounts};
use tidegate_core::ids::{Name, NodeId, RunId};
use tidegate_core::protocol::{
    Answer, Command, Evaluation, Finish, Join, Lease, Outcome, Payload, Submission, Submit,
};
use tidegate_engine::{Definition, Delivery, Engine, Evaluate, Listener, Prepared, Settings};
use tidegate_store::{MemoryStore, Reads, Store, StoreError};
use tokio::sync::mpsc::UnboundedReceiver;

pub struct NoTemplates;

impl Evaluate for NoTemplates {
    fn evaluate(&self, _: &Asked, _: &mut dyn Reads) -> Result<Evaluation, StoreError> {
        Ok(Evaluation::Failed { error: "there are no flows here".to_owned() })
    }

    fn prepare(&self, name: &Name, _: &Definition, input: &Payload) -> Result<Prepared, String> {
        match name.as_str() {
            "impossible" => Err("nobody can do that".to_owned()),
            _ => Ok(Prepared::job(name, None, input.clone())),
        }
    }
}

pub fn engine(settings: Settings, store: &MemoryStore) -> Engine {
    Engine::start(settings, Box::new(store.handle()), Box::new(store.handle()), Arc::new(NoTemplates))
}

/// One of several servers that share a store, which is owned through `owner`.
pub async fn server(name: &str, owner: impl Store + 'static, store: &MemoryStore) -> Engine {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(address, None).await.unwrap();
    let settings = Settings { contact: Some(listener.contact().clone()), ..Settings::new(name) };
    let engine = Engine::start(settings, Box::new(owner), Box::new(store.handle()), Arc::new(NoTemplates));
    listener.serve(engine.clone());
    engine
}

pub fn worker() -> Name {
    Name::new("worker")
}

pub fn submit(id: u128) -> Submit {
    let what = Submission::Job { action: Name::new("mail"), key: None, order: Payload::new("1") };
    Submit { id: RunId(id), what, tags: vec![], priority: 0, due: None, idempotency: None }
}

pub fn join(slots: u32) -> Command {
    let slots = SlotCounts { process: 0, io: slots };
    let skills = Skills { functions: vec![Name::new("mail")], ..Skills::plain() };
    Command::Join(Join { worker: worker(), incarnation: 1, skills, slots })
}

pub fn succeeded(lease: Lease) -> Finish {
    let outcome = Outcome::Succeeded(Payload::new("\"done\""));
    Finish { worker: worker(), lease, outcome, offer: None }
}

pub fn node_of(answer: &Answer) -> NodeId {
    let Answer::Accepted { node, .. } = answer else { panic!("it was accepted: {answer:?}") };
    *node
}

pub async fn attempt(deliveries: &mut UnboundedReceiver<Delivery>) -> Lease {
    match deliveries.recv().await {
        Some(Delivery::Attempt { attempt, .. }) => attempt.lease,
        other => panic!("an attempt: {other:?}"),
    }
}
