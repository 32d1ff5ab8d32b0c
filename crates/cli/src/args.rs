//! What can be typed.

mod operate;
mod served;

pub use operate::*;
pub use served::*;

use crate::failure::{Exit, Failure};
use anstream::ColorChoice;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use tidegate_core::ids::RunId;
use tidegate_core::model::OWN_TAGS;
use tidegate_core::state::State;
use tidegate_core::time::Span;
use tidegate_worker::IO_SLOTS;

/// The hidden first argument by which this binary becomes the guardian of processes.
pub const GUARDIAN: &str = "guardian";

/// Where the state is kept unless told otherwise.
const STORE: &str = "./.tidegate/state.db";
/// Runs flows: a limit is never exceeded, work never stalls, every wait can be explained.
#[derive(Parser, Debug)]
#[command(name = "tidegate", version, propagate_version = true, max_term_width = 100)]
pub struct Arguments {
    /// When to use colours; NO_COLOR is heeded too.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", value_parser = color)]
    pub color: ColorChoice,
    /// Say only what went wrong.
    #[arg(short, long, global = true)]
    pub quiet: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a flow or an action here and watch it; the exit code tells how it ended.
    ///
    /// Ctrl-C or SIGTERM cancels the run and waits for its end, a second one kills what runs. A run whose process was
    /// killed stays open, and --resume finishes it.
    Run(Run),
    /// Serve the flows and actions of a directory here, for development: an engine, a worker, and HTTP on one port.
    ///
    /// Files are read again when they change. Unless there is a TIDEGATE_TOKEN, it needs none and is reached from this machine
    /// only.
    Dev(Dev),
    /// Serve a store over HTTP: submissions, questions, limits, events. The description of all of it is at /docs.
    Serve(Serve),
    /// Declare to a server what stands in the files of a directory, and say what is different from before.
    Apply(Apply),
    /// Submit a flow or an action to a server; prints the id of the run.
    Submit(Submit),
    /// Carry out here what a server hands out: processes, requests, statements.
    ///
    /// Ctrl-C or SIGTERM hands back what runs, unharmed, and leaves; a second one does not wait. A token goes in TIDEGATE_TOKEN.
    Worker(Worker),
    /// List what waits at a server, in the order in which it is looked at, and for what.
    Queue(Queue),
    /// Look at the limits and pools of a server, and change them while it runs.
    Limits(Limits),
    /// Look at the actions of a server: which there are, and how each fares.
    Actions(Actions),
    /// See who changed what at a server, and when.
    Audit(Audit),
    /// Say who may ask a server, and for what.
    Token(Token),
    /// Look at the workers of a server.
    Workers(Workers),
    /// Look at what was submitted, cancel it, also while it runs, and retry it.
    Runs(Runs),
    /// Say everything that is wrong with files.
    Check(Check),
    /// Show what a flow would do: its steps, what each waits for, and the limits it meets.
    Plan(Plan),
    /// Print a JSON Schema of the files, for editors.
    ///
    /// With `tidegate schema > tidegate.schema.json`, a first line `# yaml-language-server: $schema=tidegate.schema.json`
    /// makes most editors explain fields, complete them and underline mistakes.
    Schema,
    /// Explain what a run, a step or an item waits for; without an id, list all that waits.
    Why(Why),
    /// Delete what ended long ago, before it goes by itself.
    ///
    /// Whoever works on a store deletes what succeeded after 30 days and everything else after 90, unless a program says
    /// otherwise. A run goes with its steps and items. What was submitted under a key stays for a day after its end. The file does
    /// not become smaller; the room is used again.
    Prune(Prune),
    /// Copy the store into a file, also while a run is under way.
    Backup(Backup),
    /// Print a script that completes commands and options in a shell.
    ///
    /// For example `tidegate completions bash > ~/.local/share/bash-completion/completions/tidegate`.
    Completions(Completions),
}

