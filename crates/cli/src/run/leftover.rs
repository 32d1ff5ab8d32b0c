//! Runs that an earlier process left open, and the one of them that is to be finished.

use super::prepare::{choose, document};
use super::view::View;
use crate::args;
use crate::failure::{Exit, Failure};
use std::path::Path;
use tidegate_core::ids::{Name, NodeId, RunId};
use tidegate_core::model::Flow;
use tidegate_core::protocol::{Body, DeclaredRow, RunBody, Snapshot};
use tidegate_store::{Reads, SqliteStore};

/// An open run: one that was left, or one that was just submitted.
pub struct OpenRun {
    pub id: RunId,
    pub flow: Flow,
    /// What is known of it so far.
    pub view: View,
}

impl OpenRun {
    /// The newest that is open in the store, or that is of the flow in the file. Looked for before anything works on
    /// the store: it might have ended otherwise by the time it is found.
    pub fn newest(file: Option<&Path>, options: &args::Run, path: &Path) -> Result<OpenRun, Failure> {
        let wanted = match file {
            Some(file) => Some(choose(&document(file)?.flows, file, options)?.name.clone()),
            None => None,
        };
        if !path.is_file() {
            return Err(nothing(wanted.as_ref(), path));
        }
        let failed = |error| Failure::store(&error, path);
        let snapshot = SqliteStore::open_reader(path).and_then(|mut reader| reader.load()).map_err(failed)?;
        let is_wanted = |body: &RunBody| wanted.as_ref().is_none_or(|name| body.flow == *name);
        let found = open_runs(&snapshot.snapshot).filter(|(_, _, body)| is_wanted(body)).last();
        let (id, node, body) = found.ok_or_else(|| nothing(wanted.as_ref(), path))?;
        OpenRun::of(&snapshot.snapshot, id, node, body).ok_or_else(|| nothing(wanted.as_ref(), path))
    }

    fn of(snapshot: &Snapshot, id: RunId, node: NodeId, body: &RunBody) -> Option<OpenRun> {
        let declared = || {
            snapshot.declared.iter().filter_map(|row| match row {
                DeclaredRow::Flow { version, flow } => Some((*version, flow.as_ref())),
                _ => None,
            })
        };
        let is_it = |(version, flow): &(u32, &Flow)| flow.name == body.flow && *version == body.version;
        let flow = declared().find(is_it).map(|(_, flow)| flow.clone())?;
        // Flows inside it are as they were declared last; it itself is as it was when it began.
        let mut flows: Vec<Flow> = declared().map(|(_, flow)| flow.clone()).collect();
        flows.push(flow.clone());
        let mut view = View::new(&flows, node);
        view.reload(snapshot);
        Some(OpenRun { id, flow, view })
    }
}

/// Submitted runs that have not ended, oldest first.
pub fn open_runs(snapshot: &Snapshot) -> impl Iterator<Item = (RunId, NodeId, &RunBody)> {
    snapshot.nodes.iter().filter(|row| !row.life.state.is_end()).filter_map(|row| match &row.body {
        Body::Run(body) => Some((body.id?, row.node, body)),
        _ => None,
    })
}

fn nothing(flow: Option<&Name>, store: &Path) -> Failure {
    let sentence = match flow {
        Some(flow) => format!("no run of flow `{flow}` is open in this store"),
        None => "no run is open in this store".to_owned(),
    };
    Failure::new("nothing-open", sentence).at(store.display()).exit(Exit::NotFound)
}
