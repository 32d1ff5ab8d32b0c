//! Tells whoever waits for the end of a run that it has come.
//!
//! Nothing is polled: one task listens to what becomes durable, for all who wait. What it could not hear (it was too
//! slow, or the store failed at that moment) it looks up in the store, once.

use crate::error::Error;
use crate::store::Reader;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegate_core::ids::{NodeId, TaskId};
use tidegate_core::protocol::{Payload, Write};
use tidegate_core::state::State;
use tidegate_engine::Engine;
use tidegate_store::{Ended, Entry, StoreError};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::{oneshot, watch};

/// How something ended. Its output is shared, not copied, among all who waited for it.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub state: State,
    pub output: Option<Payload>,
    pub error: Option<String>,
}

impl From<Ended> for End {
    fn from(ended: Ended) -> End {
        End { state: ended.state, output: ended.output, error: ended.error }
    }
}

/// Everybody who waits, by what they wait for. Nothing: nobody will be told any more.
type Waiters = Option<BTreeMap<NodeId, Vec<oneshot::Sender<End>>>>;

struct Waiting(Mutex<Waiters>);

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_place(&self, node: NodeId) -> Place<'_> {
        let (tell, told) = oneshot::channel();
        if let Some(waiters) = self.lock().as_mut() {
            waiters.entry(node).or_default().push(tell);
        }
        Place { waiting: self, node, told }
    }

    fn tell(&self, node: NodeId, end: impl FnOnce() -> End) {
        let Some(waiters) = self.lock().as_mut().and_then(|waiters| waiters.remove(&node)) else { return };
        let end = end();
        for waiter in waiters {
            // Who went away meanwhile does not need it.
            let _ = waiter.send(end.clone());
        }
    }

    fn nodes(&self) -> Vec<NodeId> {
        self.lock().iter().flat_map(BTreeMap::keys).copied().collect()
    }
}

/// Somebody waits. Whoever stops waiting is forgotten.
struct Place<'a> {
    waiting: &'a Waiting,
    node: NodeId,
    told: oneshot::Receiver<End>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.told.close();
        let mut waiting = self.waiting.lock();
        let Some(all) = waiting.as_mut() else { return };
        if let Some(waiters) = all.get_mut(&self.node) {
            waiters.retain(|waiter| !waiter.is_closed());
            if waiters.is_empty() {
                all.remove(&self.node);
            }
        }
    }
}

pub(crate) struct Ends {
    waiting: Arc<Waiting>,
    reader: Reader,
}

impl Ends {
    /// Listens until the engine ends.
    pub fn listen(engine: &Engine, reader: Reader) -> Ends {
        let waiting = Arc::new(Waiting(Mutex::new(Some(BTreeMap::new()))));
        let (entries, outage) = (engine.subscribe(), engine.outage());
        let listener = Listener { waiting: waiting.clone(), reader: reader.clone(), last: 0 };
        tokio::spawn(listener.listen(entries, outage));
        Ends { waiting, reader }
    }

    /// The end of a root, whether it is still to come or long past.
    pub async fn of(&self, node: NodeId) -> Result<End, Error> {
        let mut place = self.waiting.take_place(node);
        // Looked up after the place was taken: what is not found now is heard of later.
        match self.reader.insist(move |store| store.ended(TaskId::node(node))).await? {
            Some(ended) => Ok(ended.into()),
            None => (&mut place.told).await.map_err(|_| Error::Closed),
        }
    }
}

struct Listener {
    waiting: Arc<Waiting>,
    reader: Reader,
    /// The sequence number of the last entry that was heard of.
    last: u64,
}

impl Listener {
    async fn listen(
        mut self,
        mut entries: broadcast::Receiver<Arc<Entry>>,
        mut outage: watch::Receiver<Option<StoreError>>,
    ) {
        loop {
            let missed = tokio::select! {
                entry = entries.recv() => match entry {
                    Ok(entry) => self.heard(&entry),
                    Err(RecvError::Lagged(_)) => true,
                    Err(RecvError::Closed) => break,
                },
                // Whether the last entry before an outage became durable is not told.
                changed = outage.changed() => match changed {
                    Ok(()) => true,
                    Err(_) => break,
                },
            };
            if missed && self.look_up().await.is_err() {
                break;
            }
        }
        // With their senders gone, all who wait find out.
        *self.waiting.lock() = None;
    }

    /// Whether entries were missed before this one.
    fn heard(&mut self, entry: &Entry) -> bool {
        let missed = self.last != 0 && entry.sequence != self.last + 1;
        self.last = entry.sequence;
        self.reader.heard(entry.sequence);
        for write in &entry.writes {
            if let Write::Ended { task, state, output, error, .. } = write
                && task.index().is_none()
            {
                let end = || End { state: *state, output: output.clone(), error: error.clone() };
                self.waiting.tell(task.node, end);
            }
        }
        missed
    }

    async fn look_up(&self) -> Result<(), StoreError> {
        for node in self.waiting.nodes() {
            let ended = self.reader.insist(move |store| store.ended(TaskId::node(node))).await?;
            if let Some(ended) = ended {
                self.waiting.tell(node, || ended.into());
            }
        }
        Ok(())
    }
}
