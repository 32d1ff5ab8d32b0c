//! `tidegate run`: an engine and a worker in this process, one run submitted to them, and a picture of it.
//!
//! - [`prepare`]: from a file and arguments to something to submit; [`leftover`]: what was left open
//! - [`local`]: the engine and worker of this process
//! - [`view`]: what is known of the run, kept up to date by [`apply`]; [`event`]: what there is to tell
//! - [`tree`]: the picture; [`screen`]: where it is painted; [`show`]: which of the ways to tell is used
//! - [`backlog`]: what was written and has not been shown yet
//! - [`watch`]: waits for the end, [`interrupts`] included

mod apply;
mod backlog;
mod event;
mod interrupts;
mod leftover;
mod local;
mod prepare;
mod screen;
mod session;
mod show;
#[cfg(test)]
mod tests;
mod tree;
mod view;
mod watch;
mod workers;

use crate::args;
use crate::diary::{Recorder, keep_events, last_position, remove_old_orphans};
use crate::failure::{Exit, Failure};
use crate::out::{print, say};
use backlog::Backlog;
pub use event::{state_of, tone};
pub use interrupts::Interrupts;
use leftover::Wanted;
pub use leftover::{Open, is_left, no_definition};
use local::Local;
pub use local::{guardian, make_directory, share};
use prepare::{Chosen, Prepared};
use serde_json::{Map, Value as Json};
use session::Session;
pub use session::{dismiss, holder, is_session};
use show::Show;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{Document, Error};
use tidegate_core::ids::{RunId, TaskId};
use tidegate_core::protocol::{NodeRow, Payload, Refusal};
use tidegate_core::state::State;
use tidegate_store::{Reads, rows_of};
pub use tree::{Frame, draw};
pub use view::Reused;
use view::View;
use watch::{Watch, Watched};

/// What to do about a store that is none.
const NAME_A_FILE: &str = "name one with --store PATH";
/// How long the end of a run waits for its diary.
const DIARY_PATIENCE: Duration = Duration::from_secs(2);

pub async fn run(options: args::Run, quiet: bool) -> Result<Exit, Failure> {
    let store = options.here.store.file("run", NAME_A_FILE)?;
    let (target, document) = match &options.file {
        Some(file) if !options.resume => (Target::New(Box::new(Prepared::read(file, &options)?)), None),
        Some(file) => {
            let document = prepare::document(file)?;
            let chosen = prepare::choose(&document, file, &options)?;
            (Target::left(&Wanted::Of(chosen.name()), store)?, Some(document))
        }
        None => (Target::left(&Wanted::Any, store)?, None),
    };
    carry_out(target, document, &options.here, store, quiet).await
}

/// Finishes what was left open. What the file says about actions and limits holds from now on.
pub async fn resume(id: RunId, file: Option<&Path>, here: &args::Here, quiet: bool) -> Result<Exit, Failure> {
    let store = here.store.file("runs resume", NAME_A_FILE)?;
    let document = file.map(prepare::document).transpose()?;
    carry_out(Target::left(&Wanted::This(id), store)?, document, here, store, quiet).await
}

/// Does again what has ended. What the file says about actions and limits holds from now on.
pub async fn retry(past: Past, file: Option<&Path>, here: &args::Here, quiet: bool) -> Result<Exit, Failure> {
    let store = here.store.file("runs retry", NAME_A_FILE)?;
    let document = file.map(prepare::document).transpose()?;
    carry_out(Target::Past(Box::new(past)), document, here, store, quiet).await
}

