//! Carries messages between the engine and the worker of this process.

use std::time::Duration;
use tidegate_core::admission::{Skills, SlotCounts};
use tidegate_core::ids::Name;
use tidegate_core::protocol::{Answer, Command, Finish, Heartbeat, Join, Leave, Outcome, Refusal};
use tidegate_core::time::Moment;
use tidegate_engine::{Delivery, Engine};
use tidegate_worker::{Control, Link, Settings, ToEngine, ToWorker, Worker, WorkerError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// What a worker says again by itself is not tried for longer: in an outage there would be more and more of it.
const SAID_AGAIN: Duration = Duration::from_secs(10);

/// A worker that works for an engine of the same process. See [`hire`].
pub struct Hired {
    /// Ends it.
    pub control: Control,
    /// It has joined, or was refused; nothing if the engine has ended.
    pub joined: oneshot::Receiver<Result<(), Refusal>>,
    /// It has left, and nothing that it started runs any more.
    pub left: JoinHandle<Result<(), WorkerError>>,
}

/// Has a worker work for an engine of this process, under a name that nobody else works under.
/// [`Tidegate::work`](crate::Tidegate::work) does this for the functions that a program defines.
pub fn hire(engine: &Engine, settings: Settings) -> Hired {
    let (worker, incarnation) = (settings.name.clone(), settings.incarnation);
    let (rest, from_worker) = mpsc::unbounded_channel();
    let (link, to_worker) = Link::to(say(engine.clone(), worker.clone(), rest));
    let (inbox, name) = (to_worker.clone(), worker.clone());
    engine.attach_to(
        worker.clone(),
        incarnation,
        Box::new(move |delivery| {
            let message = message(delivery, &name, incarnation);
            message.is_none_or(|message| inbox.send(message).is_ok())
        }),
    );
    let (told, joined) = oneshot::channel();
    let forward = Forward { engine: engine.clone(), worker, incarnation, to_worker, joined: None };
    tokio::spawn(forward.run(from_worker, told));
    let worker = Worker::new(settings);
    Hired { control: worker.control(), joined, left: tokio::spawn(worker.run(link)) }
}

/// Reports, of which there are many, go straight to the engine; with the rest somebody waits for answers.
fn say(engine: Engine, worker: Name, rest: mpsc::UnboundedSender<ToEngine>) -> impl Fn(ToEngine) + Send {
    move |message| match message {
        ToEngine::Reports(reports) => {
            let finish = |(lease, outcome)| {
                // A worker that hands back is about to leave: it must not get the same thing again.
                let offer = (outcome == Outcome::HandedBack).then(SlotCounts::default);
                Finish { worker: worker.clone(), lease, outcome, offer }
            };
            engine.report(reports.into_iter().map(finish).collect());
        }
        // An engine that has ended tells the worker by itself.
        message => drop(rest.send(message)),
    }
}

fn message(delivery: Delivery, worker: &Name, incarnation: u64) -> Option<ToWorker> {
    Some(match delivery {
        Delivery::Attempt { attempt, run, age, as_of } => {
            let granted = tidegate_worker::clock::now() - (age + as_of.elapsed()).into();
            ToWorker::Attempt { attempt, run, granted }
        }
        Delivery::Stop(lease) => ToWorker::Stop(lease),
        Delivery::Reported(lease) => ToWorker::Reported(lease),
        Delivery::Abort(leases, told) => ToWorker::Abort(leases, told),
        Delivery::Replaced { by } if by > incarnation => {
            ToWorker::Refused(Refusal::WorkerReplaced(worker.clone()))
        }
        // It is about one that had this name before.
        Delivery::Replaced { .. } => return None,
    })
}

/// The engine's side of a worker.
#[derive(Clone)]
struct Forward {
    engine: Engine,
    worker: Name,
    incarnation: u64,
    to_worker: mpsc::UnboundedSender<ToWorker>,
    /// How it joined, should the engine take it for lost.
    joined: Option<Join>,
}

impl Forward {
    /// Until the worker is gone. Says when it has joined.
    async fn run(
        mut self,
        mut from_worker: mpsc::UnboundedReceiver<ToEngine>,
        has_joined: oneshot::Sender<Result<(), Refusal>>,
    ) {
        let mut has_joined = Some(has_joined);
        let incarnation = self.incarnation;
        while let Some(message) = from_worker.recv().await {
            // Joining comes first and leaving last; everything between may overtake.
            match message {
                ToEngine::Join(join) => {
                    let join = self.join(join);
                    self.joined = Some(join.clone());
                    let Some(joined) = self.introduce(join).await else { return };
                    // Nobody may be waiting for it.
                    has_joined.take().map(|told| told.send(joined));
                }
                ToEngine::Leave => {
                    let worker = self.worker.clone();
                    self.tell(Command::Leave(Leave { worker, incarnation })).await;
                }
                ToEngine::Draining => {
                    // Who drains does not come back.
                    self.joined = None;
                    let (worker, slots) = (self.worker.clone(), SlotCounts::default());
                    self.tell(Command::Offer { worker, incarnation, slots }).await;
                }
                ToEngine::Heartbeat { heartbeat, sent } => {
                    let forward = self.clone();
                    tokio::spawn(async move { forward.heartbeat(heartbeat, sent).await });
                }
                // It does not come this way.
                ToEngine::Reports(_) => {}
            }
        }
    }

    fn join(&self, join: tidegate_worker::Join) -> Join {
        let skills = Skills {
            queues: join.queues,
            labels: join.labels,
            functions: join.functions,
            processes: join.slots.process > 0,
            io: join.slots.io > 0,
        };
        let slots = SlotCounts { process: join.slots.process, io: join.slots.io };
        Join { worker: self.worker.clone(), incarnation: self.incarnation, skills, slots }
    }

    /// Nothing if the engine has ended.
    async fn introduce(&self, join: Join) -> Option<Result<(), Refusal>> {
        Some(match self.tell(Command::Join(join)).await? {
            Answer::Refused(refusal) => {
                self.answer(ToWorker::Refused(refusal.clone()));
                Err(refusal)
            }
            _ => Ok(()),
        })
    }

    async fn heartbeat(&self, heartbeat: Heartbeat, sent: Moment) {
        match self.tell(Command::Heartbeat(heartbeat)).await {
            Some(Answer::Renewal(renewal)) => self.answer(ToWorker::Renewal { renewal, sent }),
            // It was not heard for so long that it was taken for lost, as after the machine slept.
            Some(Answer::Refused(Refusal::UnknownWorker(_))) => {
                if let Some(join) = self.joined.clone() {
                    self.introduce(join).await;
                }
            }
            Some(Answer::Refused(refusal)) => self.answer(ToWorker::Refused(refusal)),
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
