//! The least an engine can be: hands out what it is told to, renews everything or nothing, acknowledges all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidegate_core::ids::{Epoch, NodeId, RunId, TaskId};
use tidegate_core::protocol::{Attempt, Lease, Outcome, Payload, Renewal};
use tidegate_core::time::Span;
use tidegate_worker::{Join, Link, ToEngine, ToWorker, clock};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

/// What the engine heard, apart from heartbeats.
#[derive(Debug, PartialEq)]
pub enum Heard {
    Joined(Join),
    Reported(Lease, Outcome),
    Draining,
    Left,
}

pub struct Engine {
    to_worker: UnboundedSender<ToWorker>,
    heard: UnboundedReceiver<Heard>,
    renews: Arc<AtomicBool>,
    answers: JoinHandle<()>,
    granted: u64,
    pub lease: Span,
}

impl Engine {
    /// With the end of its link for a worker.
    pub fn new() -> (Engine, Link) {
        let (outbox, from_worker) = unbounded_channel();
        // An engine that is gone shows as the end of the inbox.
        let (link, to_worker) = Link::to(move |message| drop(outbox.send(message)));
        let (tell, heard) = unbounded_channel();
        let renews = Arc::new(AtomicBool::new(true));
        let answers = tokio::spawn(answer(to_worker.clone(), from_worker, tell, renews.clone()));
        let engine = Engine { to_worker, heard, renews, answers, granted: 0, lease: Span::seconds(30) };
        (engine, link)
    }

    pub fn stop_renewing(&self) {
        self.renews.store(false, Ordering::Relaxed);
    }

    /// A new task, whose order is this.
    pub fn hand_out(&mut self, order: Payload) -> Lease {
        self.granted += 1;
        let task = TaskId::node(NodeId(self.granted));
        let lease = Lease { task, epoch: Epoch { incarnation: 1, grant: self.granted } };
        let attempt = Attempt { lease, order, length: self.lease, left: self.lease, number: 1 };
        self.send(ToWorker::Attempt { attempt, run: RunId(1), granted: clock::now() });
        lease
    }

    pub fn stop(&self, lease: Lease) {
        self.send(ToWorker::Stop(lease));
    }

    /// As if the engine's process had dropped it.
    pub fn go_away(self) {
        self.answers.abort();
    }

    pub async fn next(&mut self) -> Heard {
        self.heard.recv().await.expect("the worker says something")
    }

    /// The end of the one attempt that is under way.
    pub async fn outcome(&mut self, lease: Lease) -> Outcome {
        loop {
            match self.next().await {
                Heard::Reported(reported, outcome) if reported == lease => return outcome,
                Heard::Joined(_) => {}
                other => panic!("expected the end of {lease:?}, heard {other:?}"),
            }
        }
    }

    fn send(&self, message: ToWorker) {
        self.to_worker.send(message).expect("the worker listens");
    }
}

async fn answer(
    to_worker: UnboundedSender<ToWorker>,
    mut from_worker: UnboundedReceiver<ToEngine>,
    tell: UnboundedSender<Heard>,
    renews: Arc<AtomicBool>,
) {
    let mut reported = BTreeMap::new();
    while let Some(message) = from_worker.recv().await {
        let heard = match message {
            ToEngine::Join(join) => Heard::Joined(join),
            ToEngine::Heartbeat { heartbeat, sent } => {
                let renewed = if renews.load(Ordering::Relaxed) { heartbeat.has } else { Vec::new() };
                let renewal = Renewal { renewed, stop: Vec::new() };
                let _ = to_worker.send(ToWorker::Renewal { renewal, sent });
                continue;
            }
            ToEngine::Reports(reports) => {
                for (lease, outcome) in reports {
                    let _ = to_worker.send(ToWorker::Reported(lease));
                    // A repeated report must say the same.
                    match reported.insert(lease, outcome.clone()) {
                        Some(before) => assert_eq!(before, outcome),
                        None => drop(tell.send(Heard::Reported(lease, outcome))),
                    }
                }
                continue;
            }
            ToEngine::Draining => Heard::Draining,
            ToEngine::Leave => Heard::Left,
        };
        let _ = tell.send(heard);
    }
}
