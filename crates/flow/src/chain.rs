//! Chains (`do`, `repeat`): what a worker carries out one after the other, as one attempt.
//!
//! What a member does depends on what came before it, so a chain is handed over unrendered, together with the values
//! that its templates name, and whoever carries it out renders one member at a time. Who that is, and how, is not
//! known here.

mod scope;

pub use scope::Scope;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::sync::Arc;
use tidegate_core::ids::Name;
use tidegate_core::model::Retry;
use tidegate_core::time::Span;

/// Pauses inside a chain hold a slot of its worker; longer ones belong to the engine, where they hold nothing.
pub const LONGEST_PAUSE: Span = Span::minutes(1);
/// What is repeated adds this to its output: how many rounds there were.
pub const ROUNDS: &str = "rounds";

/// What a worker reads under `do`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Chain {
    /// The step or action as a whole. Its conditions, tries and time are the engine's, not the chain's.
    pub root: Arc<Member>,
    /// What the templates see besides members: `inputs`, `steps`, `item`, `index`, `run`, as far as they name them.
    pub scope: Json,
}

/// One thing that is done, perhaps several times.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Member {
    pub name: Name,
    /// One expression; if it is false the member is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    pub work: MemberWork,
    /// All rounds of one try are one thing to `timeout` and `retry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Repeat>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
}

/// What a member does. Each holds a template, except for chains inside chains.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberWork {
    Run(Json),
    Shell(Json),
    Http(Json),
    Sql(Json),
    Wait(Json),
    Do(Vec<Arc<Member>>),
}

/// Another round, as long as `condition` is true after one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Repeat {
    /// One expression.
    #[serde(rename = "while")]
    pub condition: String,
    /// Between two rounds.
    pub delay: Span,
    /// Rounds; if the condition is still true after so many, the member fails.
    pub max: u32,
}
