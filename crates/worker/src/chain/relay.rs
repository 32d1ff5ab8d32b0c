//! Between chains and the processes of their members.
//!
//! Chains run as tasks of their own, and processes belong to the runner, so the one asks the other. A chain has one
//! process at a time. One whose chain has gone away is stopped, and the end of that chain is told when the process is
//! gone: until then it uses what the attempt has claimed.

use crate::program::{Identity, Program};
use std::collections::BTreeMap;
use tidegate_core::protocol::{Lease, Outcome};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// What a chain wants of the runner.
pub(crate) enum Ask {
    Start {
        lease: Lease,
        program: Program,
        ended: oneshot::Sender<Outcome>,
    },
    Stop(Lease),
    /// To be told when there is no process any more.
    Settle {
        lease: Lease,
        settled: oneshot::Sender<()>,
    },
}

/// The chain's side.
#[derive(Clone)]
pub(crate) struct Asker {
    identity: Identity,
    asks: UnboundedSender<Ask>,
}

impl Asker {
    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Dropping this stops the process.
    pub(super) async fn run(&self, program: Program) -> Outcome {
        let (tell, ended) = oneshot::channel();
        let lease = self.identity.lease;
        self.ask(Ask::Start { lease, program, ended: tell });
        let _stops = Stops(self);
        // Whoever is not told any more is about to be stopped.
        ended.await.unwrap_or(Outcome::Stopped)
    }

    /// Waits until nothing is left of a process that was given up.
    pub(super) async fn settled(&self) {
        let (tell, settled) = oneshot::channel();
        self.ask(Ask::Settle { lease: self.identity.lease, settled: tell });
        // The runner may have gone away, and all processes with it.
        let _ = settled.await;
    }

    fn ask(&self, ask: Ask) {
        // As above.
        let _ = self.asks.send(ask);
    }
}

/// Stops a process that nobody waits for any more. For one that has ended it changes nothing.
struct Stops<'a>(&'a Asker);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.ask(Ask::Stop(self.0.identity.lease));
    }
}

/// The runner's side: the chains that have a process.
pub(crate) struct Relay {
    asks: UnboundedSender<Ask>,
    asked: UnboundedReceiver<Ask>,
    waiting: BTreeMap<Lease, Waiting>,
}

/// Who is told when a process has ended.
struct Waiting {
    ended: oneshot::Sender<Outcome>,
    settled: Vec<oneshot::Sender<()>>,
    /// How the chain itself ended, before its process did.
    chain: Option<Outcome>,
}

impl Relay {
    pub(crate) fn new() -> Relay {
        let (asks, asked) = unbounded_channel();
        Relay { asks, asked, waiting: BTreeMap::new() }
    }

    pub(crate) fn asker(&self, identity: Identity) -> Asker {
        Asker { identity, asks: self.asks.clone() }
    }

    /// What is asked next; waits for ever if there is nothing. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Ask {
        match self.asked.recv().await {
            Some(ask) => ask,
            // It holds a sender itself.
            None => std::future::pending().await,
        }
    }

    /// A process of a chain was started.
    pub(crate) fn started(&mut self, lease: Lease, ended: oneshot::Sender<Outcome>) {
        self.waiting.insert(lease, Waiting { ended, settled: Vec::new(), chain: None });
    }

    /// Told at once if there is no process.
    pub(crate) fn settle(&mut self, lease: Lease, settled: oneshot::Sender<()>) {
        match self.waiting.get_mut(&lease) {
            Some(waiting) => waiting.settled.push(settled),
            None => drop(settled.send(())),
        }
    }

    /// A process has ended. Gives the end of an attempt, if this is one.
    pub(crate) fn process_ended(&mut self, lease: Lease, outcome: Outcome) -> Option<(Lease, Outcome)> {
        let Some(Waiting { ended, settled, chain }) = self.waiting.remove(&lease) else {
            return Some((lease, outcome));
        };
        // Those who do not listen any more have given it up.
        let _ = ended.send(outcome);
        for settled in settled {
            let _ = settled.send(());
        }
        chain.map(|chain| (lease, chain))
    }

    /// Something that runs inside this process has ended. Gives the end of an attempt, unless a process is left of it.
    pub(crate) fn call_ended(&mut self, lease: Lease, outcome: Outcome) -> Option<(Lease, Outcome)> {
        match self.waiting.get_mut(&lease) {
            Some(waiting) => {
                waiting.chain = Some(outcome);
                None
            }
            None => Some((lease, outcome)),
        }
    }
}
