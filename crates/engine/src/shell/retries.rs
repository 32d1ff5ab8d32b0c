//! Retries: what they are about is looked up in the store, off the writer, before they are taken in.

use super::EngineError;
use super::request::{Errand, Request};
use super::work::Shell;
use crate::recall::recall;
use tidegate_core::ids::RunId;
use tidegate_core::protocol::{Command, Past, Retry};
use tidegate_store::{Reads, StoreError};

impl Errand {
    pub(super) fn retried(&self) -> impl Iterator<Item = RunId> {
        self.commands.iter().filter_map(|command| match command {
            Command::Retry(retry) => Some(retry.of),
            _ => None,
        })
    }

    fn retries(&mut self) -> impl Iterator<Item = &mut Retry> {
        self.commands.iter_mut().filter_map(|command| match command {
            Command::Retry(retry) => Some(retry),
            _ => None,
        })
    }
}

impl Shell {
    /// From here until the errand is answered nothing is pruned; and while something is, it comes back later. Otherwise
    /// what was found could be gone by the time that the new run says that it needs it.
    pub(super) fn recall(&self, mut errand: Errand) {
        if self.prunes > 0 {
            return drop(errand.reply.send(Err(self.unavailable())));
        }
        errand.kept = Some(self.kept.clone());
        let (reader, urgent) = (self.reader.clone(), self.engine.urgent.clone());
        let ids: Vec<RunId> = errand.retried().collect();
        tokio::spawn(async move {
            match reader.read_soon(move |store| recall_all(store, &ids)).await {
                Ok(found) => {
                    for (retry, past) in errand.retries().zip(found) {
                        retry.past = past;
                    }
                    // If the engine has ended, the reply says so by being dropped.
                    let _ = urgent.send(Request::Errand(errand));
                }
                // Whoever asked may have gone away meanwhile.
                Err(error) => drop(errand.reply.send(Err(EngineError::Outage(error)))),
            }
        });
    }
}

fn recall_all(store: &mut dyn Reads, ids: &[RunId]) -> Result<Vec<Option<Box<Past>>>, StoreError> {
    ids.iter().map(|id| Ok(recall(store, *id)?.map(Box::new))).collect()
}
