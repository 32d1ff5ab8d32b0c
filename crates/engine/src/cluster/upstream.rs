//! The way from a server that follows to the one that leads.

use super::connection::{Incoming, OUTSTANDING, PING_EVERY, weight, write_all};
use crate::shell::{ANSWER_WITHIN, Delivery, Engine, EngineError, ReplyTo, is_urgent};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidegate_core::ids::Name;
use tidegate_core::protocol::{Answer, BATCH_BYTES, Command, Finish, Join, Leave, Refusal};
use tidegate_store::{Contact, StoreError};
use tidegate_wire::{MOST_BYTES, Query, Request, Response, Trouble, VERSION};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};

/// So many expected answers are not worth a look at whether somebody waits for them.
const FEW: usize = 1_024;
/// A number that no answer is expected under.
const UNEXPECTED: u64 = 0;

/// How long a connection may take to be made.
const PATIENCE: Duration = Duration::from_secs(2);

/// The connection, if there is one, and who is to be attached over it.
pub(crate) struct Upstream {
    engine: Engine,
    connected: Option<Connected>,
    attached: BTreeMap<Name, u64>,
    /// How the workers of this process joined. Whoever begins to lead asks nothing of them until they say so again.
    joined: BTreeMap<Name, Join>,
    /// There may be room again for commands that can wait.
    freed: Arc<Notify>,
    unreached: Arc<Unreached>,
}

/// Since when whoever leads has not been heard, and why. Nothing as long as he is.
#[derive(Default)]
struct Unreached(Mutex<Option<(Instant, String)>>);

impl Unreached {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(Instant, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, why: String) {
        let mut known = self.lock();
        let since = known.take().map_or_else(Instant::now, |(since, _)| since);
        *known = Some((since, why));
    }

    fn is_heard(&self) {
        *self.lock() = None;
    }

    /// What callers are told: to ask again, or after a while what is wrong.
    fn error(&self) -> EngineError {
        match &*self.lock() {
            Some((since, why)) if since.elapsed() >= ANSWER_WITHIN => EngineError::Unreachable(why.clone()),
            _ => EngineError::Unavailable,
        }
    }
}

struct Connected {
    contact: Contact,
    outbox: mpsc::UnboundedSender<Request>,
    waiting: Arc<Waiting>,
}

/// Who waits for an answer over a connection. Closed with it: whoever comes later is told at once.
struct Waiting {
    open: Mutex<Option<Open>>,
    freed: Arc<Notify>,
}

#[derive(Default)]
struct Open {
    next: u64,
    by_id: HashMap<u64, Expected>,
    /// Commands that can wait and are on their way.
    outstanding: usize,
    /// When so many are expected, those whom nobody waits for are looked for.
    tidy_at: usize,
}

struct Expected {
    reply: ReplyTo,
    /// How many commands of those it is; large ones count as several.
    outstanding: usize,
}

impl Open {
    /// Queries may wait for long, and whoever asked may not. What commands lead to is counted until it is answered.
    fn forget_who_is_gone(&mut self) {
        if self.by_id.len() >= self.tidy_at {
            self.by_id.retain(|_, expected| expected.outstanding > 0 || !expected.reply.is_closed());
            self.tidy_at = (2 * self.by_id.len()).max(FEW);
        }
    }
}

impl Waiting {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(freed: Arc<Notify>) -> Arc<Waiting> {
        Arc::new(Waiting { open: Mutex::new(Some(Open::default())), freed })
    }

    /// A number for an answer, unless the connection is gone.
    fn add(&self, reply: ReplyTo, outstanding: usize) -> Result<u64, ReplyTo> {
        match &mut *self.lock() {
            Some(open) => {
                open.next += 1;
                open.outstanding += outstanding;
                open.by_id.insert(open.next, Expected { reply, outstanding });
                let next = open.next;
                open.forget_who_is_gone();
                Ok(next)
            }
            None => Err(reply),
        }
    }

    fn take(&self, id: u64) -> Option<ReplyTo> {
        let Expected { reply, outstanding } = {
            let mut open = self.lock();
            let open = open.as_mut()?;
            let expected = open.by_id.remove(&id)?;
            open.outstanding -= expected.outstanding;
            expected
        };
        if outstanding > 0 {
            self.freed.notify_one();
        }
        Some(reply)
    }

    /// Whoever comes after the end need not wait to be told.
    fn has_room(&self) -> bool {
        self.lock().as_ref().is_none_or(|open| open.outstanding < OUTSTANDING)
    }

    fn is_open(&self) -> bool {
        self.lock().is_some()
    }

    fn close(&self) {
        let open = self.lock().take();
        for expected in open.into_iter().flat_map(|open| open.by_id.into_values()) {
            expected.reply.fail(EngineError::Unavailable);
        }
        self.freed.notify_one();
    }
}

impl Upstream {
    pub(crate) fn new(engine: Engine) -> Self {
        let (attached, joined) = (BTreeMap::new(), BTreeMap::new());
        let (freed, unreached) = (Arc::default(), Arc::default());
        Upstream { engine, connected: None, attached, joined, freed, unreached }
    }

