//! A worker that works for a server elsewhere: carries what it says there, and what it gets back.

use crate::client::{Client, ClientError};
use crate::words::{Ended, Finished, Handed, Having, Kept, LeaseWord, NewWorker, Start, Told, leases};
use hyper::Method;
use serde_json::Value;
use std::time::Duration;
use tidegate_core::ids::Name;
use tidegate_core::protocol::{Heartbeat, Lease, Outcome, Refusal, Renewal};
use tidegate_core::time::{Moment, Span};
use tidegate_worker::{Control, Join, Link, Settings, ToEngine, ToWorker, Worker, WorkerError, clock};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// How long a server is asked to wait until there is something to do.
const POLL: Duration = Duration::from_secs(30);
/// How long to rest before a server that did not answer is asked again: at first, and at most.
const REST_FIRST: Duration = Duration::from_millis(100);
const REST_LAST: Duration = Duration::from_secs(5);
/// Of one request.
const REPORTS_AT_ONCE: usize = 100;

/// A worker for a server elsewhere. See [`hire`].
pub struct Hired {
    /// Ends it.
    pub control: Control,
    /// It has joined, or was refused.
    pub joined: oneshot::Receiver<Result<(), ClientError>>,
    /// It has left, and nothing that it started runs any more.
    pub left: JoinHandle<Result<(), WorkerError>>,
    /// The server has heard that it has left, or cannot be told.
    pub said: JoinHandle<()>,
}

/// Has a worker work for a server.
pub fn hire(client: Client, settings: Settings) -> Hired {
    let (rest, from_worker) = mpsc::unbounded_channel();
    let (link, to_worker) = Link::to(move |message| drop(rest.send(message)));
    let (name, incarnation) = (settings.name.clone(), settings.incarnation);
    let (told, joined) = oneshot::channel();
    let remote = Remote { client, name, incarnation, to_worker, join: watch::Sender::new(None) };
    let said = tokio::spawn(remote.run(from_worker, told));
    let worker = Worker::new(settings);
    Hired { control: worker.control(), joined, left: tokio::spawn(worker.run(link)), said }
}

/// The worker's side of a server.
#[derive(Clone)]
struct Remote {
    client: Client,
    name: Name,
    incarnation: u64,
    to_worker: mpsc::UnboundedSender<ToWorker>,
    /// How it joined, should the server take it for lost; nothing before, and once it drains.
    join: watch::Sender<Option<Join>>,
}

impl Remote {
    /// Until the worker is gone. Says when it has joined.
    async fn run(
        self,
        mut from_worker: mpsc::UnboundedReceiver<ToEngine>,
        told: oneshot::Sender<Result<(), ClientError>>,
    ) {
        let mut told = Some(told);
        let mut polling = None;
        while let Some(message) = from_worker.recv().await {
            match message {
                ToEngine::Join(join) => {
                    let joined = self.insist(|| self.introduce(&join)).await;
                    let is_in = joined.is_ok();
                    // Nobody may be waiting for it.
                    told.take().map(|told| told.send(joined));
                    if !is_in {
                        // The worker ends with its link.
                        return;
                    }
                    self.join.send_replace(Some(join));
                    let remote = self.clone();
                    polling = Some(tokio::spawn(async move { remote.poll().await }));
                }
                // Joining comes first and leaving last; everything between may overtake.
                ToEngine::Heartbeat { heartbeat, sent } => {
                    let remote = self.clone();
                    tokio::spawn(async move { remote.heartbeat(heartbeat, sent).await });
                }
                ToEngine::Reports(reports) => {
                    let remote = self.clone();
                    tokio::spawn(async move { remote.report(reports).await });
                }
                ToEngine::Draining => {
                    // Who drains does not come back.
                    self.join.send_replace(None);
                    let _ = self.insist(|| self.say("drain")).await;
                }
                ToEngine::Leave => {
                    let _ = self.say("leave").await;
                    break;
                }
            }
        }
        polling.into_iter().for_each(|polling| polling.abort());
    }

    fn path(&self, what: &str) -> String {
        let name = url::form_urlencoded::byte_serialize(self.name.as_str().as_bytes());
        // In a path a blank is not a plus.
        format!("/api/v1/workers/{}/{what}", name.collect::<String>().replace('+', "%20"))
    }

