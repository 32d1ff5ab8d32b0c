//! The private port of a server: what others forward to it, while it leads.

use super::connection::{Incoming, OUTSTANDING, SILENCE, weight, write_all};
use super::outbox::Outbox;
use crate::shell::{Attachment, Delivery, Engine, EngineError, is_urgent};
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use subtle::ConstantTimeEq;
use tidegate_core::ids::Name;
use tidegate_core::protocol::Command;
use tidegate_store::Contact;
use tidegate_wire::{Request, Response, Trouble, VERSION};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};

/// Servers that may be connected at a time.
const MOST: usize = 256;
/// How long to wait after a connection could not be taken.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// A port that was opened and is not served yet.
pub struct Listener {
    listener: TcpListener,
    contact: Contact,
}

impl Listener {
    /// Opens a port. Others reach it under `host`, and show a token that is made here.
    pub async fn bind(address: SocketAddr, host: Option<&str>) -> io::Result<Listener> {
        let listener = TcpListener::bind(address).await?;
        let bound = listener.local_addr()?;
        let address = match host {
            Some(host) => format!("{host}:{}", bound.port()),
            None => bound.to_string(),
        };
        let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
        Ok(Listener { listener, contact: Contact { address, token } })
    }

    /// How others reach it.
    pub fn contact(&self) -> &Contact {
        &self.contact
    }

    /// Serves until the engine has ended.
    pub fn serve(self, engine: Engine) {
        let Listener { listener, contact } = self;
        let token: Arc<str> = contact.token.into();
        let room = Arc::new(Semaphore::new(MOST));
        tokio::spawn(async move {
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = engine.ended() => return,
                };
                let Ok((socket, _)) = accepted else {
                    // There may be no more descriptors, which does not change at once.
                    tokio::time::sleep(AFTER_FAILURE).await;
                    continue;
                };
                let Ok(permit) = room.clone().try_acquire_owned() else { continue };
                let (engine, token) = (engine.clone(), token.clone());
                tokio::spawn(async move {
                    // A connection that breaks is opened again by the other side.
                    let _ = serve(socket, &engine, &token).await;
                    drop(permit);
                });
            }
        });
    }
}

async fn serve(socket: TcpStream, engine: &Engine, token: &str) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let (incoming, outgoing) = socket.into_split();
    let mut incoming = Incoming::from_stranger(incoming);
    let hello = tokio::time::timeout(SILENCE, incoming.next()).await.map_err(io::Error::other)??;
    let Request::Hello { version: VERSION, token: shown } = hello else { return Ok(()) };
    if !bool::from(shown.as_bytes().ct_eq(token.as_bytes())) {
        return Ok(());
    }
    let mut incoming = incoming.trusted();
    let (outbox, messages) = Outbox::new(engine);
    outbox.send(Response::Welcome);
    // What is told fits: nothing larger was ever accepted.
    tokio::spawn(write_all(outgoing, messages, |_, _| false));
    let guest = Guest::new(engine.clone(), outbox.clone());
    let listening = async {
        while guest.hear(incoming.next().await?).await.is_continue() {}
        Ok(())
    };
    tokio::select! {
        ended = listening => ended,
        () = outbox.follow() => Ok(()),
    }
}

/// A server that forwards.
struct Guest {
    engine: Engine,
    outbox: Outbox,
    attached: AttachedHere,
    /// When the newest ping was sent, by its own clock.
    heard: Arc<AtomicU64>,
    /// Commands that can wait do so here, in their order and beside everything else that is said: a flood of them must
    /// not keep a worker's heartbeats from being heard.
    line: mpsc::UnboundedSender<Errand>,
    /// How many commands wait there; large ones count as several.
    outstanding: Arc<AtomicUsize>,
}

/// The workers that are reached over a connection, as long as it lasts.
struct AttachedHere {
    engine: Engine,
    attachment: Attachment,
    workers: Mutex<BTreeSet<Name>>,
}

impl AttachedHere {
    fn new(engine: Engine) -> AttachedHere {
        AttachedHere { engine, attachment: Attachment::default(), workers: Mutex::default() }
    }

    fn workers(&self) -> MutexGuard<'_, BTreeSet<Name>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, worker: Name, incarnation: u64) -> mpsc::UnboundedReceiver<Delivery> {
        self.workers().insert(worker.clone());
        self.engine.attach_guest(worker, incarnation, self.attachment.clone())
    }
}

impl Drop for AttachedHere {
    fn drop(&mut self) {
        for worker in std::mem::take(&mut *self.workers()) {
            self.engine.detach_guest(worker, self.attachment.clone());
        }
    }
}

