//! Who changed what, and when.

use super::page::{self, Page};
use super::time;
use crate::app::App;
use crate::extract::Ask;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use tidegate_core::protocol::AuditRow;
use utoipa::{IntoParams, ToSchema};

#[derive(Serialize, ToSchema)]
pub struct Change {
    at: String,
    /// The name of the token that was shown; `local` where none was needed.
    by: String,
    /// `limit.set`, `run.cancel`, `definitions.apply`, …
    #[schema(example = "limit.set")]
    what: String,
    /// The limit, run, files, worker or token.
    #[schema(example = "pool:database")]
    about: String,
    more: Option<String>,
}

impl From<AuditRow> for Change {
    fn from(row: AuditRow) -> Change {
        Change { at: time(row.at), by: row.by.to_string(), what: row.what, about: row.about, more: row.more }
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// How many, at most 1,000.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<u32>,
    /// From an earlier page.
    cursor: Option<String>,
}

/// Changes of limits, definitions, tokens and runs, newest first. They are kept for 400 days.
#[utoipa::path(
    get, path = "/api/v1/audit", tag = "audit", params(Asked),
    responses(
        (status = OK, description = "A page of them.", body = Page<Change>),
        (status = UNPROCESSABLE_ENTITY, description = "There is no such page.", body = Problem),
    )
)]
pub async fn list(State(app): State<App>, Ask(asked): Ask<Asked>) -> Result<Json<Page<Change>>, Problem> {
    let number = |text: &String| text.parse::<u64>().map_err(|_| Problem::invalid("there is no such page"));
    let before = asked.cursor.as_ref().map(number).transpose()?;
    let most = page::size(asked.limit);
    let rows = app.read(move |store| store.audit(before, most)).await?;
    let next = rows.last().filter(|_| rows.len() == most as usize).map(|last| last.number.to_string());
    Ok(Json(Page { items: rows.into_iter().map(Change::from).collect(), next }))
}
