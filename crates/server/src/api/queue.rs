//! What waits.

use super::{page, run_id, short, time};
use crate::app::App;
use crate::extract::Ask;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tidegate::{Error, LimitKey, Name};
use tidegate_core::overview::{QueueRow, QueueWanted};
use utoipa::{IntoParams, ToSchema};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct QueueAsked {
    /// Only of this flow or action.
    name: Option<String>,
    /// Only what this limit keeps waiting.
    #[param(example = "pool:database")]
    limit: Option<String>,
    /// Only this run and what is in it.
    run: Option<String>,
    /// How many to list, at most 1,000.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    most: Option<u32>,
}

#[derive(Serialize, ToSchema)]
pub struct QueueView {
    /// How many wait.
    waiting: u64,
    /// Those who are looked at first come first.
    items: Vec<WaitingView>,
    /// How many each limit keeps waiting.
    by_limit: BTreeMap<String, u64>,
}

#[derive(Serialize, ToSchema)]
pub struct WaitingView {
    #[schema(example = "run_01k7z0vb8nf0qvt1n1gkz6h0h5/load#3")]
    pub name: String,
    /// So many items of a loop in a row, this one included.
    pub count: u32,
    /// Its flow or action, if it has one.
    pub what: Option<String>,
    pub priority: i8,
    pub since: String,
    /// The limit that it stands under.
    pub limit: Option<String>,
    /// In a few words.
    pub waits: String,
}

impl WaitingView {
    pub fn of(row: &QueueRow) -> WaitingView {
        WaitingView {
            name: row.name.clone(),
            count: row.count,
            what: row.what.as_ref().map(Name::to_string),
            priority: row.priority,
            since: time(row.since),
            limit: row.limit.as_ref().map(LimitKey::to_string),
            waits: row.waits.clone(),
        }
    }
}

/// What waits for a limit, in the order in which it is looked at.
#[utoipa::path(
    get, path = "/api/v1/queue", tag = "queue", params(QueueAsked),
    responses(
        (status = OK, description = "What waits.", body = QueueView),
        (status = UNPROCESSABLE_ENTITY, description = "This is not the name of a limit.", body = Problem),
    )
)]
pub async fn list(State(app): State<App>, Ask(asked): Ask<QueueAsked>) -> Result<Json<QueueView>, Problem> {
    let limit = match asked.limit.as_deref() {
        Some(limit) => Some(limit.parse::<LimitKey>().map_err(Error::from)?),
        None => None,
    };
    let root = match asked.run.as_deref() {
        Some(run) => {
            let found = app.tide.engine().find(run_id(run)?).await.map_err(Error::from)?;
            Some(found.ok_or_else(|| Problem::not_found(format!("there is no run {}", short(run))))?)
        }
        None => None,
    };
    let (name, most) = (asked.name.as_deref().map(Name::new), page::size(asked.most));
    let queue =
        app.tide.engine().queue(QueueWanted { name, limit, root, most }).await.map_err(Error::from)?;
    Ok(Json(QueueView {
        waiting: queue.waiting,
        items: queue.rows.iter().map(WaitingView::of).collect(),
        by_limit: queue.by_limit.into_iter().map(|(limit, count)| (limit.to_string(), count)).collect(),
    }))
}
