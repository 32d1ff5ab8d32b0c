//! Reads from a store beside its owner: one at a time, on threads that may block, and again if the reason for a failure
//! may pass.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_store::{Reads, StoreError};

/// How long to wait before a store that could not be read is read again: at first, and at most.
const READ_AGAIN_FIRST: Duration = Duration::from_millis(20);
const READ_AGAIN_LAST: Duration = Duration::from_secs(2);

/// A handle that only reads; cheap to clone.
#[derive(Clone)]
pub struct Reader(Arc<Mutex<Box<dyn Reads>>>);

impl Reader {
    pub fn new(reads: Box<dyn Reads>) -> Reader {
        Reader(Arc::new(Mutex::new(reads)))
    }

    /// Reads again and again while the reason for a failure may pass.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&mut dyn Reads) -> Result<T, StoreError> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        let work = Arc::new(work);
        let mut pause = READ_AGAIN_FIRST;
        loop {
            let (reads, work) = (self.0.clone(), work.clone());
            let once = move || work(reads.lock().unwrap_or_else(PoisonError::into_inner).as_mut());
            match tokio::task::spawn_blocking(once).await {
                Ok(Err(error)) if error.may_pass() => tokio::time::sleep(pause).await,
                Ok(result) => return result,
                Err(panicked) => return Err(StoreError::Broken(panicked.to_string())),
            }
            pause = (pause * 2).min(READ_AGAIN_LAST);
        }
    }
}
