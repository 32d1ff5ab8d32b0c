//! `tidegate why`: what a task waits for, read from a store that somebody else may be working on.

use crate::args;
use crate::failure::{Exit, Failure};
use crate::out::{print, say};
use crate::run::{is_left, state_of};
use crate::time::now;
use std::path::Path;
use tidegate_core::explain::{self, brief};
use tidegate_core::ids::{RunId, TaskId};
use tidegate_core::time::Moment;
use tidegate_core::{Core, Lost};
use tidegate_store::{Reads, SqliteReader, SqliteStore};

/// More than a screen of waiting tasks is counted, not listed.
const LISTED: usize = 50;

pub fn why(options: &args::Why) -> Result<Exit, Failure> {
    let help = "a program explains what waits in its own store with `Tidegate::explain`";
    let path = options.store.file("why", help)?.existing()?;
    let failed = |error| Failure::store(&error, path);
    let mut reader = SqliteStore::open_reader(path).map_err(failed)?;
    let loaded = reader.load().map_err(failed)?;
    let now = now();
    let left = loaded.snapshot.nodes.iter().filter(|row| is_left(row, path));
    let left: Vec<RunId> = left.filter_map(|row| row.body.id()).collect();
    // It only looks: what this core would like to write or do is nobody's business.
    let core = Core::load(loaded.snapshot, u32::MAX, now);
    let (what, of) = match &options.id {
        Some(id) => ("its process has ended", one(&core, &mut reader, id, path, now)?),
        None => {
            all(&core, now)?;
            ("a run was left open by a process that has ended", left.last().copied())
        }
    };
    if let Some(run) = of.filter(|run| left.contains(run)) {
        say(options.store.left_help(what, run));
    }
    Ok(Exit::Success)
}

/// Explains one, and says of which run it is a part if that is open.
fn one(
    core: &Core,
    reader: &mut SqliteReader,
    id: &str,
    path: &Path,
    now: Moment,
) -> Result<Option<RunId>, Failure> {
    let task = core.find(id).map_err(|lost| not_found(&lost, core, path))?;
    if let Some(explanation) = core.explain(task, now) {
        print(explain::render(&explanation))?;
        return Ok(explanation.name.split('/').next().and_then(RunId::parse));
    }
    let ended = reader.ended(task).map_err(|error| Failure::store(&error, path))?;
    match ended {
        Some(ended) => {
            let why = ended.error.map(|error| format!(": {error}")).unwrap_or_default();
            print(format!("{id} waits for nothing: it has ended, {}{why}", state_of(ended.state)))?;
            Ok(None)
        }
        None => Err(Failure::new("not-found", format!("there is no `{id}`"))
            .at(path.display())
            .exit(Exit::NotFound)
            .help("a loop's items count from 0; `tidegate why` lists all that waits")),
    }
}

fn not_found(lost: &Lost, core: &Core, path: &Path) -> Failure {
    let help = match (lost, core.roots().as_slice()) {
        (Lost::Ambiguous { .. }, _) => "write more of the id".to_owned(),
        (Lost::NoRun(_), []) => "nothing is open in this store: what was submitted has ended".to_owned(),
        (Lost::NoRun(_), [.., newest]) => format!("the newest open run is {newest}"),
        _ => "`tidegate why` lists all that waits".to_owned(),
    };
    Failure::new("not-found", lost.to_string()).at(path.display()).exit(Exit::NotFound).help(help)
}

/// One line for each that waits, best-ranked first.
fn all(core: &Core, now: Moment) -> Result<(), Failure> {
    let waiting = core.waiting();
    if waiting.is_empty() {
        say("nothing waits");
        return Ok(());
    }
    let name = |task: &tidegate_core::Waiting| match (task.count, task.task.index()) {
        (1, _) | (_, None) => task.name.clone(),
        (count, Some(index)) => format!("{}–{}", task.name, index + count - 1),
    };
    let listed = &waiting[..waiting.len().min(LISTED)];
    let width = listed.iter().map(|task| name(task).chars().count()).max().unwrap_or(0);
    for task in listed {
        let why = reason(core, task.task, now);
        print(format!("{:<width$}  {why}", name(task)))?;
    }
    if waiting.len() > LISTED {
        say(format!("and {} more", waiting.len() - LISTED));
    }
    say(format!("help: tidegate why {}", listed[0].name));
    Ok(())
}

fn reason(core: &Core, task: TaskId, now: Moment) -> String {
    let explanation = core.explain(task, now);
    explanation.and_then(|explanation| brief(&explanation)).unwrap_or_else(|| "waits".to_owned())
}
