//! `tidegate run`: an engine and a worker in this process, one run submitted to them, and a picture of it.
//!
//! - [`prepare`]: from a file and arguments to something to submit; [`leftover`]: what was left open
//! - [`view`]: what is known of the run, kept up to date by [`apply`]; [`event`]: what there is to tell
//! - [`tree`]: the picture; [`screen`]: where it is painted; [`show`]: which of the ways to tell is used
//! - [`backlog`]: what was written and has not been shown yet
//! - [`watch`]: waits for the end, [`interrupts`] included

mod apply;
mod backlog;
mod event;
mod interrupts;
mod leftover;
mod prepare;
mod screen;
mod show;
#[cfg(test)]
mod tests;
mod tree;
mod view;
mod watch;

use crate::args;
use crate::failure::{Exit, Failure};
use crate::out::{print, say};
use backlog::Backlog;
use event::state_of;
use interrupts::Interrupts;
use leftover::OpenRun;
use prepare::Prepared;
use serde_json::Value as Json;
use show::Show;
use std::path::Path;
use std::sync::Arc;
use tidegate::{Local, LocalError, Options};
use tidegate_core::ids::{RunId, TaskId};
use tidegate_core::protocol::Refusal;
use tidegate_core::state::State;
use tidegate_worker::{Functions, GuardianCommand};
use view::View;
use watch::{Watch, Watched};

pub async fn run(options: args::Run, quiet: bool) -> Result<Exit, Failure> {
    let target = match &options.file {
        Some(file) if !options.resume => Target::New(Box::new(Prepared::read(file, &options)?)),
        file => Target::Left(Box::new(OpenRun::newest(file.as_deref(), &options)?)),
    };
    let mut interrupts = Interrupts::listen()?;
    let store = options.store.path.as_path();
    let backlog = Arc::new(Backlog::default());
    let mut local = open(store, options.slots, backlog.clone()).await?;
    let failed = |error| Failure::local(&error, store);
    let entries = local.take_entries();
    let begun = tokio::select! {
        begun = begin(target, &mut local, &options, quiet) => begun?,
        () = interrupts.next() => return Ok(Exit::Interrupted),
    };
    let OpenRun { id, flow, view } = begun;
    let node = view.root;
    backlog.keep_only(id);
    let show = Show::choose(quiet, &flow, id);
    let (told, outage) = (Default::default(), local.engine.outage());
    let (behind, end_unheard) = (false, false);
    let watch =
        Watch { view, show, entries, backlog, store: &options.store, told, outage, behind, end_unheard };
    let watched = watch.until_ended(&mut local, &mut interrupts).await?;
    let ended = local.ended(TaskId::node(node)).map_err(failed)?;
    let output = local.output(TaskId::node(node), false).map_err(failed)?;
    // Others' work is handed back now; who cannot wait for that interrupts again.
    tokio::select! {
        () = local.shut_down() => {}
        () = interrupts.next() => return Ok(Exit::Interrupted),
    }
    let Watched { state, interrupted } = watched;
    if state == State::Succeeded {
        outputs(&output, options.output)?;
    }
    conclude(id, state, ended.and_then(|ended| ended.error), interrupted)
}

/// What is to be watched to its end.
enum Target {
    New(Box<Prepared>),
    Left(Box<OpenRun>),
}

/// Submits what is new, and tells what else there is. A store that cannot be written now ends this at once: nothing
/// has begun, so nothing is lost, and whoever called decides whether to wait. Once a run has begun, it is worth
/// waiting for.
async fn begin(
    target: Target,
    local: &mut Local,
    options: &args::Run,
    quiet: bool,
) -> Result<OpenRun, Failure> {
    let failed = |error| Failure::local(&error, &options.store.path);
    let snapshot = local.snapshot().map_err(failed)?;
    let mut others: Vec<RunId> = leftover::open_runs(&snapshot).map(|(id, _, _)| id).collect();
    if let Target::Left(left) = &target {
        others.retain(|id| *id != left.id);
    }
    let resume = options.store.resume();
    if !quiet && !others.is_empty() {
        say(format!("note: {} not finished; `{resume}` finishes the newest", unfinished(&others)));
    }
    let prepared = match target {
        Target::New(prepared) => *prepared,
        Target::Left(left) => return Ok(*left),
    };
    let Prepared { declare, flows, flow, submission, tags } = prepared;
    local.declare(declare).await.map_err(failed)?;
    let submitted = local.submit(submission, tags, options.priority).await;
    let (id, node) = submitted.map_err(|error| match (&error, others.as_slice()) {
        (LocalError::Refused(Refusal::Busy { .. }), [.., newest]) => {
            failed(error).help(format!("{newest} was left open in this store; `{resume}` finishes it"))
        }
        _ => failed(error),
    })?;
    Ok(OpenRun { id, flow, view: View::new(&flows, node) })
}

async fn open(path: &Path, slots: Option<u32>, backlog: Arc<Backlog>) -> Result<Local, Failure> {
    let unusable = |error: std::io::Error| {
        Failure::new("store", format!("the store's directory cannot be made: {error}")).at(path.display())
    };
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(unusable)?;
    }
    let program = std::env::current_exe()
        .map_err(|error| Failure::new("binary", format!("this very program cannot be found: {error}")))?;
    let options = Options {
        guardian: GuardianCommand { program, args: vec![args::GUARDIAN.to_owned()] },
        logs: Arc::new(move |line| backlog.push(line)),
        functions: Functions::default(),
        slots,
    };
    Local::open(path, options).await.map_err(|error| Failure::local(&error, path))
}

fn unfinished(runs: &[RunId]) -> String {
    match runs {
        [run] => format!("{run} of this store is"),
        [first, ..] => format!("{} runs of this store ({first} and others) are", runs.len()),
        [] => String::new(),
    }
}

/// The run's outputs on stdout.
fn outputs(output: &Json, form: args::Output) -> Result<(), Failure> {
    let values = output.as_object().cloned().unwrap_or_default();
    if form == args::Output::Json {
        return print(Json::Object(values));
    }
    let width = values.keys().map(|name| name.chars().count()).max().unwrap_or(0);
    for (name, value) in &values {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mut lines = text.trim_end().lines();
        print(format!("{name:<width$}  {}", lines.next().unwrap_or_default()))?;
        lines.try_for_each(|line| print(format!("{:<width$}  {line}", "")))?;
    }
    Ok(())
}

fn conclude(id: RunId, state: State, error: Option<String>, interrupted: bool) -> Result<Exit, Failure> {
    let exit = match (interrupted, state) {
        (true, _) => Exit::Interrupted,
        (false, State::Succeeded) => return Ok(Exit::Success),
        (false, _) => Exit::Failed,
    };
    if state == State::Succeeded {
        return Ok(exit);
    }
    let (code, verb) = match state {
        State::Cancelled => ("cancelled", "was cancelled".to_owned()),
        State::TimedOut => ("timed-out", "timed out".to_owned()),
        state => ("failed", state_of(state)),
    };
    // What was cancelled with the run is not what went wrong with it.
    let error = error.filter(|_| state != State::Cancelled);
    let why = error.map(|error| format!(": {error}")).unwrap_or_default();
    Err(Failure::new(code, format!("{id} {verb}{why}")).exit(exit))
}
