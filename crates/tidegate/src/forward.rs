//! Carries messages between the engine and the worker of this process.

use std::time::Duration;
use tidegate_core::admission::{Skills, SlotCounts};
use tidegate_core::ids::Name;
use tidegate_core::protocol::{Answer, Command, Finish, Heartbeat, Join, Leave, Outcome, Refusal};
use tidegate_core::time::Moment;
use tidegate_engine::{Delivery, Engine};
use tidegate_worker::{EngineEnd, ToEngine, ToWorker};
use tokio::sync::{mpsc, oneshot};

/// What a worker says again by itself is not tried for longer: in an outage there would be more and more of it.
const SAID_AGAIN: Duration = Duration::from_secs(10);

/// The engine's side of a worker.
#[derive(Clone)]
pub(crate) struct Forward {
    pub engine: Engine,
    pub worker: Name,
    pub incarnation: u64,
    pub to_worker: mpsc::UnboundedSender<ToWorker>,
    /// How it joined, should the engine take it for lost.
    joined: Option<Join>,
}

impl Forward {
    /// Until the worker is gone. Says when it has joined.
    pub async fn run(
        engine: Engine,
        worker: Name,
        incarnation: u64,
        end: EngineEnd,
        has_joined: oneshot::Sender<()>,
    ) {
        let mut has_joined = Some(has_joined);
        let EngineEnd { to_worker, mut from_worker } = end;
        tokio::spawn(deliver(engine.attach(worker.clone(), incarnation), to_worker.clone()));
        let mut forward = Forward { engine, worker, incarnation, to_worker, joined: None };
        while let Some(message) = from_worker.recv().await {
            // Joining comes first and leaving last; everything between may overtake.
            match message {
                ToEngine::Join(join) => {
                    let join = forward.join(join);
                    forward.joined = Some(join.clone());
                    forward.tell(Command::Join(join)).await;
                    // Nobody may be waiting for it.
                    has_joined.take().map(|told| told.send(()));
                }
                ToEngine::Leave => {
                    let (worker, incarnation) = (forward.worker.clone(), incarnation);
                    forward.tell(Command::Leave(Leave { worker, incarnation })).await;
                }
                ToEngine::Draining => {
                    // Who drains does not come back.
                    forward.joined = None;
                    let (worker, slots) = (forward.worker.clone(), SlotCounts::default());
                    forward.tell(Command::Offer { worker, incarnation, slots }).await;
                }
                ToEngine::Heartbeat { heartbeat, sent } => {
                    let forward = forward.clone();
                    tokio::spawn(async move { forward.heartbeat(heartbeat, sent).await });
                }
                ToEngine::Report { lease, outcome } => {
                    // A worker that hands back is about to leave: it must not get the same thing again.
                    let offer = (outcome == Outcome::HandedBack).then(SlotCounts::default);
                    let finish = Finish { worker: forward.worker.clone(), lease, outcome, offer };
                    forward.engine.report(vec![finish]);
                }
            }
        }
    }

    fn join(&self, join: tidegate_worker::Join) -> Join {
        let skills = Skills {
            queues: join.queues,
            labels: join.labels,
            functions: join.functions,
            processes: join.slots.process > 0,
        };
        let slots = SlotCounts { process: join.slots.process, io: join.slots.io };
        Join { worker: self.worker.clone(), incarnation: self.incarnation, skills, slots }
    }

    async fn heartbeat(&self, heartbeat: Heartbeat, sent: Moment) {
        match self.tell(Command::Heartbeat(heartbeat)).await {
            Some(Answer::Renewal(renewal)) => self.answer(ToWorker::Renewal { renewal, sent }),
            // It was not heard for so long that it was taken for lost, as after the machine slept.
            Some(Answer::Refused(Refusal::UnknownWorker(_))) => {
                if let Some(join) = self.joined.clone() {
                    self.tell(Command::Join(join)).await;
                }
            }
            _ => {}
        }
    }

    /// The answer, if the engine has one before the worker says the same again.
    async fn tell(&self, command: Command) -> Option<Answer> {
        let is_said_again = matches!(command, Command::Heartbeat(_));
        let answer = self.engine.outlast(command);
        match is_said_again {
            true => tokio::time::timeout(SAID_AGAIN, answer).await.ok()?.ok(),
            false => answer.await.ok(),
        }
    }

    /// A worker that is gone does not need it.
    fn answer(&self, message: ToWorker) {
        let _ = self.to_worker.send(message);
    }
}

async fn deliver(
    mut deliveries: mpsc::UnboundedReceiver<Delivery>,
    to_worker: mpsc::UnboundedSender<ToWorker>,
) {
    while let Some(delivery) = deliveries.recv().await {
        let message = match delivery {
            Delivery::Attempt { attempt, run, age, as_of } => {
                let granted = tidegate_worker::clock::now() - (age + as_of.elapsed()).into();
                ToWorker::Attempt { attempt, run, granted }
            }
            Delivery::Stop(lease) => ToWorker::Stop(lease),
            Delivery::Reported(lease) => ToWorker::Reported(lease),
            Delivery::Abort(leases, told) => ToWorker::Abort(leases, told),
        };
        if to_worker.send(message).is_err() {
            return;
        }
    }
}
