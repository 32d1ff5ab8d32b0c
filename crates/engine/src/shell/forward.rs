//! Where another server leads: what is asked here goes there.

use super::EngineError;
use super::request::{Errand, ReplyTo};
use super::store_thread::Job;
use super::work::Shell;
use tidegate_core::protocol::Finish;
use tidegate_store::Leader;
use tidegate_wire::{Query, Reply};
use tokio::sync::oneshot;

impl Shell {
    /// Asks who leads, and says where this server is reached: it may lead next.
    pub(super) fn look_for_leader(&self) {
        let Some(contact) = self.contact.clone() else { return };
        let _ = self.store_jobs.send(Job::Announce(contact));
        let _ = self.store_jobs.send(Job::Leader);
    }

    pub(super) fn follow(&mut self, leader: Option<Leader>) {
        if !self.server.leads() {
            self.upstream.follow(leader.and_then(|leader| leader.contact));
        }
    }

    pub(super) fn forward(&self, errand: Errand) {
        let Errand { commands, again, forward, reply } = errand;
        if !forward || self.server.outage().is_some() {
            return drop(reply.send(Err(self.unavailable())));
        }
        self.upstream.commands(commands, again, ReplyTo::Answers(reply));
    }

    pub(super) fn forward_query(&self, query: Query, reply: oneshot::Sender<Result<Reply, EngineError>>) {
        if self.server.outage().is_some() {
            return drop(reply.send(Err(self.unavailable())));
        }
        self.upstream.query(query, ReplyTo::Query(reply));
    }

    pub(super) fn forward_reports(&self, finished: Vec<Finish>) {
        self.upstream.reports(finished);
    }
}
