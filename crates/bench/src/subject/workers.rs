//! Several workers in one process, each with its own slots: the ones that the library has beside its engine are too few
//! for the scenarios.

use tidegate_core::admission::{Skills, SlotCounts};
use tidegate_core::ids::Name;
use tidegate_core::protocol::{Answer, Command, Finish, Join, Leave};
use tidegate_engine::{Delivery, Engine};
use tidegate_worker::{Control, EngineEnd, Functions, Settings, ToEngine, ToWorker, Worker, clock};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// A worker that is at work.
pub(super) struct Hired {
    control: Control,
    done: JoinHandle<()>,
}

/// The half of an id that holds the time: later starts have higher ones.
fn incarnation() -> u64 {
    (uuid::Uuid::now_v7().as_u128() >> 64) as u64
}

impl Hired {
    /// A worker that has joined.
    pub(super) async fn new(engine: &Engine, number: u32, slots: u32, functions: Functions) -> Hired {
        let name = Name::new(format!("worker-{number}"));
        let incarnation = incarnation();
        let mut settings = Settings::new(name.clone(), incarnation, None);
        settings.slots.io = slots;
        settings.functions = functions;
        let worker = Worker::new(settings);
        let control = worker.control();
        let (link, end) = tidegate_worker::link();
        let (told, joined) = oneshot::channel();
        let desk = Desk { engine: engine.clone(), name, incarnation, to_worker: end.to_worker.clone() };
        tokio::spawn(desk.deliver());
        let served = tokio::spawn(desk.serve(end, told));
        let done = tokio::spawn(async move {
            // It ends when it was told to leave, or when the engine is gone.
            let _ = worker.run(link).await;
            let _ = served.await;
        });
        // Dropped only if the engine has ended already.
        let _ = joined.await;
        Hired { control, done }
    }

    pub(super) async fn leave(self) {
        self.control.shut_down();
        // A worker that panicked has nothing left to hand back.
        let _ = self.done.await;
    }
}

/// Where a worker and the engine meet.
#[derive(Clone)]
struct Desk {
    engine: Engine,
    name: Name,
    incarnation: u64,
    to_worker: mpsc::UnboundedSender<ToWorker>,
}

impl Desk {
    fn deliver(&self) -> impl Future<Output = ()> + use<> {
        let mut deliveries = self.engine.attach(self.name.clone(), self.incarnation);
        let to_worker = self.to_worker.clone();
        async move {
            while let Some(delivery) = deliveries.recv().await {
                let message = match delivery {
                    Delivery::Attempt { attempt, run, age, as_of } => {
                        let granted = clock::now() - (age + as_of.elapsed()).into();
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
    }

    async fn serve(self, mut end: EngineEnd, joined: oneshot::Sender<()>) {
        let mut joined = Some(joined);
        while let Some(message) = end.from_worker.recv().await {
            let desk = self.clone();
            match message {
                ToEngine::Join(join) => {
                    desk.tell(desk.join(join)).await;
                    // Nobody may be waiting for it.
                    joined.take().map(|told| told.send(()));
                }
                ToEngine::Leave => {
                    let leave = Leave { worker: self.name.clone(), incarnation: self.incarnation };
                    desk.tell(Command::Leave(leave)).await;
                }
                ToEngine::Draining => {
                    let (worker, incarnation) = (self.name.clone(), self.incarnation);
                    desk.tell(Command::Offer { worker, incarnation, slots: SlotCounts::default() }).await;
                }
                ToEngine::Heartbeat { heartbeat, sent } => drop(tokio::spawn(async move {
                    if let Some(Answer::Renewal(renewal)) = desk.tell(Command::Heartbeat(heartbeat)).await {
                        desk.answer(ToWorker::Renewal { renewal, sent });
                    }
                })),
                ToEngine::Report { lease, outcome } => {
                    let worker = desk.name.clone();
                    desk.engine.report(vec![Finish { worker, lease, outcome, offer: None }]);
                }
            }
        }
    }

    fn join(&self, join: tidegate_worker::Join) -> Command {
        let tidegate_worker::Join { queues, labels, functions, slots, .. } = join;
        let skills = Skills { queues, labels, functions, processes: false };
        let slots = SlotCounts { process: 0, io: slots.io };
        Command::Join(Join { worker: self.name.clone(), incarnation: self.incarnation, skills, slots })
    }

    async fn tell(&self, command: Command) -> Option<Answer> {
        self.engine.outlast(command).await.ok()
    }

    /// A worker that is gone does not need it.
    fn answer(&self, message: ToWorker) {
        let _ = self.to_worker.send(message);
    }
}
