//! Asks for jobs one burst after the other, and again for whatever it was not told about.

use super::run_id;
use super::workload::Workload;
use crate::definitions::job;
use crate::jobs::Jobs;
use crate::subject::{ASK_AGAIN, Subject};
use anyhow::Result;
use futures_util::future::try_join_all;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate_engine::EngineError;
use tidegate_observer::Fact;

/// Jobs of a submitter that wait for their acknowledgement at once. Few, so that somebody nearly always waits: in large
/// bursts they would come together, and then nobody for as long as their jobs take.
const BURST: u64 = 2;
/// Jobs that may be open before the submitters of a process that is alone wait.
const BACKLOG: u64 = 400;

#[derive(Clone)]
pub struct Submitter {
    pub subject: Arc<Subject>,
    pub jobs: Arc<Jobs>,
    pub workload: Workload,
    /// Jobs that were asked for and not executed when this process began, and what was asked for since.
    pub asked: Arc<AtomicU64>,
    /// The distance between two of its jobs.
    pub stride: u64,
    pub drain: bool,
}

impl Submitter {
    /// Goes on for ever, or asks once more for what may have been asked for before.
    pub async fn submit_from(self, first: u64) -> Result<()> {
        let mut next = first;
        loop {
            try_join_all((0..BURST).map(|at| self.submit(next + at * self.stride))).await?;
            if self.drain {
                return Ok(());
            }
            next += BURST * self.stride;
            while self.must_wait() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }

    /// Where several work, each of them waits for what it submitted instead.
    fn must_wait(&self) -> bool {
        let open = self.asked.load(Ordering::Relaxed).saturating_sub(self.jobs.ended());
        self.workload == Workload::Embedded && open > BACKLOG
    }

    async fn submit(&self, number: u64) -> Result<()> {
        let (id, action) = (run_id(number), self.workload.action(number));
        self.asked.fetch_add(1, Ordering::Relaxed);
        let (task, again) = loop {
            self.jobs.told(Fact::Asked, number, 0);
            match self.subject.submit_as(id, job(&action, number)).await {
                Ok(accepted) => break accepted,
                Err(error) if may_pass(&error) => tokio::time::sleep(ASK_AGAIN).await,
                Err(error) => return Err(error),
            }
        };
        self.jobs.told(if again { Fact::Found } else { Fact::Acknowledged }, number, task.node.0);
        if self.workload == Workload::Cluster && !self.drain {
            self.subject.ended(id).await?;
        }
        Ok(())
    }
}

/// Nobody knows whether it was accepted, so it is asked for again under the same id.
fn may_pass(error: &anyhow::Error) -> bool {
    error.downcast_ref::<EngineError>().is_some_and(EngineError::may_pass)
}
