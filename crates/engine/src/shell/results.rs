//! Who wants to know how a run ends, and what is asked without changing anything.

use super::EngineError;
use super::request::{Request, Watcher};
use super::work::Shell;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_core::Core;
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::protocol::Write;
use tidegate_store::{Entry, Reads, Sought, StoreError};
use tidegate_wire::{Definition, Query, Reply, Result as Ended};
use tokio::sync::oneshot;

/// How long a commit that is under way is left alone.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// So many watchers are not worth a look at whether they are still there.
const FEW: usize = 1_024;

type ReplySender = oneshot::Sender<Result<Reply, EngineError>>;

/// Those who wait for the end of open runs.
#[derive(Default)]
pub(super) struct Watchers {
    by_node: BTreeMap<NodeId, Vec<Watcher>>,
    count: usize,
    /// When there are so many, those who have gone away are looked for.
    tidy_at: usize,
}

impl Watchers {
    fn add(&mut self, node: NodeId, watcher: Watcher) {
        self.by_node.entry(node).or_default().push(watcher);
        self.count += 1;
        if self.count >= self.tidy_at {
            self.by_node.retain(|_, watchers| {
                watchers.retain(|watcher| !watcher.reply.is_closed());
                !watchers.is_empty()
            });
            self.count = self.by_node.values().map(Vec::len).sum();
            self.tidy_at = (2 * self.count).max(FEW);
        }
    }

    /// Those whose run has ended with this entry.
    fn take_ended(&mut self, entry: &Entry) -> Vec<Watcher> {
        if self.by_node.is_empty() {
            return Vec::new();
        }
        let ended = entry.writes.iter().filter_map(|write| match write {
            Write::Ended { task, .. } if task.index().is_none() => Some(task.node),
            _ => None,
        });
        let taken: Vec<Watcher> = ended.filter_map(|node| self.by_node.remove(&node)).flatten().collect();
        self.count -= taken.len();
        taken
    }

    fn take_all(&mut self) -> Vec<Watcher> {
        std::mem::take(self).by_node.into_values().flatten().collect()
    }
}

impl Shell {
    pub(super) fn answer_query(&mut self, query: Query, reply: ReplySender) {
        let Some(core) = self.server.core() else {
            return drop(reply.send(Err(self.unavailable())));
        };
        let now = self.engine_now();
        let told = match query {
            Query::Explain(task) => Reply::Explanation(Ok(core.explain(task, now).map(Box::new))),
            Query::ExplainNamed(name) => {
                let explain = |task| core.explain(task, now).map(Box::new);
                Reply::Explanation(core.find(&name).map(explain))
            }
            Query::Definition(name) => Reply::Definition(definition(core, &name)),
            Query::Now => Reply::Now(now),
            Query::Queue(wanted) => Reply::Queue(Box::new(core.queue(&wanted, now))),
            Query::Limits(wanted) => Reply::Limits(core.limits_view(&wanted, now)),
            Query::Limit(key) => Reply::Limit(core.limit_detail(&key, now).map(Box::new)),
            Query::Workers => Reply::Workers(core.workers_view(now)),
            Query::Definitions(kind) => Reply::Definitions(core.definitions_view(kind)),
            Query::Stats => Reply::Stats(Box::new(core.stats(now))),
            Query::NameStats(name) => Reply::NameStats(core.name_stats(&name, now).map(Box::new)),
            Query::FindId(id) => match core.node_of(id) {
                Some(node) => Reply::Found(Some((node, id))),
                None => return self.find_stored(Sought::Id(id), reply),
            },
            Query::FindKey(key) => return self.find_stored(Sought::Key(key), reply),
            Query::Result(id) => match core.node_of(id) {
                Some(node) => return self.watchers.add(node, Watcher { id, reply }),
                None => return self.read_result(Watcher { id, reply }),
            },
        };
        // Whoever asked may have gone away meanwhile.
        let _ = reply.send(Ok(told));
    }

    fn find_stored(&self, sought: Sought, reply: ReplySender) {
        let reader = self.reader.clone();
        tokio::spawn(async move {
            let found = reader.read_soon(move |store| store.find(std::slice::from_ref(&sought))).await;
            let found =
                found.map(|found| found.into_iter().flatten().next().map(|found| (found.node, found.id)));
            let _ = reply.send(found.map(Reply::Found).map_err(EngineError::Outage));
        });
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

    /// What has ended in memory and not yet in the store is asked for again: only what is durable is told.
    fn read_result(&self, watcher: Watcher) {
        let (reader, engine) = (self.reader.clone(), self.engine.clone());
        tokio::spawn(async move {
            let Watcher { id, reply } = watcher;
            match reader.read_soon(move |store| result(store, id)).await {
                Ok(Stored::Open) => {
                    tokio::time::sleep(LOOK_AGAIN).await;
                    let query = Query::Result(id);
                    // If the engine has ended, the reply says so by being dropped.
                    let _ = engine.urgent.send(Request::Query { query, forward: true, reply });
                }
                Ok(Stored::Ended(ended)) => drop(reply.send(Ok(Reply::Result(Some(ended))))),
                Ok(Stored::Nothing) => drop(reply.send(Ok(Reply::Result(None)))),
                Err(error) => drop(reply.send(Err(EngineError::Outage(error)))),
            }
        });
    }
}

/// What the store says of a run.
pub(super) enum Stored {
    Nothing,
    Open,
    Ended(Ended),
}

pub(super) fn definition(core: &Core, name: &Name) -> Definition {
    match (core.action(name), core.flow(name, u32::MAX)) {
        (Some(action), _) => Definition::Action(action),
        (None, Some(flow)) => Definition::Flow(flow),
        (None, None) => Definition::Unknown,
    }
}

pub(super) fn result(store: &mut dyn Reads, id: RunId) -> Result<Stored, StoreError> {
    let Some(found) = store.find(&[Sought::Id(id)])?.into_iter().flatten().next() else {
        return Ok(Stored::Nothing);
    };
    let node = found.node;
    Ok(match store.ended(TaskId::node(node))? {
        None => Stored::Open,
        Some(ended) => {
            let tidegate_store::Ended { state, output, error, attempts } = ended;
            Stored::Ended(Ended { node, state, output, error, attempts })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_have_gone_away_are_forgotten() {
        let mut watchers = Watchers::default();
        let stays: Vec<_> = (0..10 * FEW as u64)
            .filter_map(|number| {
                let (reply, waits) = oneshot::channel();
                watchers.add(NodeId(number % 7), Watcher { id: RunId(1), reply });
                (number < 5).then_some(waits)
            })
            .collect();
        assert!(watchers.count <= FEW, "{}", watchers.count);
        assert_eq!(
            watchers.take_all().iter().filter(|watcher| !watcher.reply.is_closed()).count(),
            stays.len()
        );
    }
}
