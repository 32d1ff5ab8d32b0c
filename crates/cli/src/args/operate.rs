//! What operators can type: everything here asks a server.

use super::served::ServerAddress;
use super::{Place, place, span};
use clap::{Args, Subcommand, ValueEnum};
use tidegate_core::time::Span;

/// How what was read is shown.
#[derive(Args, Clone, Debug)]
pub struct Shown {
    /// A table, with tabs where nobody looks at it; or everything, for programs.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,
    /// Again every second, until interrupted.
    #[arg(long)]
    pub watch: bool,
    #[command(flatten)]
    pub server: ServerAddress,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum Form {
    Table,
    Json,
    /// A line for each of them.
    Jsonl,
    Yaml,
}

#[derive(Args, Debug)]
pub struct Queue {
    /// Only of this flow or action.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Only what this limit keeps waiting, such as `pool:database`.
    #[arg(long, value_name = "LIMIT")]
    pub limit: Option<String>,
    /// Only this run and what is in it.
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// How many to show.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub most: u32,
    #[command(flatten)]
    pub shown: Shown,
}

#[derive(Args, Debug)]
pub struct Limits {
    #[command(subcommand)]
    pub command: LimitsCommand,
}

#[derive(Subcommand, Debug)]
pub enum LimitsCommand {
    /// Limits that were declared, set or are in use: how much of each is taken, and how many wait for it.
    List(LimitsList),
    /// One limit, who has it, and who waits for it.
    Show(LimitsShow),
    /// Say how many units there are, or how many starts a rate or quota allows, whatever was declared. What runs goes on.
    Set(LimitsSet),
    /// Take back what was set: what was declared holds.
    Reset(LimitsChange),
    /// Grant nothing more of it. What runs goes on.
    Pause(LimitsChange),
    /// Grant again.
    Resume(LimitsChange),
}

#[derive(Args, Debug)]
pub struct LimitsList {
    /// Only pools.
    #[arg(long)]
    pub pools: bool,
    #[command(flatten)]
    pub shown: Shown,
}

#[derive(Args, Debug)]
pub struct LimitsShow {
    /// As `limits list` calls it: `pool:database`, `action:etl.load`, `runs`.
    pub limit: String,
    #[command(flatten)]
    pub shown: Shown,
}

#[derive(Args, Debug)]
pub struct LimitsSet {
    #[command(flatten)]
    pub change: LimitsChange,
    /// So many.
    pub capacity: u32,
    /// What was declared comes back after so long: `30m`, `2h`.
    #[arg(long = "for", value_name = "SPAN")]
    pub lasting: Option<String>,
}

#[derive(Args, Debug)]
pub struct LimitsChange {
    /// As `limits list` calls it: `pool:database`, `action:etl.load`, `runs`.
    pub limit: String,
    #[command(flatten)]
    pub server: ServerAddress,
}

#[derive(Args, Debug)]
pub struct Actions {
    #[command(subcommand)]
    pub command: ActionsCommand,
}

#[derive(Subcommand, Debug)]
pub enum ActionsCommand {
    /// Actions that were declared.
    List(Shown),
    /// What waits, runs and has ended of one, and how long it waited for limits and for workers, since the server that leads
    /// began to.
    Stats(ActionsStats),
}

#[derive(Args, Debug)]
pub struct ActionsStats {
    /// Of an action or a flow; of a step without an action, FLOW/STEP.
    pub name: String,
    #[command(flatten)]
    pub shown: Shown,
}

#[derive(Args, Debug)]
pub struct Audit {
    /// How many to show.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub most: u32,
    #[command(flatten)]
    pub shown: Shown,
}

#[derive(Args, Debug)]
pub struct Token {
    #[command(subcommand)]
    pub command: TokenCommand,
}

#[derive(Subcommand, Debug)]
pub enum TokenCommand {
    /// Make a token, and print it: it is shown this once, and only its hash is kept.
    Create(TokenCreate),
    /// Tokens that were made and not revoked.
    List(Shown),
    /// Make a token worthless, at every server within seconds.
    Revoke(TokenRevoke),
}

#[derive(Args, Debug)]
pub struct TokenCreate {
    /// Whom or what it is for; what it changes is written down with this name.
    pub name: String,
    /// What it is for; may be given many times.
    #[arg(long, value_name = "SCOPE", required = true, value_parser = ["read", "run", "define", "operate", "admin"])]
    pub scope: Vec<String>,
    /// It is worth nothing after so long: `90d`.
    #[arg(long = "for", value_name = "SPAN", value_parser = span)]
    pub lasting: Option<Span>,
    /// Make it in this store, without asking a server: a file, or postgres://USER:PASSWORD@HOST/DATABASE.
    #[arg(long, value_name = "PATH|URL", value_parser = place)]
    pub store: Option<Place>,
    #[command(flatten)]
    pub server: ServerAddress,
}

#[derive(Args, Debug)]
pub struct TokenRevoke {
    /// As `token list` calls it.
    pub id: String,
    #[command(flatten)]
    pub server: ServerAddress,
}

#[derive(Args, Debug)]
pub struct Workers {
    #[command(subcommand)]
    pub command: WorkersCommand,
}

#[derive(Subcommand, Debug)]
pub enum WorkersCommand {
    /// Workers that are known: what each offers, what it has, and when it was last heard of.
    List(WorkersList),
}

#[derive(Args, Debug)]
pub struct WorkersList {
    #[command(flatten)]
    pub shown: Shown,
}
