//! Who wants to know how a run ends, and what is asked without changing anything.

use super::EngineError;
use super::effects::{Reader, read};
use super::request::Watcher;
use super::work::Shell;
use std::collections::BTreeMap;
use tidegate_core::ids::{NodeId, RunId, TaskId};
use tidegate_core::protocol::Write;
use tidegate_store::{Entry, Reads, Sought, StoreError};
use tidegate_wire::{Query, Reply, Result as Ended};
use tokio::sync::oneshot;

type ReplySender = oneshot::Sender<Result<Reply, EngineError>>;

/// Those who wait for the end of open runs.
#[derive(Default)]
pub(super) struct Watchers(BTreeMap<NodeId, Vec<Watcher>>);

impl Watchers {
    /// Those whose run has ended with this entry.
    fn take_ended(&mut self, entry: &Entry) -> Vec<Watcher> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let ended = entry.writes.iter().filter_map(|write| match write {
            Write::Ended { task, .. } if task.index().is_none() => Some(task.node),
            _ => None,
        });
        ended.filter_map(|node| self.0.remove(&node)).flatten().collect()
    }

    fn take_all(&mut self) -> Vec<Watcher> {
        std::mem::take(&mut self.0).into_values().flatten().collect()
    }
}

impl Shell {
    pub(super) fn answer_query(&mut self, query: Query, reply: ReplySender) {
        let Some(core) = self.server.core() else {
            return drop(reply.send(Err(self.unavailable())));
        };
        // Whoever asked may have gone away meanwhile.
        match query {
            Query::Explain(task) => {
                let explanation = core.explain(task, self.engine_now()).map(Box::new);
                let _ = reply.send(Ok(Reply::Explanation(explanation)));
            }
            Query::Find(id) => drop(reply.send(Ok(Reply::Found(core.node_of(id))))),
            Query::Result(id) => match core.node_of(id) {
                Some(node) => self.watchers.0.entry(node).or_default().push(Watcher { id, reply }),
                None => self.read_result(Watcher { id, reply }),
            },
        }
    }

    pub(super) fn tell_watchers(&mut self, entry: &Entry) {
        for watcher in self.watchers.take_ended(entry) {
            self.read_result(watcher);
        }
    }

    /// What is in memory was given up: they ask again, here or elsewhere.
    pub(super) fn dismiss_watchers(&mut self) {
        for watcher in self.watchers.take_all() {
            let _ = watcher.reply.send(Err(self.unavailable()));
        }
    }

    fn read_result(&self, watcher: Watcher) {
        let reader: Reader = self.reader.clone();
        tokio::spawn(async move {
            let Watcher { id, reply } = watcher;
            let result = read(reader, move |store| result(store, id)).await;
            let _ = reply.send(result.map(Reply::Result).map_err(EngineError::Outage));
        });
    }
}

fn result(store: &mut dyn Reads, id: RunId) -> Result<Option<Ended>, StoreError> {
    let Some(found) = store.find(&[Sought::Id(id)])?.into_iter().flatten().next() else { return Ok(None) };
    let node = found.node;
    let ended = store.ended(TaskId::node(node))?;
    Ok(ended.map(|ended| Ended {
        node,
        state: ended.state,
        output: ended.output,
        error: ended.error,
        attempts: ended.attempts,
    }))
}
