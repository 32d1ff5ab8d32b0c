//! The guardian's loop: commands in, events out, and everything killed when the worker is gone.

use super::family::Family;
use super::mark::Mark;
use super::process::{Process, Told};
use super::wire::{Command, Event, Id, Spawn};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Events under way to the worker before the processes' outputs have to wait.
const EVENTS: usize = 256;

/// How long the killing at the end may take: less than the worker waits for it. Longer takes only who hangs in
/// the kernel or belongs to another user.
const LONGEST_END: Duration = Duration::from_secs(3);

/// How soon to kill again: somebody may have been forking.
const AGAIN: Duration = Duration::from_millis(5);

struct Guardian {
    family: Arc<Family>,
    told: BTreeMap<Id, mpsc::UnboundedSender<Told>>,
    running: JoinSet<Id>,
    events: mpsc::Sender<Event>,
}

pub(super) async fn serve() -> io::Result<()> {
    let _outlived = outlive_signals()?;
    let mut child_ends = signal(SignalKind::child())?;
    let family = Arc::new(Family::found(Mark::given())?);
    let stdin = Receiver::from_owned_fd(rustix::stdio::stdin().try_clone_to_owned()?)?;
    let stdout = Sender::from_owned_fd(rustix::stdio::stdout().try_clone_to_owned()?)?;
    let (events, outgoing) = mpsc::channel(EVENTS);
    tokio::spawn(write_events(outgoing, stdout));
    let mut guardian =
        Guardian { family: Arc::clone(&family), told: BTreeMap::new(), running: JoinSet::new(), events };
    let result = guardian.obey(BufReader::new(stdin), &mut child_ends).await;
    // Nobody is left to be told about ends that are the guardian's doing.
    guardian.running.abort_all();
    match tokio::time::timeout(LONGEST_END, end_all(&family, &mut child_ends)).await {
        Ok(()) => result,
        Err(_) => result.and(Err(io::Error::other("some processes cannot be killed"))),
    }
}

async fn end_all(family: &Family, child_ends: &mut Signal) {
    while family.kill_all() {
        let _ = tokio::time::timeout(AGAIN, child_ends.recv()).await;
    }
}

/// Handled and not ignored: what is ignored here would be ignored by every process it starts.
fn outlive_signals() -> io::Result<Vec<Signal>> {
    [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()]
        .map(signal)
        .into_iter()
        .collect()
}

/// A worker that is gone shows as the end of the commands, so a failed write needs no answer here.
async fn write_events(mut events: mpsc::Receiver<Event>, mut stdout: Sender) {
    let mut batch = Vec::new();
    while events.recv_many(&mut batch, EVENTS).await > 0 {
        let mut text = Vec::new();
        for event in batch.drain(..) {
            if serde_json::to_writer(&mut text, &event).is_ok() {
                text.push(b'\n');
            }
        }
        if stdout.write_all(&text).await.is_err() {
            return;
        }
    }
}

impl Guardian {
    /// Until the pipe closes. Anything unreadable on it is treated the same way: a worker that cannot be
    /// understood cannot be obeyed.
    async fn obey(&mut self, stdin: BufReader<Receiver>, child_ends: &mut Signal) -> io::Result<()> {
        let mut commands = stdin.lines();
        loop {
            tokio::select! {
                command = commands.next_line() => match command? {
                    Some(line) => self.command(serde_json::from_str(&line)?),
                    None => return Ok(()),
                },
                Some(()) = child_ends.recv() => self.family.reap(),
                Some(ended) = self.running.join_next() => {
                    if let Ok(id) = ended {
                        self.told.remove(&id);
                    }
                }
            }
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Spawn(order) => self.spawn(order),
            Command::Extend { id, deadline } => self.tell(id, Told::Extend(deadline)),
            Command::Stop { id } => self.tell(id, Told::Stop),
        }
    }

    fn tell(&self, id: Id, what: Told) {
        // An end and a command may cross; the worker hears of the end.
        if let Some(told) = self.told.get(&id) {
            let _ = told.send(what);
        }
    }

    fn spawn(&mut self, order: Spawn) {
        let id = order.id;
        let events = self.events.clone();
        let (told, listens) = mpsc::unbounded_channel();
        match Process::start(&order, Arc::clone(&self.family), listens) {
            Ok(process) => {
                self.told.insert(id, told);
                self.running.spawn(process.run(events));
            }
            Err(error) => {
                self.running.spawn(async move {
                    let _ = events.send(Event::NotStarted { id, error }).await;
                    id
                });
            }
        }
    }
}
