//! The private port of a server: what others forward to it, while it leads.

use super::connection::{Incoming, SILENCE, write_all};
use crate::shell::{Delivery, Engine, EngineError};
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use subtle::ConstantTimeEq;
use tidegate_core::ids::Name;
use tidegate_store::Contact;
use tidegate_wire::{Request, Response, Trouble, VERSION};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};

/// Servers that may be connected at a time.
const MOST: usize = 256;

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
                let (Ok((socket, _)), Ok(permit)) = (accepted, room.clone().try_acquire_owned()) else {
                    continue;
                };
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
    let (outbox, messages) = mpsc::unbounded_channel();
    let _ = outbox.send(Response::Welcome);
    tokio::spawn(write_all(outgoing, messages));
    let guest = Guest { engine: engine.clone(), outbox, heard: Arc::default() };
    while guest.hear(incoming.next().await?).await.is_continue() {}
    Ok(())
}

/// A server that forwards.
struct Guest {
    engine: Engine,
    outbox: mpsc::UnboundedSender<Response>,
    /// When the newest ping was sent, by its own clock.
    heard: Arc<AtomicU64>,
}

impl Guest {
    /// A guest that is gone shows as the end of its messages.
    async fn hear(&self, request: Request) -> ControlFlow<()> {
        let outbox = self.outbox.clone();
        match request {
            Request::Hello { .. } => return ControlFlow::Break(()),
            Request::Commands { id, commands, again } => {
                // Taken in here and now, so that commands keep their order and the sender feels it when there are too many.
                let Ok(answers) = self.engine.post(commands, again, false).await else {
                    return ControlFlow::Break(());
                };
                tokio::spawn(async move {
                    let answers = answers.await.unwrap_or(Err(EngineError::Unavailable)).map_err(trouble);
                    let _ = outbox.send(Response::Answers { id, answers });
                });
            }
            Request::Query { id, query } => {
                let engine = self.engine.clone();
                tokio::spawn(async move {
                    let reply = engine.query(query, false).await.map_err(trouble);
                    let _ = outbox.send(Response::Reply { id, reply });
                });
            }
            Request::Attach { worker, incarnation } => {
                let deliveries = self.engine.attach_guest(worker.clone(), incarnation);
                tokio::spawn(pass_on(worker, deliveries, outbox, self.heard.clone()));
            }
            Request::Reports(finished) => self.engine.report(finished),
            Request::Ping { sent } => {
                self.heard.store(sent, Ordering::Release);
                let _ = outbox.send(Response::Pong);
            }
        }
        ControlFlow::Continue(())
    }
}

async fn pass_on(
    worker: Name,
    mut deliveries: mpsc::UnboundedReceiver<Delivery>,
    outbox: mpsc::UnboundedSender<Response>,
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
            // Nothing runs ahead on stores that servers share.
            Delivery::Abort(..) => continue,
        };
        if outbox.send(response).is_err() {
            return;
        }
    }
}

fn trouble(error: EngineError) -> Trouble {
    match error {
        EngineError::Outage(error) => Trouble::Outage(error.to_string()),
        EngineError::Unavailable | EngineError::Ended => Trouble::NotLeading,
    }
}
