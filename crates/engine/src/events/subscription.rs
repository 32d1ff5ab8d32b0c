//! Events from a position on, without gap or repetition.

use super::entries::{Entries, EventsError};
use super::{Derivation, Event, Position};
use crate::{Engine, Reader};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tidegate_store::{Entry, Sought};

/// How long tables that follow the entries are waited for at a time.
const TABLES_PATIENCE: Duration = Duration::from_millis(100);

pub struct Subscription {
    entries: Entries,
    /// Nothing up to here is told.
    after: Option<Position>,
    derivation: Derivation,
    /// Not yet made into events.
    entry: Option<Arc<Entry>>,
    ready: VecDeque<Event>,
}

impl Subscription {
    /// What happens from now on, or what has happened after a position.
    pub fn new(engine: &Engine, store: Reader, after: Option<Position>) -> Self {
        let entries = match after {
            // Of its own entry there may be more.
            Some(after) => Entries::from(engine, store, after.entry),
            None => Entries::new(engine, store),
        };
        let (derivation, ready) = (Derivation::default(), VecDeque::new());
        Subscription { entries, after, derivation, entry: None, ready }
    }

    /// Waits for the next event. May be dropped and called again.
    pub async fn next(&mut self) -> Result<Event, EventsError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            match self.entry.clone() {
                Some(entry) => {
                    if self.derive(&entry).await? {
                        self.entry = None;
                    }
                }
                None => self.entry = Some(self.next_entry().await?),
            }
        }
    }

    async fn next_entry(&mut self) -> Result<Arc<Entry>, EventsError> {
        self.entries.next().await.inspect_err(|error| {
            if let EventsError::Missed { .. } = error {
                self.after = None;
                self.derivation = Derivation::default();
            }
        })
    }

    /// False: to what something belongs cannot be said yet, because the tables are not that far.
    async fn derive(&mut self, entry: &Entry) -> Result<bool, EventsError> {
        let unknown = self.derivation.unknown(entry);
        if !unknown.is_empty() {
            let (before, sought) = (
                entry.sequence.saturating_sub(1),
                unknown.iter().copied().map(Sought::Part).collect::<Vec<_>>(),
            );
            let found = self.entries.store().read(move |store| {
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