    /// Connects to who leads, unless that is so already. Must be called inside a runtime.
    pub(crate) fn follow(&mut self, leader: Option<Contact>) {
        let Some(contact) = leader else {
            self.unreached.is_heard();
            return self.disconnect();
        };
        let is_there = |connected: &Connected| connected.contact == contact && !connected.outbox.is_closed();
        if self.connected.as_ref().is_some_and(is_there) {
            return;
        }
        if self.connected.as_ref().is_none_or(|connected| connected.contact != contact) {
            self.unreached.is_heard();
        }
        let (outbox, messages) = mpsc::unbounded_channel();
        let (waiting, start) = (Waiting::open(self.freed.clone()), Instant::now());
        let _ = outbox.send(Request::Hello { version: VERSION, token: contact.token.clone() });
        // Before anybody is attached: every attempt names the newest one.
        let _ = outbox.send(ping(start));
        let connected =
            Connected { contact: contact.clone(), outbox: outbox.clone(), waiting: waiting.clone() };
        self.disconnect();
        for (worker, incarnation) in &self.attached {
            let _ = outbox.send(Request::Attach { worker: worker.clone(), incarnation: *incarnation });
        }
        for join in self.joined.values() {
            let commands = vec![Command::Join(join.clone())];
            // Nobody waits for the answer: a worker that is not wanted hears so when it says what it has.
            let _ = outbox.send(Request::Commands { id: UNEXPECTED, commands, again: true });
        }
        self.connected = Some(connected);
        let (engine, unreached) = (self.engine.clone(), self.unreached.clone());
        tokio::spawn(async move {
            let heard = || unreached.is_heard();
            let mail = (outbox, messages);
            let end = connect(&contact.address, mail, engine, waiting.clone(), start, heard).await;
            // Whatever broke it, the next attempt to lead finds out who does, and leads here again.
            if let Err(why) = end {
                unreached.failed(format!("it cannot be reached at {}: {why}", contact.address));
            }
            waiting.close();
        });
    }

    pub(crate) fn disconnect(&mut self) {
        if let Some(connected) = self.connected.take() {
            connected.waiting.close();
        }
    }

    pub(crate) fn attach(&mut self, worker: &Name, incarnation: u64) {
        self.attached.insert(worker.clone(), incarnation);
        self.send(Request::Attach { worker: worker.clone(), incarnation });
    }

    /// Keeps how the workers of this process joined, until they take nothing more.
    pub(crate) fn remember(&mut self, commands: &[Command]) {
        for command in commands {
            let (worker, incarnation) = match command {
                Command::Join(join) => {
                    self.joined.insert(join.worker.clone(), join.clone());
                    continue;
                }
                Command::Leave(Leave { worker, incarnation })
                | Command::Offer { worker, incarnation, .. } => (worker, incarnation),
                _ => continue,
            };
            if self.joined.get(worker).is_some_and(|join| join.incarnation == *incarnation) {
                self.joined.remove(worker);
            }
        }
    }

    /// Nobody hears of this start of a worker from here any more.
    pub(crate) fn forget(&mut self, worker: &Name, incarnation: u64) {
        self.attached.retain(|name, start| name != worker || *start != incarnation);
        self.joined.retain(|name, join| name != worker || join.incarnation != incarnation);
    }

    /// How the workers of this process joined, for when it leads itself.
    pub(crate) fn joins(&self) -> Vec<Command> {
        self.joined.values().cloned().map(Command::Join).collect()
    }

    /// Whether commands that can wait may be sent. Those that cannot always may.
    pub(crate) fn has_room(&self) -> bool {
        self.connected.as_ref().is_none_or(|connected| connected.waiting.has_room())
    }

    /// When there may be room again.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }

    pub(crate) fn commands(&self, commands: Vec<Command>, again: bool, reply: ReplyTo) {
        let outstanding = if is_urgent(&commands) { 0 } else { weight(&commands) };
        self.ask(reply, outstanding, |id| Request::Commands { id, commands, again });
    }

    pub(crate) fn query(&self, query: Query, reply: ReplyTo) {
        self.ask(reply, 0, |id| Request::Query { id, query });
    }

    /// What is lost on the way is reported again.
    pub(crate) fn reports(&self, finished: Vec<Finish>) {
        for portion in portions(finished) {
            self.send(Request::Reports(portion));
        }
    }

    fn ask(&self, reply: ReplyTo, outstanding: usize, request: impl FnOnce(u64) -> Request) {
        let Some(connected) = &self.connected else { return reply.fail(self.unreached.error()) };
        match connected.waiting.add(reply, outstanding) {
            Ok(id) => drop(connected.outbox.send(request(id))),
            Err(reply) => reply.fail(self.unreached.error()),
        }
    }

    fn send(&self, request: Request) {
        if let Some(connected) = &self.connected {
            let _ = connected.outbox.send(request);
        }
    }
}

