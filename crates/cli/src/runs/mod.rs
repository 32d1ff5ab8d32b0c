//! `tidegate runs`: what was submitted to a store, looked at and ended while somebody may be working on it.

mod cancel;
mod diary;
mod list;
mod part;
mod retry;
mod show;

use crate::args::{self, RunsCommand};
use crate::failure::{Exit, Failure};
use crate::in_runtime;
use std::path::Path;
use tidegate_core::ids::{Name, NodeId, RunId};
use tidegate_core::protocol::NodeRow;
use tidegate_store::{Reads, Sought, SqliteReader, SqliteStore, Wanted};

pub fn runs(options: &args::Runs, quiet: bool) -> Result<Exit, Failure> {
    match &options.command {
        RunsCommand::List(options) => list::list(options),
        RunsCommand::Show(options) => show::show(options),
        RunsCommand::Cancel(options) => in_runtime(cancel::cancel(options, quiet)),
        RunsCommand::Resume(options) => in_runtime(retry::resume(options, quiet)),
        RunsCommand::Retry(options) => in_runtime(retry::retry(options, quiet)),
        RunsCommand::Logs(options) => diary::print_diary(options, diary::Kind::Logs),
        RunsCommand::Events(options) => diary::print_diary(options, diary::Kind::Events),
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

/// By the beginning of its id, or the newest.
fn find(reader: &mut SqliteReader, id: Option<&str>, path: &Path) -> Result<NodeId, Failure> {
    let failed = |error| Failure::store(&error, path);
    let none = |sentence: String| Err(not_found(sentence, path));
    let Some(id) = id else {
        let newest = reader.submitted(&Wanted::default(), 1).map_err(failed)?;
        return newest
            .first()
            .map_or_else(|| none("nothing was submitted here".to_owned()), |row| Ok(row.node));
    };
    if let Some(whole) = RunId::parse(id) {
        let found = reader.find(&[Sought::Id(whole)]).map_err(failed)?;
        return found
            .into_iter()
            .next()
            .flatten()
            .map_or_else(|| none(format!("there is no `{id}`")), |it| Ok(it.node));
    }
    if let Some((run, _)) = id.split_once('/') {
        return none(format!("`{id}` is a part of a run, and this takes a run: `{run}`"));
    }
    let recent = reader.submitted(&Wanted::default(), RECENT).map_err(failed)?;
    let is_it = |row: &&NodeRow| identity(row).is_some_and(|(known, _)| known.to_string().starts_with(id));
    let mut found = recent.iter().filter(is_it);
    match (found.next(), found.next()) {
        (Some(row), None) => Ok(row.node),
        (Some(_), Some(_)) => none(format!("more than one begins with `{id}`")),
        (None, _) => none(format!("none of the newest {RECENT} begins with `{id}`")),
    }
}

/// What was submitted as this node.
fn row_of(reader: &mut SqliteReader, node: NodeId, path: &Path) -> Result<NodeRow, Failure> {
    let rows = reader.outline(node).map_err(|error| Failure::store(&error, path))?;
    rows.into_iter().next().ok_or_else(|| not_found("it was deleted a moment ago".to_owned(), path))
}

fn not_found(sentence: String, path: &Path) -> Failure {
    let failure = Failure::new("not-found", sentence).at(path.display()).exit(Exit::NotFound);
    failure.help("`tidegate runs list` lists them")
}

/// Among how many the beginning of an id is looked for.
const RECENT: u32 = 1_000;
