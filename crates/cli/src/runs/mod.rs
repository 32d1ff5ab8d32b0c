//! `tidegate runs`: what was submitted to a store, looked at and ended while somebody may be working on it.

mod cancel;
mod find;
mod list;
mod show;

use crate::args::{self, RunsCommand};
use crate::failure::{Exit, Failure};
use crate::in_runtime;
use std::path::Path;
use tidegate_core::ids::{Name, RunId};
use tidegate_core::protocol::NodeRow;
use tidegate_store::{SqliteReader, SqliteStore};

pub fn runs(options: &args::Runs, quiet: bool) -> Result<Exit, Failure> {
    match &options.command {
        RunsCommand::List(options) => list::list(options),
        RunsCommand::Show(options) => show::show(options),
        RunsCommand::Cancel(options) => in_runtime(cancel::cancel(options, quiet)),
    }
}

fn open(store: &args::StoreFile) -> Result<(SqliteReader, &Path), Failure> {
    let help = "ask its tables with SQL: docs/reference/tables.md";
    let path = store.file("runs", help)?.existing()?;
    let reader = SqliteStore::open_reader(path).map_err(|error| Failure::store(&error, path))?;
    Ok((reader, path))
}

/// The id that users know, and the flow or action.
fn identity(row: &NodeRow) -> Option<(RunId, &Name)> {
    Some((row.body.id()?, row.body.name()?))
}
