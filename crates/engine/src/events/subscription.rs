//! Events from a position on: first those that the store has kept, then live, without gap or repetition.
//!
//! The store has the last word. Whatever was not heard live, because the subscriber was too slow or the engine started
//! over, is read from there; what is not kept any more is reported as missed, and never passed over in silence.

use super::{Derivation, Event, Position};
use crate::Engine;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use thiserror::Error;
use tidegate_store::{Entry, Reads, Sought, StoreError};
use tokio::sync::broadcast::{self, error::RecvError};

/// Entries read at once.
const AT_ONCE: usize = 64;
/// How long to wait before a store that could not be read is read again: at first, and at most.
const READ_AGAIN_FIRST: Duration = Duration::from_millis(20);
const READ_AGAIN_LAST: Duration = Duration::from_secs(2);

#[derive(Debug, Error)]
pub enum EventsError {
    /// What happened in between is not kept. Events go on after it.
    #[error("what happened after entry {from} and up to entry {to} is not kept any more")]
    Missed { from: u64, to: u64 },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the engine has ended")]
    Ended,
}

pub struct Subscription {
    engine: Engine,
    live: broadcast::Receiver<Arc<Entry>>,
    store: Arc<Mutex<Box<dyn Reads>>>,
    /// Nothing up to here is told.
    after: Option<Position>,
    derivation: Derivation,
    /// The last entry that was taken in. Nothing: the next one that is heard, whichever it is, comes first.
    last: Option<u64>,
    is_behind: bool,
    /// Taken in, and not yet made into events.
    entries: VecDeque<Arc<Entry>>,
    ready: VecDeque<Event>,
}

impl Subscription {
    /// What happens from now on, or what has happened after a position.
    pub fn new(engine: &Engine, store: Arc<Mutex<Box<dyn Reads>>>, after: Option<Position>) -> Self {
        Subscription {
            live: engine.subscribe(),
            engine: engine.clone(),
            store,
            after,
            derivation: Derivation::default(),
            // Of its own entry there may be more.
            last: after.map(|after| after.entry.saturating_sub(1)),
            is_behind: after.is_some(),
            entries: VecDeque::new(),
            ready: VecDeque::new(),
        }
    }

    /// Waits for the next event. May be dropped and called again.
    pub async fn next(&mut self) -> Result<Event, EventsError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if let Some(entry) = self.entries.front().cloned() {
                self.derive(&entry).await?;
                self.entries.pop_front();
            } else if self.is_behind {
                self.catch_up().await?;
            } else {
                self.hear().await?;
            }
        }
    }

    async fn catch_up(&mut self) -> Result<(), EventsError> {
        let last = self.last.unwrap_or(0);
        match self.read(move |store| store.entries(last, AT_ONCE)).await? {
            // Nothing that is stored follows a position of another store, or of a time that was lost.
            Some(entries) if entries.is_empty() && self.after.is_some_and(|after| after.entry > last) => {
                Err(self.missed().await?)
            }
            Some(entries) => {
                self.is_behind = !entries.is_empty();
                entries.into_iter().for_each(|entry| self.take(entry));
                Ok(())
            }
            None => Err(self.missed().await?),
        }
    }

    /// Goes on from what is stored now.
    async fn missed(&mut self) -> Result<EventsError, EventsError> {
        let to = self.read(|store| store.load()).await?.sequence;
        let from = self.last.unwrap_or(to);
        (self.last, self.after, self.is_behind) = (Some(to), None, false);
        self.derivation = Derivation::default();
        Ok(EventsError::Missed { from, to })
    }

    async fn hear(&mut self) -> Result<(), EventsError> {
        let heard = tokio::select! {
            biased;
            heard = self.live.recv() => heard,
            () = self.engine.ended() => Err(RecvError::Closed),
        };
        match heard {
            Ok(entry) if self.last.is_some_and(|last| entry.sequence <= last) => {}
            Ok(entry) if self.last.is_none_or(|last| entry.sequence == last + 1) => self.take(entry),
            Ok(_) | Err(RecvError::Lagged(_)) if self.last.is_some() => self.is_behind = true,
            // Nothing was heard yet, so nobody can say where to read on.
            Ok(_) | Err(RecvError::Lagged(_)) => return Err(self.missed().await?),
            Err(RecvError::Closed) => return Err(EventsError::Ended),
        }
        Ok(())
    }

    fn take(&mut self, entry: Arc<Entry>) {
        self.last = Some(entry.sequence);
        self.entries.push_back(entry);
    }

    async fn derive(&mut self, entry: &Entry) -> Result<(), EventsError> {
        let unknown = self.derivation.unknown(entry);
        if !unknown.is_empty() {
            let sought: Vec<Sought> = unknown.iter().copied().map(Sought::Part).collect();
            let found = self.read(move |store| store.find(&sought)).await?;
            for (node, root) in unknown.into_iter().zip(found) {
                root.into_iter().for_each(|root| self.derivation.learn(node, root));
            }
        }
        let events = self.derivation.events(entry);
        let is_news = |event: &Event| self.after.is_none_or(|after| event.position > after);
        self.ready.extend(events.into_iter().filter(is_news));
        Ok(())
    }

    /// Reads on a thread that may block, again and again while the reason for a failure may pass.
    async fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&mut dyn Reads) -> Result<T, StoreError> + Clone + Send + 'static,
    ) -> Result<T, StoreError> {
        let mut pause = READ_AGAIN_FIRST;
        loop {
            let (store, work) = (self.store.clone(), work.clone());
            let once = move || work(store.lock().unwrap_or_else(PoisonError::into_inner).as_mut());
            match tokio::task::spawn_blocking(once).await {
                Ok(Err(error)) if error.may_pass() => tokio::time::sleep(pause).await,
                Ok(result) => return result,
                Err(panicked) => return Err(StoreError::Broken(panicked.to_string())),
            }
            pause = (pause * 2).min(READ_AGAIN_LAST);
        }
    }
}