/// Reports that go into one message each, in their order.
fn portions(finished: Vec<Finish>) -> Vec<Vec<Finish>> {
    let (mut portions, mut portion, mut bytes) = (Vec::new(), Vec::new(), 0);
    for finish in finished {
        bytes += finish.size();
        portion.push(finish);
        if bytes >= BATCH_BYTES {
            portions.push(std::mem::take(&mut portion));
            bytes = 0;
        }
    }
    portions.extend(Some(portion).filter(|portion| !portion.is_empty()));
    portions
}

async fn connect(
    address: &str,
    (outbox, messages): (mpsc::UnboundedSender<Request>, mpsc::UnboundedReceiver<Request>),
    engine: Engine,
    waiting: Arc<Waiting>,
    start: Instant,
    heard: impl Fn(),
) -> io::Result<()> {
    let socket = tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await;
    let socket = socket.map_err(|_| io::Error::other("no answer"))??;
    socket.set_nodelay(true)?;
    let (incoming, outgoing) = socket.into_split();
    let asking = waiting.clone();
    let refuse = move |request: &Request, length| refuse(&asking, request, length);
    let writing = tokio::spawn(write_all(outgoing, messages, refuse));
    let wanted = waiting.clone();
    // Once nobody wants the connection any more, the other side ends it for our silence.
    let pinging = tokio::spawn(async move {
        let mut times = tokio::time::interval(PING_EVERY);
        while wanted.is_open() && outbox.send(ping(start)).is_ok() {
            times.tick().await;
        }
    });
    let mut incoming = Incoming::new(incoming);
    let mut is_welcome = false;
    while let Ok(response) = incoming.next().await {
        if !std::mem::replace(&mut is_welcome, true) {
            heard();
        }
        if hear(response, &engine, &waiting, start).is_break() {
            break;
        }
    }
    pinging.abort();
    writing.abort();
    if is_welcome { Ok(()) } else { Err(io::Error::other("it closes the connection at once")) }
}

/// Commands that no message can hold are refused here. Who leads will never hear of them.
fn refuse(waiting: &Waiting, request: &Request, length: usize) -> bool {
    let Request::Commands { id, commands, .. } = request else { return false };
    let refused = Answer::Refused(Refusal::TooLarge { size: length, most: MOST_BYTES });
    if let Some(reply) = waiting.take(*id) {
        reply.answers(Ok(vec![refused; commands.len()]));
    }
    true
}

fn ping(start: Instant) -> Request {
    Request::Ping { sent: u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX) }
}

fn hear(response: Response, engine: &Engine, waiting: &Waiting, start: Instant) -> ControlFlow<()> {
    let passed_on = match response {
        Response::Welcome | Response::Pong => Ok(()),
        Response::Reached(sequence) => {
            engine.reach(sequence);
            Ok(())
        }
        Response::Answers { id, answers } => {
            if let Some(reply) = waiting.take(id) {
                reply.answers(answers.map_err(error));
            }
            Ok(())
        }
        Response::Reply { id, reply: told } => {
            if let Some(reply) = waiting.take(id) {
                reply.reply(told.map_err(error));
            }
            Ok(())
        }
        Response::Attempt { worker, attempt, run, age, heard } => {
            let as_of = start + Duration::from_nanos(heard);
            engine.forwarded(worker, Delivery::Attempt { attempt, run, age, as_of })
        }
        Response::Stop { worker, lease } => engine.forwarded(worker, Delivery::Stop(lease)),
        Response::Reported { worker, lease } => engine.forwarded(worker, Delivery::Reported(lease)),
        Response::Replaced { worker, by } => engine.forwarded(worker, Delivery::Replaced { by }),
    };
    match passed_on {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}

fn error(trouble: Trouble) -> EngineError {
    match trouble {
        Trouble::NotLeading | Trouble::Busy => EngineError::Unavailable,
        Trouble::Outage(why) => EngineError::Outage(StoreError::Unknown(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::ids::{Epoch, NodeId, TaskId};
    use tidegate_core::protocol::{Lease, Outcome, Payload};

    fn finish(number: u64, bytes: usize) -> Finish {
        let lease = Lease { task: TaskId::node(NodeId(number)), epoch: Epoch { incarnation: 1, grant: 1 } };
        let outcome = Outcome::Succeeded(Payload::new(vec![b'1'; bytes]));
        Finish { worker: "worker".into(), lease, outcome, offer: None }
    }

    #[test]
    fn reports_go_in_portions_and_in_their_order() {
        let sizes = [1, BATCH_BYTES, 1, 1, 2 * BATCH_BYTES, 3];
        let finished: Vec<Finish> = (0..).zip(sizes).map(|(number, bytes)| finish(number, bytes)).collect();
        let portions = portions(finished.clone());
        assert_eq!(portions.iter().map(Vec::len).collect::<Vec<_>>(), [2, 3, 1]);
        assert!(portions.concat() == finished);
        assert!(super::portions(Vec::new()).is_empty());
    }
}
