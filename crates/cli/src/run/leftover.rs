//! Runs that an earlier process left open, and the one of them that is to be finished.

use super::session::{holder, is_session, under_way};
use super::show::widest;
use super::view::View;
use crate::failure::{Exit, Failure};
use std::collections::BTreeMap;
use std::path::Path;
use tidegate_core::ids::{Name, NodeId, RunId};
use tidegate_core::model::{Action, Flow, queue_of};
use tidegate_core::protocol::{ActionRow, Body, DeclaredRow, NodeRow, RunBody, Snapshot};
use tidegate_store::{Reads, SqliteStore};

/// What is open: something that was left, or that was just submitted.
pub struct Open {
    pub id: RunId,
    /// Of the flow or action.
    pub name: Name,
    /// Room for the names in it.
    pub width: usize,
    /// What is known of it so far.
    pub view: View,
    /// To which it was submitted, if it was not just now.
    pub queue: Option<Name>,
}

/// Which of those that were left open.
pub enum Wanted<'a> {
    Any,
    /// Of this flow or action.
    Of(&'a Name),
    This(RunId),
}

impl Open {
    pub fn run(id: RunId, flow: &Flow, view: View) -> Open {
        Open { id, name: flow.name.clone(), width: widest(flow), view, queue: None }
    }

    pub fn job(id: RunId, action: &Action, node: NodeId) -> Open {
        let name = action.policy.action.clone();
        let width = name.as_str().chars().count();
        Open { id, name, width, view: View::of_job(&action.policy, node), queue: None }
    }

    /// The newest that is open in the store and is wanted. Looked for before anything works on the store: it might have
    /// ended otherwise by the time it is found.
    pub fn newest(wanted: &Wanted, path: &Path) -> Result<Open, Failure> {
        if !path.is_file() {
            return Err(nothing(wanted, path));
        }
        let failed = |error| Failure::store(&error, path);
        let snapshot = SqliteStore::open_reader(path).and_then(|mut reader| reader.load()).map_err(failed)?;
        let snapshot = snapshot.snapshot;
        let is_wanted = |row: &&NodeRow| match wanted {
            Wanted::Any => true,
            Wanted::Of(name) => row.body.name() == Some(name),
            Wanted::This(id) => row.body.id() == Some(*id),
        };
        let found = left_open(&snapshot, path).filter(|(_, row)| is_wanted(row)).last();
        let found = found.and_then(|(id, row)| Open::of(&snapshot, id, row));
        let busy = || {
            let (id, row) = open_ones(&snapshot).filter(|(_, row)| is_wanted(row)).last()?;
            Some(under_way(id, &holder(path, queue_of(row.body.tags()))?).at(path.display()))
        };
        found.ok_or_else(|| busy().unwrap_or_else(|| nothing(wanted, path)))
    }

    /// As rows tell it: a root and everything below it, open or not.
    pub fn seen(declared: &[DeclaredRow], rows: &[NodeRow]) -> Option<Open> {
        let root = rows.first()?;
        let mut open = Open::made_of(declared, root.body.id()?, root)?;
        open.view.take_in(rows);
        Some(open)
    }

    /// What was declared since it was found holds for the rest of it.
    pub fn learn(&mut self, declared: &[DeclaredRow]) {
        self.view.allow_attempts(&newest_actions(declared));
    }

    /// The same under another id, of which nothing is known yet.
    pub fn again(self, id: RunId, node: NodeId) -> Open {
        Open { id, view: self.view.again(node), ..self }
    }

    fn of(snapshot: &Snapshot, id: RunId, row: &NodeRow) -> Option<Open> {
        let mut open = Open::made_of(&snapshot.declared, id, row)?;
        open.queue = queue_of(row.body.tags()).cloned();
        open.view.reload(snapshot);
        Some(open)
    }

    fn made_of(declared: &[DeclaredRow], id: RunId, row: &NodeRow) -> Option<Open> {
        Some(match &row.body {
            Body::Run(body) => Open::of_run(declared, id, row.node, body)?,
            Body::Job(body) => {
                let actions = newest_actions(declared);
                let action = actions.iter().find(|action| action.policy.action == body.action)?;
                Open::job(id, action, row.node)
            }
            Body::Step(_) | Body::ItemRun(_) => return None,
        })
    }

    /// It goes on with the flows that were the newest when it began, also with those inside it.
    fn of_run(declared: &[DeclaredRow], id: RunId, node: NodeId, body: &RunBody) -> Option<Open> {
        let mut flows = BTreeMap::<&Name, (u32, &Flow)>::new();
        for row in declared {
            if let DeclaredRow::Flow { version, flow } = row
                && *version <= body.version
                && flows.get(&flow.name).is_none_or(|(known, _)| known < version)
            {
                flows.insert(&flow.name, (*version, flow));
            }
        }
        let (_, flow) = flows.get(&body.flow)?;
        let all: Vec<Flow> = flows.values().map(|(_, flow)| Flow::clone(flow)).collect();
        Some(Open::run(id, flow, View::new(&all, &newest_actions(declared), node)))
    }
}

/// What actions say about attempts holds for all who call them, whenever they began.
fn newest_actions(declared: &[DeclaredRow]) -> Vec<Action> {
    let mut newest = BTreeMap::<&Name, (u32, &Action)>::new();
    for row in declared {
        if let DeclaredRow::Action(ActionRow { version, action, .. }) = row
            && newest.get(&action.policy.action).is_none_or(|(known, _)| known < version)
        {
            newest.insert(&action.policy.action, (*version, action));
        }
    }
    newest.into_values().map(|(_, action)| action.clone()).collect()
}

/// What was submitted and has not ended, oldest first.
pub fn open_ones(snapshot: &Snapshot) -> impl Iterator<Item = (RunId, &NodeRow)> {
    let open = snapshot.nodes.iter().filter(|row| !row.life.state.is_end());
    open.filter_map(|row| Some((row.body.id()?, row)))
}

/// Those of them that no process that lives is at work on.
pub fn left_open<'a>(snapshot: &'a Snapshot, store: &'a Path) -> impl Iterator<Item = (RunId, &'a NodeRow)> {
    open_ones(snapshot).filter(|(_, row)| holder(store, queue_of(row.body.tags())).is_none())
}

/// Whether a `tidegate run` left it open: its process is gone.
pub fn is_left(row: &NodeRow, store: &Path) -> bool {
    let queue = queue_of(row.body.tags());
    !row.life.state.is_end() && queue.is_some_and(is_session) && holder(store, queue).is_none()
}

pub fn no_definition(store: &Path) -> Failure {
    Failure::new("no-definition", "what it was made of is not in this store").at(store.display())
}

fn nothing(wanted: &Wanted, store: &Path) -> Failure {
    let sentence = match wanted {
        Wanted::Of(name) => format!("no run of `{name}` is open in this store"),
        Wanted::This(id) => format!("{id} is not open in this store any more"),
        Wanted::Any => "no run is open in this store".to_owned(),
    };
    Failure::new("nothing-open", sentence).at(store.display()).exit(Exit::NotFound)
}
