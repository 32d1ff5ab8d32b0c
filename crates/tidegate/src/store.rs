//! Addresses of stores, and how their results are read without keeping anybody waiting.

use crate::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate_core::time::{Moment, Span};
use tidegate_store::{Found, MemoryStore, Reads, Sought, SqliteStore, Store, StoreError};

/// How long to wait before a store that could not be read is read again: at first, and at most.
const READ_AGAIN_FIRST: Duration = Duration::from_millis(20);
const READ_AGAIN_LAST: Duration = Duration::from_secs(2);
/// How long a store is given to show what it has taken in.
const SHOWN_WITHIN: Duration = Duration::from_secs(5);

/// The handles of one store: its owner's, one for the engine to read with, and one for this library.
pub(crate) struct Handles {
    pub owner: Box<dyn Store>,
    pub engine: Box<dyn Reads>,
    pub reader: Reader,
}

/// Opens (or makes) the store at an address.
pub(crate) fn open(address: &str) -> Result<Handles, Error> {
    match address.split_once(':') {
        Some(("sqlite", path)) if !path.is_empty() => open_sqlite(Path::new(path)),
        Some(("memory", "")) => Ok(open_memory()),
        _ => Err(Error::Address(address.to_owned())),
    }
}

fn open_sqlite(path: &Path) -> Result<Handles, Error> {
    let owner = Box::new(SqliteStore::open(path)?);
    let reader = || SqliteStore::open_reader(path);
    Ok(Handles { owner, engine: Box::new(reader()?), reader: Reader::new(Box::new(reader()?)) })
}

fn open_memory() -> Handles {
    let store = MemoryStore::new();
    store.set_clock(wall_clock(SystemTime::now()));
    Handles {
        owner: Box::new(store.handle()),
        engine: Box::new(store.handle()),
        reader: Reader::new(Box::new(store)),
    }
}

/// A time of day in engine time, which counts like the wall clock of whoever keeps the store.
pub(crate) fn wall_clock(time: SystemTime) -> Moment {
    Moment::default() + Span::from(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Reads what is stored, for one at a time, on a thread that may block.
#[derive(Clone)]
pub(crate) struct Reader {
    reads: Arc<Mutex<Box<dyn Reads>>>,
    /// The last entry that was heard of: whatever is read must not be older.
    heard: Arc<AtomicU64>,
}

impl Reader {
    fn new(reads: Box<dyn Reads>) -> Reader {
        Reader { reads: Arc::new(Mutex::new(reads)), heard: Arc::default() }
    }

    /// The handle itself, for whoever follows entries.
    pub fn handle(&self) -> Arc<Mutex<Box<dyn Reads>>> {
        self.reads.clone()
    }

    /// An entry became durable.
    pub fn heard(&self, sequence: u64) {
        self.heard.store(sequence, Ordering::SeqCst);
    }

    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Reads) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reads, heard) = (self.reads.clone(), self.heard.load(Ordering::SeqCst));
        let once = move || {
            let mut store = reads.lock().unwrap_or_else(PoisonError::into_inner);
            if !store.reach(heard, SHOWN_WITHIN)? {
                return Err(StoreError::Unknown(format!("it does not show entry {heard} yet")));
            }
            work(store.as_mut())
        };
        let done = tokio::task::spawn_blocking(once).await;
        done.unwrap_or_else(|panicked| Err(StoreError::Broken(panicked.to_string())))
    }

    /// Reads again and again while the reason for a failure may pass.
    pub async fn insist<T: Send + 'static>(
        &self,
        work: impl Fn(&mut dyn Reads) -> Result<T, StoreError> + Clone + Send + 'static,
    ) -> Result<T, StoreError> {
        let mut pause = READ_AGAIN_FIRST;
        loop {
            match self.read(work.clone()).await {
                Err(error) if error.may_pass() => tokio::time::sleep(pause).await,
                result => return result,
            }
            pause = (pause * 2).min(READ_AGAIN_LAST);
        }
    }

    /// What was accepted under an id or key, whether or not it has ended.
    pub async fn find(&self, sought: Sought) -> Result<Option<Found>, StoreError> {
        let found = self.read(move |store| store.find(&[sought])).await?;
        Ok(found.into_iter().next().flatten())
    }
}