#[derive(Args, Debug)]
pub struct Run {
    /// The file; limits and pools are also read from a tidegate.yaml beside it, flows and actions from packs/NAME/*.yaml.
    #[arg(required_unless_present = "resume")]
    pub file: Option<PathBuf>,
    /// Submit nothing, and finish the newest run that was left open: of this store, or of the flow or action in FILE. Limits,
    /// time-outs and retries are then those of FILE.
    #[arg(long, conflicts_with_all = ["input", "inputs", "tag", "priority"])]
    pub resume: bool,
    /// Which flow of the file or a pack; the first of the file unless told otherwise.
    #[arg(long, value_name = "NAME", requires = "file")]
    pub flow: Option<String>,
    /// An action of the file or a pack, by itself; the only one of the file, if there is no flow.
    #[arg(long, value_name = "NAME", requires = "file", conflicts_with = "flow")]
    pub action: Option<String>,
    /// An input; may be given many times.
    #[arg(short, long = "input", value_name = "NAME=VALUE", value_parser = pair)]
    pub input: Vec<(String, String)>,
    /// A JSON file with inputs; what is given one by one wins.
    #[arg(long, value_name = "FILE")]
    pub inputs: Option<PathBuf>,
    /// A tag of the run; may be given many times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = tag)]
    pub tag: Vec<(String, String)>,
    /// From -100 to 100; higher starts first.
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true,
          value_parser = clap::value_parser!(i8).range(-100..=100))]
    pub priority: i8,
    #[command(flatten)]
    pub here: Here,
}

#[derive(Args, Debug)]
pub struct Completions {
    /// Which shell.
    pub shell: clap_complete::Shell,
}

/// For commands that carry out a run in this process.
#[derive(Args, Debug)]
pub struct Here {
    /// Processes at once; one a core unless told otherwise.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub slots: Option<u32>,
    /// Requests of `http` steps and statements of `sql` steps at once.
    #[arg(long, value_name = "N", default_value_t = IO_SLOTS, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub io_slots: u32,
    /// Let requests ask link-local addresses, where machines in a cloud find their own credentials.
    #[arg(long)]
    pub allow_link_local: bool,
    #[command(flatten)]
    pub store: StoreFile,
    /// How to print the outputs.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

/// For commands that work with files only. A URL is taken for what it is, so that it can be refused, and never shown.
#[derive(Args, Clone, Debug)]
pub struct StoreFile {
    /// Where the state is kept.
    #[arg(long = "store", value_name = "PATH", default_value = STORE, value_parser = place)]
    place: Place,
}

impl StoreFile {
    /// `command` is who needs a file; `help` is what to do instead.
    pub fn file(&self, command: &str, help: &str) -> Result<&Store, Failure> {
        match &self.place {
            Place::File(store) => Ok(store),
            Place::Postgres(_) => {
                let sentence = format!("`tidegate {command}` works with a store in a file");
                Err(Failure::new("no-file", sentence).exit(Exit::Invalid).help(help))
            }
        }
    }
}

impl Here {
    /// Where the state is kept.
    pub fn place(&self) -> Place {
        self.store.place.clone()
    }
}

impl StoreFile {
    /// What to do about a run whose process was killed.
    pub fn left_help(&self, what: &str, run: RunId) -> String {
        let store = match &self.place {
            Place::File(store) => store.option(),
            Place::Postgres(_) => String::new(),
        };
        format!("help: {what}: `tidegate runs resume {run}{store}`")
    }
}

/// A store in a file.
#[derive(Clone, Debug)]
pub struct Store {
    pub path: PathBuf,
}

impl Store {
    /// The path, if there is a store.
    pub fn existing(&self) -> Result<&Path, Failure> {
        if self.path.is_file() {
            return Ok(&self.path);
        }
        let failure = Failure::new("no-store", "there is no store here").at(self.path.display());
        Err(failure.exit(Exit::NotFound).help("name one with --store PATH"))
    }

    /// What to type to finish what was left open there.
    pub fn resume(&self) -> String {
        format!("tidegate run --resume{}", self.option())
    }

