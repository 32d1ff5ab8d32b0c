//! Reads from a store beside its owner: a few at a time, on threads that may block, and again if the reason for a failure
//! may pass.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_store::{Reads, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How long to wait before a store that could not be read is read again: at first, and at most.
const READ_AGAIN_FIRST: Duration = Duration::from_millis(20);
const READ_AGAIN_LAST: Duration = Duration::from_secs(2);

/// How long somebody who waits for an answer is kept waiting by a store that cannot be read.
const PATIENCE: Duration = Duration::from_secs(1);

/// Handles that only read, of which one that is free is used for each read; cheap to clone.
#[derive(Clone)]
pub struct Reader {
    /// Never more permits than handles.
    free: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Box<dyn Reads>>>>,
}

impl From<Vec<Box<dyn Reads>>> for Reader {
    fn from(handles: Vec<Box<dyn Reads>>) -> Reader {
        Reader { free: Arc::new(Semaphore::new(handles.len())), idle: Arc::new(Mutex::new(handles)) }
    }
}

impl<R: Reads + 'static> From<Box<R>> for Reader {
    fn from(handle: Box<R>) -> Reader {
        Reader::from(vec![handle as Box<dyn Reads>])
    }
}

impl Reader {
    /// Reads again and again while the reason for a failure may pass.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&mut dyn Reads) -> Result<T, StoreError> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        self.read_within(None, work).await
    }

    /// The same for somebody who waits: after a moment it is said what the matter is.
    pub async fn read_soon<T: Send + 'static>(
        &self,
        work: impl Fn(&mut dyn Reads) -> Result<T, StoreError> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        self.read_within(Some(Instant::now() + PATIENCE), work).await
    }

    async fn read_within<T: Send + 'static>(
        &self,
        deadline: Option<Instant>,
        work: impl Fn(&mut dyn Reads) -> Result<T, StoreError> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        let work = Arc::new(work);
        let mut pause = READ_AGAIN_FIRST;
        let is_over = || deadline.is_some_and(|deadline| deadline <= Instant::now());
        loop {
            let mut lent = self.lend().await?;
            let work = work.clone();
            let once = move || match &mut lent.handle {
                Some(handle) => work(handle.as_mut()),
                None => Err(no_handle()),
            };
            match tokio::task::spawn_blocking(once).await {
                Ok(Err(error)) if error.may_pass() && !is_over() => tokio::time::sleep(pause).await,
                Ok(result) => return result,
                Err(panicked) => return Err(StoreError::Broken(panicked.to_string())),
            }
            pause = (pause * 2).min(READ_AGAIN_LAST);
        }
    }

    /// Waits until a handle is free, in the order in which it was asked for one.
    async fn lend(&self) -> Result<Lent, StoreError> {
        let permit = self.free.clone().acquire_owned().await.map_err(|_| no_handle())?;
        let handle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Ok(Lent { handle, idle: self.idle.clone(), _permit: permit })
    }
}

fn no_handle() -> StoreError {
    StoreError::Broken("there is no handle to read with".to_owned())
}

/// A handle that is given back when this is dropped, also by a read that panics. The permit goes after it.
struct Lent {
    handle: Option<Box<dyn Reads>>,
    idle: Arc<Mutex<Vec<Box<dyn Reads>>>>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).extend(self.handle.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_store::MemoryStore;
    use tokio::sync::mpsc;

    fn reader(handles: usize) -> Reader {
        let store = MemoryStore::new();
        let handle = || -> Box<dyn Reads> { Box::new(store.handle()) };
        Reader::from((0..handles).map(|_| handle()).collect::<Vec<_>>())
    }

    #[tokio::test]
    async fn as_many_read_at_once_as_there_are_handles() {
        let reader = reader(2);
        let (began, mut begins) = mpsc::unbounded_channel();
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let reads: Vec<_> = (0..3)
            .map(|number| {
                let (reader, began, gate) = (reader.clone(), began.clone(), gate.clone());
                tokio::spawn(async move {
                    reader
                        .read(move |_| {
                            began.send(number).unwrap();
                            // Until the other end is dropped.
                            let _ = gate.lock().unwrap().recv();
                            Ok(number)
                        })
                        .await
                })
            })
            .collect();
        begins.recv().await.unwrap();
        begins.recv().await.unwrap();
        assert!(begins.try_recv().is_err(), "the third has nothing to read with");
        drop(open);
        for (number, read) in reads.into_iter().enumerate() {
            assert_eq!(read.await.unwrap(), Ok(number));
        }
        begins.recv().await.unwrap();
    }

    #[tokio::test]
    async fn a_read_that_panics_gives_its_handle_back() {
        let reader = reader(1);
        let panics = reader.read(|_| -> Result<(), StoreError> { panic!("on purpose") }).await;
        assert!(matches!(panics, Err(StoreError::Broken(_))));
        assert_eq!(reader.read(|reads| reads.last()).await, Ok(0));
    }

    #[tokio::test]
    async fn somebody_who_has_waited_long_enough_is_told_what_the_matter_is() {
        let gone = || StoreError::Unknown("nobody answers".to_owned());
        let fails = move |_: &mut dyn Reads| -> Result<(), StoreError> { Err(gone()) };
        assert_eq!(reader(1).read_within(Some(Instant::now()), fails).await, Err(gone()));
    }
}
