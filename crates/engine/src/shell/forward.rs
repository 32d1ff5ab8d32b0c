//! Where another server leads: what is asked here goes there.

use super::EngineError;
use super::request::{Errand, ReplyTo, Request};
use super::results::{Stored, result};
use super::store_thread::Job;
use super::work::Shell;
use tidegate_core::ids::RunId;
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
        let Errand { commands, again, forward, reply, .. } = errand;
        if !forward || self.server.outage().is_some() {
            return drop(reply.send(Err(self.unavailable())));
        }
        self.upstream.commands(commands, again, ReplyTo::Answers(reply));
    }

    pub(super) fn forward_query(&mut self, query: Query, reply: oneshot::Sender<Result<Reply, EngineError>>) {
        if self.server.outage().is_some() {
            return drop(reply.send(Err(self.unavailable())));
        }
        match query {
            Query::Result(id) => self.read_here(id, query, reply),
            Query::FindId(id) => self.read_here(id, query, reply),
            query => self.ask_leader(query, reply),
        }
    }

    /// What has ended stays so, and is read here; whoever leads knows what is open. The tables may be a little behind, so
    /// what they do not know is asked for, too.
    fn read_here(&self, id: RunId, query: Query, reply: oneshot::Sender<Result<Reply, EngineError>>) {
        let (reader, urgent) = (self.reader.clone(), self.engine.urgent.clone());
        tokio::spawn(async move {
            let told = match reader.read_soon(move |store| result(store, id)).await {
                Ok(Stored::Ended(ended)) => Some(match query {
                    Query::FindId(_) => Reply::Found(Some((ended.node, id))),
                    _ => Reply::Result(Some(ended)),
                }),
                _ => None,
            };
            // Whoever asked may have gone away, and the engine may have ended.
            match told {
                Some(told) => drop(reply.send(Ok(told))),
                None => drop(urgent.send(Request::AskLeader(query, reply))),
            }
        });
    }

    pub(super) fn ask_leader(&mut self, query: Query, reply: oneshot::Sender<Result<Reply, EngineError>>) {
        match self.server.leads() {
            true => self.answer_query(query, reply),
            false => self.upstream.query(query, ReplyTo::Query(reply)),
        }
    }

    pub(super) fn forward_reports(&self, finished: Vec<Finish>) {
        self.upstream.reports(finished);
    }
}