/// Commands that are answered together.
struct Errand {
    id: u64,
    commands: Vec<Command>,
    again: bool,
}

impl Guest {
    fn new(engine: Engine, outbox: Outbox) -> Guest {
        let (line, errands) = mpsc::unbounded_channel();
        let outstanding = Arc::new(AtomicUsize::new(0));
        tokio::spawn(hand_over(engine.clone(), errands, outbox.clone(), outstanding.clone()));
        let attached = AttachedHere::new(engine.clone());
        Guest { engine, outbox, attached, heard: Arc::default(), line, outstanding }
    }

    /// A guest that is gone shows as the end of its messages.
    async fn hear(&self, request: Request) -> ControlFlow<()> {
        let outbox = self.outbox.clone();
        match request {
            Request::Hello { .. } => return ControlFlow::Break(()),
            Request::Commands { id, commands, again } => {
                return self.take_in(Errand { id, commands, again }).await;
            }
            Request::Query { id, query } => {
                let engine = self.engine.clone();
                tokio::spawn(async move {
                    let reply = engine.query(query, false).await.map_err(trouble);
                    outbox.send(Response::Reply { id, reply });
                });
            }
            Request::Attach { worker, incarnation } => {
                let deliveries = self.attached.add(worker.clone(), incarnation);
                tokio::spawn(pass_on(worker, deliveries, outbox, self.heard.clone()));
            }
            Request::Reports(finished) => self.engine.report(finished),
            Request::Ping { sent } => {
                self.heard.store(sent, Ordering::Release);
                outbox.send(Response::Pong);
            }
        }
        ControlFlow::Continue(())
    }

    /// Waits for nothing.
    async fn take_in(&self, errand: Errand) -> ControlFlow<()> {
        if is_urgent(&errand.commands) {
            return post(&self.engine, errand, &self.outbox).await;
        }
        if self.outstanding.load(Ordering::Acquire) >= OUTSTANDING {
            let busy = Response::Answers { id: errand.id, answers: Err(Trouble::Busy) };
            self.outbox.send(busy);
            return ControlFlow::Continue(());
        }
        self.outstanding.fetch_add(weight(&errand.commands), Ordering::AcqRel);
        match self.line.send(errand) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// Hands over what waits, as there is room, until the guest is gone or the engine has ended.
async fn hand_over(
    engine: Engine,
    mut errands: mpsc::UnboundedReceiver<Errand>,
    outbox: Outbox,
    outstanding: Arc<AtomicUsize>,
) {
    while let Some(errand) = errands.recv().await {
        let weight = weight(&errand.commands);
        if post(&engine, errand, &outbox).await.is_break() {
            return;
        }
        outstanding.fetch_sub(weight, Ordering::AcqRel);
    }
}

async fn post(engine: &Engine, errand: Errand, outbox: &Outbox) -> ControlFlow<()> {
    let Errand { id, commands, again } = errand;
    let Ok(answers) = engine.post(commands, again, false).await else {
        return ControlFlow::Break(());
    };
    let outbox = outbox.clone();
    tokio::spawn(async move {
        let answers = answers.await.unwrap_or(Err(EngineError::Unavailable)).map_err(trouble);
        outbox.send(Response::Answers { id, answers });
    });
    ControlFlow::Continue(())
}

async fn pass_on(
    worker: Name,
    mut deliveries: mpsc::UnboundedReceiver<Delivery>,
    outbox: Outbox,
    heard: Arc<AtomicU64>,
) {
    while let Some(delivery) = deliveries.recv().await {
        let worker = worker.clone();
        let response = match delivery {
            Delivery::Attempt { attempt, run, age, as_of } => {
                // The ping was heard before the age is taken: so the lease is never thought to have begun later.
                let heard = heard.load(Ordering::Acquire);
                Response::Attempt { worker, attempt, run, age: age + as_of.elapsed(), heard }
            }
            Delivery::Stop(lease) => Response::Stop { worker, lease },
            Delivery::Reported(lease) => Response::Reported { worker, lease },
            Delivery::Replaced { by } => Response::Replaced { worker, by },
            // Nothing runs ahead on stores that servers share.
            Delivery::Abort(..) => continue,
        };
        if !outbox.send(response) {
            return;
        }
    }
}

fn trouble(error: EngineError) -> Trouble {
    match error {
        EngineError::Outage(error) => Trouble::Outage(error.to_string()),
        EngineError::Unavailable | EngineError::Unreachable(_) | EngineError::Ended => Trouble::NotLeading,
    }
}
