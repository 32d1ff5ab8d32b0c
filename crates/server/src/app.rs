//! What every route needs.

use crate::access::{Access, Caller, Known};
use crate::problem::Problem;
use crate::staff::Staff;
use std::sync::Arc;
use tidegate::Tidegate;
use tidegate_store::{Reads, StoreError};
use tokio::sync::watch;

/// An engine, and who may ask it. Cheap to clone.
#[derive(Clone)]
pub struct App {
    pub(crate) tide: Tidegate,
    pub(crate) access: Arc<Access>,
    pub(crate) known: Arc<Known>,
    pub(crate) staff: Arc<Staff>,
    /// Whether it is about to end: whoever follows something is let go.
    closing: watch::Receiver<bool>,
}

impl App {
    /// `closing` turns true when the server is to end.
    pub fn new(tide: Tidegate, access: Access, closing: watch::Receiver<bool>) -> App {
        App { tide, access: Arc::new(access), known: Arc::default(), staff: Arc::default(), closing }
    }

    /// The engine, for a caller: what it changes is written down with its name.
    pub(crate) fn of(&self, caller: &Caller) -> Tidegate {
        self.tide.on_behalf_of(caller.name.as_str())
    }

    /// Reads from the store.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&mut dyn Reads) -> Result<T, StoreError> + Send + Sync + 'static,
    ) -> Result<T, Problem> {
        Ok(self.tide.read(work).await?)
    }

    /// Ready when the server is about to end.
    pub(crate) fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut closing = self.closing.clone();
        async move {
            // Whoever would say so may be gone, too.
            let _ = closing.wait_for(|closing| *closing).await;
        }
    }
}
