//! Entries from one on: first those that the store has kept, then live, without gap or repetition.
//!
//! The store has the last word. Whatever was not heard live, because the listener was too slow, the engine started over
//! or another server leads, is read from there; what is not kept any more is reported as missed, and never passed over in
//! silence. A server that leads says how far it is to those that follow; where that is not heard, a look now and then finds
//! what is new.

use crate::{Engine, Reader};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tidegate_store::{Entry, StoreError};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch;

/// Entries read at once.
const AT_ONCE: usize = 64;
/// How often to look for entries of other servers of which nothing is heard.
const LOOK_EVERY: Duration = Duration::from_secs(1);

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

pub struct Entries {
    engine: Engine,
    /// Entries of this server, while it leads.
    live: broadcast::Receiver<Arc<Entry>>,
    /// How far the entries of whoever leads are.
    reached: watch::Receiver<Option<u64>>,
    store: Reader,
    /// An entry that must be there, or it is another store, or of a time that was lost.
    expected: Option<u64>,
    /// The last entry that was taken in, or after which to begin. Nothing: nobody leads yet, as far as is known.
    last: Option<u64>,
    is_behind: bool,
    /// Read, and not told yet.
    read: VecDeque<Arc<Entry>>,
}

impl Entries {
    /// What becomes durable from now on.
    pub fn new(engine: &Engine, store: Reader) -> Self {
        let reached = engine.reached();
        let last = *reached.borrow();
        Entries {
            live: engine.subscribe(),
            reached,
            engine: engine.clone(),
            store,
            expected: None,
            last,
            is_behind: false,
            read: VecDeque::new(),
        }
    }

    /// Everything from this entry on.
    pub(super) fn from(engine: &Engine, store: Reader, first: u64) -> Self {
        let last = Some(first.saturating_sub(1));
        Entries { expected: Some(first), last, is_behind: true, ..Entries::new(engine, store) }
    }

    pub(super) fn store(&self) -> &Reader {
        &self.store
    }

    /// Waits for the next entry. After [`EventsError::Missed`] it goes on with what follows. May be dropped and called
    /// again.
    pub async fn next(&mut self) -> Result<Arc<Entry>, EventsError> {
        loop {
            if let Some(entry) = self.read.pop_front() {
                return Ok(entry);
            }
            if self.is_behind {
                self.catch_up().await?;
            } else {
                self.hear().await?;
            }
        }
    }

    async fn catch_up(&mut self) -> Result<(), EventsError> {
        let last = self.last.unwrap_or(0);
        match self.store.read(move |store| store.entries(last, AT_ONCE)).await? {
            Some(entries) if entries.is_empty() && self.expected.is_some_and(|entry| entry > last) => {
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
        (self.last, self.expected, self.is_behind) = (Some(to), None, false);
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
        self.read.push_back(entry);
    }
}