    async fn introduce(&self, join: &Join) -> Result<(), ClientError> {
        let _: Value = self.client.post("/api/v1/workers", &NewWorker::of(join)).await?;
        Ok(())
    }

    async fn say(&self, what: &str) -> Result<(), ClientError> {
        let _: Value = self.client.post(&self.path(what), &Start { incarnation: self.incarnation }).await?;
        Ok(())
    }

    /// Again and again while that may help.
    async fn insist<R: Future<Output = Result<(), ClientError>>>(
        &self,
        ask: impl Fn() -> R,
    ) -> Result<(), ClientError> {
        let mut rest = REST_FIRST;
        loop {
            match ask().await {
                Err(error) if error.may_pass() => tokio::time::sleep(rest).await,
                result => return result,
            }
            rest = (rest * 2).min(REST_LAST);
        }
    }

    async fn poll(&self) {
        let path = format!("{}?wait={}s&incarnation={}", self.path("poll"), POLL.as_secs(), self.incarnation);
        let mut rest = REST_FIRST;
        loop {
            let sent = clock::now();
            match self.client.ask::<Handed>(Method::POST, &path, None::<&()>, POLL).await {
                Ok(handed) => {
                    self.hand_over(&handed, sent);
                    rest = REST_FIRST;
                    continue;
                }
                Err(error) if self.refuse(&error) => return,
                Err(_) => tokio::time::sleep(rest).await,
            }
            rest = (rest * 2).min(REST_LAST);
        }
    }

    /// `sent` is when the request was sent: leases are counted from then.
    fn hand_over(&self, handed: &Handed, sent: Moment) {
        for word in &handed.attempts {
            let Some((attempt, run)) = word.read() else { continue };
            let left = crate::words::span(word.lease_left).unwrap_or(Span::ZERO);
            let granted = sent + left - attempt.length;
            self.answer(ToWorker::Attempt { attempt, run, granted });
        }
        leases(&handed.stop).into_iter().for_each(|lease| self.answer(ToWorker::Stop(lease)));
    }

    async fn heartbeat(&self, heartbeat: Heartbeat, sent: Moment) {
        let has = heartbeat.has.iter().map(LeaseWord::from).collect();
        let having = Having { incarnation: self.incarnation, has };
        match self.client.post::<Kept>(&self.path("heartbeat"), &having).await {
            Ok(kept) => {
                let renewal = Renewal { renewed: leases(&kept.renewed), stop: leases(&kept.stop) };
                self.answer(ToWorker::Renewal { renewal, sent });
            }
            // It was not heard for so long that it was taken for lost, as after the machine slept.
            Err(error) if error.code() == Some("unknown-worker") => {
                let join = self.join.borrow().clone();
                if let Some(join) = join {
                    let _ = self.introduce(&join).await;
                }
            }
            // What is not renewed is said again by the worker itself.
            Err(error) => drop(self.refuse(&error)),
        }
    }

    /// What is not acknowledged is reported again by the worker itself.
    async fn report(&self, reports: Vec<(Lease, Outcome)>) {
        let mut reports = reports.into_iter().peekable();
        while reports.peek().is_some() {
            let some = reports.by_ref().take(REPORTS_AT_ONCE);
            let finished = some.map(|(lease, outcome)| Ended::of(&lease, outcome)).collect();
            let finished = Finished { incarnation: self.incarnation, finished };
            let sent = clock::now();
            let Ok(told) = self.client.post::<Told>(&self.path("finish"), &finished).await else { return };
            for lease in leases(&told.accepted).into_iter().chain(leases(&told.stale)) {
                self.answer(ToWorker::Reported(lease));
            }
            self.hand_over(&told.handed, sent);
        }
    }

    /// Whether another worker has its name; then it is told, and ends.
    fn refuse(&self, error: &ClientError) -> bool {
        let is_final = error.code() == Some("replaced");
        if is_final {
            self.answer(ToWorker::Refused(Refusal::WorkerReplaced(self.name.clone())));
        }
        is_final
    }

    /// A worker that is gone does not need it.
    fn answer(&self, message: ToWorker) {
        let _ = self.to_worker.send(message);
    }
}