async fn carry_out(
    target: Target,
    document: Option<Document>,
    here: &args::Here,
    store: &args::Store,
    quiet: bool,
) -> Result<Exit, Failure> {
    let mut interrupts = Interrupts::listen()?;
    let backlog = Arc::new(Backlog::default());
    make_directory(&store.path)?;
    let session = match &target {
        Target::New(_) | Target::Past(_) => Session::begin(&store.path)?,
        Target::Left(left) => Session::resume(&store.path, left.id, left.queue.as_ref())?,
    };
    let (recorder, diary) = Recorder::start(&store.path);
    let opening = Local::open(&store.path, document, here, session, (backlog.clone(), recorder.clone()));
    let mut local = tokio::select! {
        local = opening => local?,
        () = interrupts.next() => return Ok(Exit::Interrupted),
        never = local::say_if_late() => match never {},
    };
    let (entries, events) = (local.tide.entries(), local.tide.events());
    let begun = tokio::select! {
        begun = begin(target, &mut local, store, quiet) => begun?,
        () = interrupts.next() => return Ok(Exit::Interrupted),
    };
    let Open { id, name, width, view, .. } = begun;
    let node = view.root;
    backlog.keep_only(id);
    let events = match last_position(&store.path, id) {
        Some(last) => events.after(last),
        None => events,
    };
    let noted = tokio::spawn(keep_events(events, id, recorder));
    let swept = tokio::task::spawn_blocking({
        let path = store.path.clone();
        // What cannot be looked at now is looked at with the next run.
        move || drop(remove_old_orphans(&path))
    });
    let show = Show::choose(quiet, name.as_str(), width, id);
    let (told, outage) = (Default::default(), local.tide.engine().outage());
    let (behind, end_unheard) = (false, false);
    let watch = Watch { view, show, entries, backlog, store, told, outage, behind, end_unheard };
    let watched = watch.until_ended(&mut local, &mut interrupts).await?;
    let ended =
        local.reader.ended(TaskId::node(node)).map_err(|error| Failure::store(&error, &store.path))?;
    // Others' work is handed back now; who cannot wait for that interrupts again.
    let finish = async {
        let _ = tokio::time::timeout(DIARY_PATIENCE, noted).await;
        let _ = tokio::time::timeout(DIARY_PATIENCE, swept).await;
        local.shut_down().await;
        let written = tokio::task::spawn_blocking(move || diary.join());
        let _ = tokio::time::timeout(DIARY_PATIENCE, written).await;
    };
    tokio::select! {
        () = finish => {}
        () = interrupts.next() => return Ok(Exit::Interrupted),
    }
    let Watched { state, interrupted } = watched;
    let (output, error) = ended.map(|ended| (ended.output, ended.error)).unwrap_or_default();
    if state == State::Succeeded {
        outputs(output.as_ref(), here.output)?;
    }
    conclude(id, state, error, interrupted)
}

/// What is to be watched to its end.
enum Target {
    New(Box<Prepared>),
    Left(Box<Open>),
    Past(Box<Past>),
}

impl Target {
    fn left(wanted: &Wanted, store: &args::Store) -> Result<Target, Failure> {
        Ok(Target::Left(Box::new(Open::newest(wanted, &store.path)?)))
    }
}

/// What has ended and is to be done again.
pub struct Past {
    pub row: NodeRow,
    pub from_start: bool,
}

