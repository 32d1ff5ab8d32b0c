//! Events from a position on: first those that the store has kept, then live, without gap or repetition.
//!
//! The store has the last word. Whatever was not heard live, because the subscriber was too slow, the engine started over
//! or another server leads, is read from there; what is not kept any more is reported as missed, and never passed over in
//! silence. A server that leads says how far it is to those that follow; where that is not heard, a look now and then finds
//! what is new.

use super::{Derivation, Event, Position};
use crate::{Engine, Reader};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tidegate_store::{Entry, Sought, StoreError};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch;

/// Entries read at once.
const AT_ONCE: usize = 64;
/// How often to look for entries of other servers of which nothing is heard.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long tables that follow the entries are waited for at a time.
const TABLES_PATIENCE: Duration = Duration::from_millis(100);

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
    /// Entries of this server, while it leads.
    live: broadcast::Receiver<Arc<Entry>>,
    /// How far the entries of whoever leads are.
    reached: watch::Receiver<Option<u64>>,
    store: Reader,
    /// Nothing up to here is told.
    after: Option<Position>,
    derivation: Derivation,
    /// The last entry that was taken in, or after which to begin. Nothing: nobody leads yet, as far as is known.
    last: Option<u64>,
    is_behind: bool,
    /// Taken in, and not yet made into events.
    entries: VecDeque<Arc<Entry>>,
    ready: VecDeque<Event>,
}

impl Subscription {
    /// What happens from now on, or what has happened after a position.
    pub fn new(engine: &Engine, store: Reader, after: Option<Position>) -> Self {
        let reached = engine.reached();
        let newest = *reached.borrow();
        Subscription {
            live: engine.subscribe(),
            reached,
            engine: engine.clone(),
            store,
            after,
            derivation: Derivation::default(),
            // Of its own entry there may be more.
            last: after.map(|after| after.entry.saturating_sub(1)).or(newest),
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
                if self.derive(&entry).await? {
                    self.entries.pop_front();
                }
            } else if self.is_behind {
                self.catch_up().await?;
            } else {
                self.hear().await?;
            }
        }
    }

    async fn catch_up(&mut self) -> Result<(), EventsError> {
        let last = self.last.unwrap_or(0);
        match self.store.read(move |store| store.entries(last, AT_ONCE)).await? {
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
        let to = self.store.read(|store| store.last()).await?;
        let from = self.last.unwrap_or(to);
        (self.last, self.after, self.is_behind) = (Some(to), None, false);
        self.derivation = Derivation::default();
        Ok(EventsError::Missed { from, to })
    }

    async fn hear(&mut self) -> Result<(), EventsError> {
        tokio::select! {
            biased;
            heard = self.live.recv() => self.heard(heard)?,
            () = self.engine.ended() => return Err(EventsError::Ended),
            // The engine's handle keeps the other side open.
            _ = self.reached.changed() => match (self.last, *self.reached.borrow_and_update()) {
                (Some(last), reached) => self.is_behind = reached.is_some_and(|reached| reached > last),
                (None, reached) => self.last = reached,
            },
            () = tokio::time::sleep(LOOK_EVERY), if self.engine.is_shared() => match self.last {
                Some(_) => self.is_behind = true,
                None => self.last = Some(self.store.read(|store| store.last()).await?),
            },
        }
        Ok(())
    }

    fn heard(&mut self, heard: Result<Arc<Entry>, RecvError>) -> Result<(), EventsError> {
        match heard {
            Ok(entry) if self.last.is_some_and(|last| entry.sequence <= last) => {}
            Ok(entry) if self.last.is_none_or(|last| entry.sequence == last + 1) => self.take(entry),
            Ok(_) | Err(RecvError::Lagged(_)) => self.is_behind = true,
            Err(RecvError::Closed) => return Err(EventsError::Ended),
        }
        Ok(())
    }

    fn take(&mut self, entry: Arc<Entry>) {
        self.last = Some(entry.sequence);
        self.entries.push_back(entry);
    }

    /// False: to what something belongs cannot be said yet, because the tables are not that far.
    async fn derive(&mut self, entry: &Entry) -> Result<bool, EventsError> {
        let unknown = self.derivation.unknown(entry);
        if !unknown.is_empty() {
            let (before, sought) = (
                entry.sequence.saturating_sub(1),
                unknown.iter().copied().map(Sought::Part).collect::<Vec<_>>(),
            );
            let found = self.store.read(move |store| {
                store.reach(before, TABLES_PATIENCE)?.then(|| store.find(&sought)).transpose()
            });
            let Some(found) = found.await? else { return Ok(false) };
            for (node, root) in unknown.into_iter().zip(found) {
                root.into_iter().for_each(|root| self.derivation.learn(node, root));
            }
        }
        let events = self.derivation.events(entry);
        let is_news = |event: &Event| self.after.is_none_or(|after| event.position > after);
        self.ready.extend(events.into_iter().filter(is_news));
        Ok(true)
    }
}