    /// What to add to a command that is to find it.
    pub fn option(&self) -> String {
        match self.path == Path::new(STORE) {
            true => String::new(),
            false => format!(" --store {}", self.path.display()),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum Output {
    Text,
    Json,
}

#[derive(Args, Debug)]
pub struct Check {
    /// Files, or directories with .yaml files; each is read as `run` would read it.
    #[arg(required = true, value_name = "FILE|DIR")]
    pub paths: Vec<PathBuf>,
    /// How to print what is wrong; with json, one object a line: file, line, column, code, message, help.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

#[derive(Args, Debug)]
pub struct Plan {
    /// The file, read as `run` would read it.
    pub file: PathBuf,
    /// Which flow; the first of the file unless told otherwise.
    #[arg(long, value_name = "NAME")]
    pub flow: Option<String>,
    /// An input, for tags and keys that depend on it; may be given many times.
    #[arg(short, long = "input", value_name = "NAME=VALUE", value_parser = pair)]
    pub input: Vec<(String, String)>,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

#[derive(Args, Debug)]
pub struct Runs {
    #[command(subcommand)]
    pub command: RunsCommand,
}

#[derive(Subcommand, Debug)]
pub enum RunsCommand {
    /// List runs and actions that were submitted, newest first.
    List(RunsList),
    /// Show one with its steps.
    Show(RunsShow),
    /// Print what the processes of one wrote.
    ///
    /// Lines are kept beside the store, up to 64 MiB a run, while `tidegate run` works on it.
    Logs(RunsDiary),
    /// Print what happened in one, event by event.
    Events(RunsDiary),
    /// Cancel runs, also those that another `tidegate run` is at work on.
    ///
    /// What waits ends at once, what runs is told to stop. Returns when they have ended, or after ten seconds.
    Cancel(RunsCancel),
    /// Finish here what was left open: its process was killed, and what it had finished is not repeated.
    Resume(RunsResume),
    /// Run again what has ended, here, as a new run; the exit code tells how it ended.
    ///
    /// The new run has the inputs, tags and priority of the old one, and the version of the flow that it ran on. Steps that
    /// succeeded are reused and not run again, if all that they wait for is reused too.
    Retry(RunsRetry),
}

#[derive(Args, Debug)]
pub struct RunsList {
    /// Only those in this state: scheduled, waiting, running, succeeded, failed, timed_out, cancelled, expired, refused or
    /// replaced.
    #[arg(long, value_name = "STATE", value_parser = state)]
    pub state: Option<Known>,
    /// Only those of this flow or action.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// How many.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub limit: u32,
    /// How to print them; with json, one object a line.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    #[command(flatten)]
    pub store: StoreFile,
}

#[derive(Args, Debug)]
pub struct RunsShow {
    /// The run; the beginning of its id is enough. The newest unless told otherwise.
    pub id: Option<String>,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    #[command(flatten)]
    pub store: StoreFile,
}

#[derive(Args, Debug)]
pub struct RunsCancel {
    /// The runs; the beginning of an id is enough.
    #[arg(value_name = "RUN", required_unless_present = "all")]
    pub ids: Vec<String>,
    /// Cancel everything that has not ended.
    #[arg(long, conflicts_with = "ids")]
    pub all: bool,
    /// Do not ask whether all are meant.
    #[arg(long, requires = "all")]
    pub yes: bool,
    #[command(flatten)]
    pub store: StoreFile,
}

#[derive(Args, Debug)]
pub struct RunsResume {
    /// The run; the beginning of its id is enough.
    #[arg(value_name = "RUN")]
    pub id: String,
    /// A file whose limits and pools, and time-outs and retries of actions, hold from now on; those that were read last unless
    /// told otherwise.
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub here: Here,
}

#[derive(Args, Debug)]
pub struct RunsRetry {
    /// The run; the beginning of its id is enough.
    #[arg(value_name = "RUN")]
    pub id: String,
    /// A file whose limits and pools, and time-outs and retries of actions, hold from now on; those that were read last unless
    /// told otherwise.
    pub file: Option<PathBuf>,
    /// Reuse nothing, and run every step again; also of a run that succeeded.
    #[arg(long)]
    pub from_start: bool,
    #[command(flatten)]
    pub here: Here,
}

#[derive(Args, Debug)]
pub struct RunsDiary {
    /// A run, a step of it or an item: `run_…`, `run_…/step`, `run_…/step#3`. The beginning of the run's id is enough; the
    /// newest run unless told otherwise.
    pub id: Option<String>,
    /// Go on until the run ends.
    #[arg(short, long)]
    pub follow: bool,
    /// How to print them; with json, one object a line.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    #[command(flatten)]
    pub store: StoreFile,
}

/// A state that there is.
#[derive(Clone, Copy, Debug)]
pub struct Known(pub State);

fn state(word: &str) -> Result<Known, String> {
    State::parse(word).map(Known).ok_or_else(|| "there is no such state; --help lists them".to_owned())
}

#[derive(Args, Debug)]
pub struct Why {
    /// A run, a step of it or an item: `run_…`, `run_…/step`, `run_…/step#3`. The beginning of the run's id is
    /// enough.
    pub id: Option<String>,
    #[command(flatten)]
    pub store: StoreFile,
}

#[derive(Args, Debug)]
pub struct Prune {
    /// How long ago it must have ended: `30d`, `12h`, `90m`.
    #[arg(long, value_name = "SPAN", value_parser = span, required_unless_present = "failures_older_than")]
    pub older_than: Option<Span>,
    /// The same for what did not succeed, if it differs: what failed, was cancelled, timed out or never started.
    /// `forever` deletes none of it. Without --older-than nothing else is deleted.
    #[arg(long, value_name = "SPAN", value_parser = span_or_forever)]
    pub failures_older_than: Option<Span>,
    /// Delete nothing, and say how much would go.
    #[arg(long)]
    pub dry_run: bool,
    /// Where the state is kept: a file, or postgres://USER:PASSWORD@HOST/DATABASE. There, while others may be at work,
    /// what ended less than a minute ago stays.
    #[arg(long = "store", value_name = "PATH|URL", default_value = STORE, value_parser = place)]
    pub store: Place,
}

/// A store of either kind.
#[derive(Clone, Debug)]
pub enum Place {
    File(Store),
    Postgres(String),
}

impl Place {
    /// As the library takes it.
    pub fn address(&self) -> Result<String, Failure> {
        match self {
            Place::Postgres(url) => Ok(url.clone()),
            Place::File(Store { path }) => match path.to_str() {
                Some(path) => Ok(format!("sqlite:{path}")),
                None => Err(Failure::new("store", "the store's path is not valid UTF-8").at(path.display())),
            },
        }
    }
}

fn place(text: &str) -> Result<Place, Infallible> {
    Ok(match text.split_once(':') {
        Some(("postgres" | "postgresql", _)) => Place::Postgres(text.to_owned()),
        Some(("sqlite", path)) => Place::File(Store { path: path.into() }),
        _ => Place::File(Store { path: text.into() }),
    })
}

#[derive(Args, Debug)]
pub struct Backup {
    /// The file; the copy is a store itself, for --store.
    pub file: PathBuf,
    /// Replace the file if it is there already.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub store: StoreFile,
}

fn span(text: &str) -> Result<Span, String> {
    tidegate_flow::parse_duration(text).ok_or_else(|| "write it as 30d, 12h or 90m".to_owned())
}

fn span_or_forever(text: &str) -> Result<Span, String> {
    if text == "forever" { Ok(Span::MAX) } else { span(text) }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}

fn tag(text: &str) -> Result<(String, String), String> {
    match pair(text)? {
        (tag, _) if tag.starts_with(OWN_TAGS) => {
            Err(format!("tags that begin with `{OWN_TAGS}` are Tidegate's own"))
        }
        tag => Ok(tag),
    }
}

fn color(text: &str) -> Result<ColorChoice, String> {
    match text {
        "auto" => Ok(ColorChoice::Auto),
        "always" => Ok(ColorChoice::Always),
        "never" => Ok(ColorChoice::Never),
        _ => Err("it is one of auto, always and never".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_do_not_contradict_each_other() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn pairs_have_a_name() {
        assert_eq!(pair("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert_eq!(pair("a="), Ok(("a".into(), String::new())));
        assert!(pair("=b").is_err() && pair("a").is_err());
        assert!(tag("a=b").is_ok() && tag("tidegate.queue=b").is_err());
    }
}