/// Submits what is new, and tells what else there is. A store that cannot be written now ends this at once: nothing
/// has begun, so nothing is lost, and whoever called decides whether to wait. Once a run has begun, it is worth
/// waiting for.
async fn begin(target: Target, local: &mut Local, store: &args::Store, quiet: bool) -> Result<Open, Failure> {
    let path = &store.path;
    let snapshot = local.reader.load().map_err(|error| Failure::store(&error, path))?.snapshot;
    let mut others: Vec<RunId> = leftover::left_open(&snapshot, path).map(|(id, _)| id).collect();
    let meant = match &target {
        Target::New(_) => None,
        Target::Left(left) => Some(left.id),
        Target::Past(past) => past.row.body.id(),
    };
    let is_left = |run: &RunId| others.contains(run);
    let [is_left, is_newest] = [meant.as_ref().is_some_and(is_left), meant.as_ref() == others.last()];
    others.retain(|id| Some(*id) != meant);
    let resume = store.resume();
    if !quiet && !others.is_empty() {
        say(format!("note: {} not finished; `{resume}` finishes the newest", unfinished(&others)));
    }
    let begun = match target {
        Target::New(prepared) => submit(*prepared, local).await,
        Target::Left(mut left) => {
            // What happened since it was found, and before its entries were listened to.
            let rows = rows_of(&mut local.reader, left.view.root);
            left.view.take_in(&rows.map_err(|error| Failure::store(&error, path))?);
            left.view.reload(&snapshot);
            left.learn(&snapshot.declared);
            return Ok(*left);
        }
        Target::Past(past) => {
            let open = Open::seen(&snapshot.declared, std::slice::from_ref(&past.row));
            submit_again(&past, open.ok_or_else(|| no_definition(path))?, local).await
        }
    };
    begun.map_err(|error| {
        let failure = Failure::engine(&error, path);
        match (&error, others.as_slice()) {
            (Error::Refused(Refusal::Busy { .. }), [.., newest]) => {
                failure.help(format!("{newest} was left open in this store; `{resume}` finishes it"))
            }
            (Error::Refused(Refusal::StillOpen(run)), _) => {
                let first = match (is_left, is_newest) {
                    (true, true) => format!("finish it with `{resume}`, or "),
                    (true, false) => format!("finish it with `{resume}`, after those that are newer, or "),
                    (false, _) => "wait for its end, or ".to_owned(),
                };
                failure.help(format!("{first}end it with `tidegate runs cancel {run}`"))
            }
            (Error::Refused(Refusal::NothingToRetry(_)), _) => {
                failure.help("repeat all of it with --from-start")
            }
            _ => failure,
        }
    })
}

async fn submit(prepared: Prepared, local: &Local) -> Result<Open, Error> {
    let Prepared { document, chosen, inputs, tags, priority } = prepared;
    let (flows, actions) = (document.flows.clone(), document.actions.clone());
    local.tide.define(document);
    let submit = local.tide.submit(chosen.name().clone(), &inputs).priority(priority);
    let submit = submit.queue(local.session.name.clone());
    let submit = tags.iter().fold(submit, |submit, (tag, value)| submit.tag(&**tag, &**value));
    let run = submit.await?;
    let (id, node) = (run.id(), run.task().node);
    Ok(match &chosen {
        Chosen::Flow(flow) => Open::run(id, flow, View::new(&flows, &actions, node)),
        Chosen::Action(action) => Open::job(id, action, node),
    })
}

/// It is made of what the old one was made of.
async fn submit_again(past: &Past, old: Open, local: &Local) -> Result<Open, Error> {
    let retry = local.tide.retry(old.id).queue(local.session.name.clone());
    let run = if past.from_start { retry.from_start() } else { retry }.await?;
    Ok(old.again(run.id(), run.task().node))
}

fn unfinished(runs: &[RunId]) -> String {
    match runs {
        [run] => format!("{run} of this store is"),
        [first, ..] => format!("{} runs of this store ({first} and others) are", runs.len()),
        [] => String::new(),
    }
}

/// The run's outputs on stdout.
fn outputs(output: Option<&Payload>, form: args::Output) -> Result<(), Failure> {
    let read = |output: &Payload| serde_json::from_slice::<Json>(output.bytes()).ok();
    let values = output.and_then(read).unwrap_or_else(|| Json::Object(Map::new()));
    match form {
        args::Output::Json => print(values),
        args::Output::Text => outputs_text(&values),
    }
}

/// A line for each output; what goes on stands below where it began.
pub fn outputs_text(values: &Json) -> Result<(), Failure> {
    let Json::Object(values) = values else { return Ok(()) };
    let width = values.keys().map(|name| name.chars().count()).max().unwrap_or(0);
    for (name, value) in values {
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
        State::Cancelled if interrupted => ("cancelled", "was cancelled".to_owned()),
        State::Cancelled => ("cancelled", "was cancelled".to_owned()),
        State::TimedOut => ("timed-out", "timed out".to_owned()),
        state => ("failed", state_of(state)),
    };
    // What was cancelled with the run is not what went wrong with it.
    let error = error.filter(|_| state != State::Cancelled);
    let why = error.map(|error| format!(": {error}")).unwrap_or_default();
    Err(Failure::new(code, format!("{id} {verb}{why}")).exit(exit))
}
