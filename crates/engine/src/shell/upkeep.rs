//! Retention: what ended long ago is deleted, a little at a time, by whoever leads or is asked to.

use super::EngineError;
use super::store_thread::Job;
use super::work::Shell;
use std::time::{Duration, Instant};
use tidegate_core::time::{Moment, Span};
use tidegate_store::{KEEP_AT_LEAST, Pruned, StoreError};
use tokio::sync::oneshot;

/// How often what is old is looked for, and how soon again while there is more.
const EVERY: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_millis(200);
/// Rows deleted at a time: commits wait for as long as that takes.
const SLICE: u32 = 2_000;

/// How long what has ended is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retention {
    Forever,
    /// For so long after its end, and no shorter than [`KEEP_AT_LEAST`].
    For(Span),
}

impl Shell {
    /// When to look for what is old next.
    pub(super) fn next_prune(&self) -> Option<Instant> {
        match self.retention {
            Retention::Forever => None,
            Retention::For(_) => self.prune_at,
        }
    }

    pub(super) fn prune_if_due(&mut self, now: Instant) {
        let Retention::For(span) = self.retention else { return };
        if !self.server.leads() || self.prune_at.is_none_or(|at| at > now) {
            return;
        }
        // Until the answer comes.
        self.prune_at = None;
        let before = self.engine_now() - span.max(KEEP_AT_LEAST);
        let _ = self.store_jobs.send(Job::Prune { before, most: SLICE, asked: None });
    }

    /// Somebody's wish: a slice, whoever leads.
    pub(super) fn prune_for(&self, before: Moment, reply: oneshot::Sender<Result<Pruned, EngineError>>) {
        if self.server.outage().is_some() {
            return drop(reply.send(Err(self.unavailable())));
        }
        let _ = self.store_jobs.send(Job::Prune { before, most: SLICE, asked: Some(reply) });
    }

    pub(super) fn pruned(&mut self, pruned: Result<Pruned, StoreError>) {
        let pause = if matches!(pruned, Ok(pruned) if pruned.rows > 0) { SOON } else { EVERY };
        self.prune_at = Some(Instant::now() + pause);
    }
}
