//! `tidegate runs cancel`: through whoever leads, or by leading for a moment.

use super::{find, identity, open, row_of};
use crate::args;
use crate::failure::{Exit, Failure};
use crate::out::say;
use crate::run::{dismiss, holder, is_session, share, state_of};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Duration;
use tidegate::{Error, Tidegate};
use tidegate_core::ids::{Name, NodeId, RunId, TaskId};
use tidegate_core::model::queue_of;
use tidegate_core::protocol::{Answer, Command, NodeRow, Refusal};
use tidegate_core::state::State;
use tidegate_store::{Reads, SqliteReader, StoreError, Wanted};

/// How long to wait for the end of what was running: the grace of processes, and some more.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than anybody left open.
const MOST: u32 = 1_000_000;

pub async fn cancel(options: &args::RunsCancel, quiet: bool) -> Result<Exit, Failure> {
    let (mut reader, path) = open(&options.store)?;
    let rows = match options.all {
        true => all_open(&mut reader).map_err(|error| Failure::store(&error, path))?,
        false => named(&mut reader, &options.ids, path)?,
    };
    if options.all && !rows.is_empty() && !options.yes {
        confirm(rows.len())?;
    }
    if rows.is_empty() && !quiet {
        say("nothing is open in this store");
    }
    if rows.is_empty() {
        return Ok(Exit::Success);
    }
    let failed = |error| Failure::engine(&error, path);
    let tide = share(path)?.open().await.map_err(failed)?;
    for row in &rows {
        stop(&tide, row.node).await.map_err(failed)?;
    }
    dismiss_killed(&tide, &rows, path).await;
    let mut exit = Exit::Success;
    let end = tokio::time::Instant::now() + PATIENCE;
    for (id, _) in rows.iter().filter_map(identity) {
        let ended = tokio::time::timeout_at(end, how_it_ends(&tide, id)).await;
        let (told, of_this) = told(id, ended.ok().transpose().map_err(failed)?);
        if !quiet || of_this != Exit::Success {
            say(told);
        }
        // Of several the first that did not end as it was told to.
        exit = if exit == Exit::Success { of_this } else { exit };
    }
    tide.close().await;
    Ok(exit)
}

/// What became of a run that was told to stop, if it has ended by now.
fn told(id: RunId, ended: Option<State>) -> (String, Exit) {
    match ended {
        Some(State::Cancelled) => (format!("{id} was cancelled"), Exit::Success),
        Some(state) => (format!("{id} has ended before, {}", state_of(state)), Exit::Refused),
        None => (format!("{id} is being cancelled, and has not ended yet"), Exit::TimedOut),
    }
}

/// All of them, or nothing is done.
fn named(reader: &mut SqliteReader, ids: &[String], path: &Path) -> Result<Vec<NodeRow>, Failure> {
    let mut rows: Vec<NodeRow> = Vec::new();
    for id in ids {
        let node = find(reader, Some(id), path)?;
        let row = row_of(reader, node, path)?;
        if row.life.state.is_end() {
            let sentence = format!("`{id}` has ended already, {}", state_of(row.life.state));
            return Err(Failure::new("ended", sentence).at(path.display()).exit(Exit::Refused));
        }
        if rows.iter().all(|known| known.node != row.node) {
            rows.push(row);
        }
    }
    Ok(rows)
}

fn all_open(reader: &mut SqliteReader) -> Result<Vec<NodeRow>, StoreError> {
    let mut rows = Vec::new();
    for state in [State::Scheduled, State::Waiting, State::Running] {
        rows.extend(reader.submitted(&Wanted { state: Some(state), ..Wanted::default() }, MOST)?);
    }
    rows.sort_by_key(|row| row.node);
    Ok(rows)
}

fn confirm(count: usize) -> Result<(), Failure> {
    let runs = if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
    let refused = |sentence: String| Failure::new("not-confirmed", sentence).exit(Exit::Invalid);
    if !std::io::stdin().is_terminal() {
        return Err(refused(format!("{runs} would be cancelled")).help("say that you mean it with --yes"));
    }
    let mut terminal = std::io::stderr();
    // Without a terminal to ask on there is no answer either.
    let _ = write!(terminal, "Cancel {runs}? [y/N] ").and_then(|()| terminal.flush());
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    match read.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        true => Ok(()),
        false => Err(refused("nothing was cancelled".to_owned())),
    }
}

/// What has ended meanwhile needs no cancelling; its end is told.
async fn stop(tide: &Tidegate, node: NodeId) -> Result<(), Error> {
    match tide.engine().insist(Command::Cancel(TaskId::node(node))).await? {
        Answer::Refused(Refusal::UnknownTask(_)) => Ok(()),
        Answer::Refused(refusal) => Err(refusal.into()),
        _ => Ok(()),
    }
}

/// What runs of killed processes had does not run any more: nobody has to wait until their leases end.
async fn dismiss_killed(tide: &Tidegate, rows: &[NodeRow], path: &Path) {
    let sessions = rows.iter().filter_map(|row| queue_of(row.body.tags()));
    for worker in sessions.filter(|queue| is_session(queue) && holder(path, Some(queue)).is_none()) {
        let known = |workers: Vec<(Name, u64)>| workers.into_iter().find(|(name, _)| name == worker);
        let workers = tide.engine().read(|core, _| {
            core.connected().map(|(name, incarnation)| (name.clone(), incarnation)).collect()
        });
        // Elsewhere whoever leads does it.
        let Ok(workers) = workers.await else { return };
        dismiss(tide, path, worker, known(workers).map_or(0, |(_, incarnation)| incarnation)).await;
    }
}

async fn how_it_ends(tide: &Tidegate, id: RunId) -> Result<State, Error> {
    Ok(tide.run(id).await?.wait().await?.state())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_a_run_is_said_and_told_by_the_exit_code() {
        let told = |ended| told(RunId(1), ended);
        let id = RunId(1);
        assert_eq!(told(Some(State::Cancelled)), (format!("{id} was cancelled"), Exit::Success));
        assert_eq!(told(Some(State::Failed)), (format!("{id} has ended before, failed"), Exit::Refused));
        assert_eq!(told(None), (format!("{id} is being cancelled, and has not ended yet"), Exit::TimedOut));
    }
}
