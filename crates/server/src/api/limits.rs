//! Limits, pools among them: what is in force, who has it, and an operator's word about it.

use super::page::{self, Page};
use super::queue::WaitingView;
use super::tasks::HolderView;
use super::{duration, time};
use crate::access::Caller;
use crate::app::App;
use crate::extract::{Ask, Body, Named};
use crate::problem::Problem;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use tidegate::{Error, LimitKey, LimitValue};
use tidegate_core::Bound;
use tidegate_core::explain::describe;
use tidegate_core::overview::{LimitView, LimitsWanted};
use utoipa::{IntoParams, ToSchema};

/// A limit as it is now.
#[derive(Serialize, ToSchema)]
pub struct Limit {
    /// As every route takes it.
    #[schema(example = "pool:database")]
    limit: String,
    /// As people call it.
    #[schema(example = "pool database")]
    called: String,
    /// `units`, `rate` or `quota`.
    kind: &'static str,
    /// What is in force: units at once, or starts in the time of a rate or quota.
    capacity: u64,
    /// Of a rate or quota: in how long.
    per: Option<String>,
    /// Units that are held; of a rate or quota, what was taken of it.
    used: u64,
    /// Tasks that it keeps waiting.
    waiting: u64,
    paused: bool,
    /// Where it was declared: file and line.
    declared_at: Option<String>,
    /// What was declared, if that is a number.
    declared: Option<u64>,
    /// What an operator said instead.
    set: Option<SetView>,
}

#[derive(Serialize, ToSchema)]
pub struct SetView {
    by: String,
    at: String,
    /// When it ends by itself.
    until: Option<String>,
}

/// A limit with those who have it and those whom it keeps waiting: the first of them.
#[derive(Serialize, ToSchema)]
pub struct LimitDetail {
    #[serde(flatten)]
    limit: Limit,
    held_by: Vec<HolderView>,
    waiters: Vec<WaitingView>,
}

impl Limit {
    fn of(view: &LimitView) -> Limit {
        let (kind, capacity, per) = match &view.bound {
            Bound::Units(units) => ("units", *units, None),
            Bound::Rate(rate) => ("rate", u64::from(rate.limit), Some(rate.per.to_string())),
            Bound::Quota(quota) => ("quota", u64::from(quota.limit), Some(quota.window.as_str().to_owned())),
            Bound::Workers(_) => ("workers", 0, None),
        };
        Limit {
            limit: view.key.to_string(),
            called: describe(&view.key),
            kind,
            capacity,
            per,
            used: view.used,
            waiting: view.waiting,
            paused: view.paused,
            declared_at: view.origin.file.is_some().then(|| view.origin.to_string()),
            declared: view.declared,
            set: view.set.as_ref().map(|set| SetView {
                by: set.by.to_string(),
                at: time(set.at),
                until: set.until.map(time),
            }),
        }
    }

    /// Changes with everything that an operator may have meant to change.
    fn tag(&self) -> String {
        let set = self.set.as_ref().map(|set| format!("{}-{}", set.at, set.by)).unwrap_or_default();
        format!("\"{}-{}-{}\"", self.capacity, self.paused, set)
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct LimitsAsked {
    /// Only pools.
    #[serde(default)]
    pools: bool,
    /// How many, at most 1,000.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<u32>,
    /// From an earlier page.
    cursor: Option<String>,
}

/// Limits that were declared, set or are in use, by name.
#[utoipa::path(
    get, path = "/api/v1/limits", tag = "limits", params(LimitsAsked),
    responses(
        (status = OK, description = "A page of them.", body = Page<Limit>),
        (status = UNPROCESSABLE_ENTITY, description = "There is no such page.", body = Problem),
    )
)]
pub async fn list(
    State(app): State<App>,
    Ask(asked): Ask<LimitsAsked>,
) -> Result<Json<Page<Limit>>, Problem> {
    let after = asked.cursor.as_deref().map(parse).transpose()?;
    let most = page::size(asked.limit);
    let wanted = LimitsWanted { only_pools: asked.pools, after, most };
    let limits = app.tide.engine().limits(wanted).await.map_err(Error::from)?;
    let items: Vec<Limit> = limits.iter().map(Limit::of).collect();
    let next = items.last().filter(|_| items.len() == most as usize).map(|last| last.limit.clone());
    Ok(Json(Page { items, next }))
}

fn parse(text: &str) -> Result<LimitKey, Problem> {
    Ok(text.parse::<LimitKey>().map_err(Error::from)?)
}

async fn look(app: &App, key: &LimitKey) -> Result<tidegate_core::overview::LimitDetail, Problem> {
    let found = app.tide.engine().limit(key.clone()).await.map_err(Error::from)?;
    found.ok_or_else(|| Problem::not_found(format!("nothing has declared or uses the limit `{key}`")))
}

/// One limit, with who has it and who waits for it.
#[utoipa::path(
    get, path = "/api/v1/limits/{limit}", tag = "limits",
    params(("limit" = String, Path, description = "`pool:database`, `action:etl.load`, `runs`, …, percent-encoded.")),
    responses(
        (status = OK, description = "The limit as it is now; its `ETag` is for `If-Match`.", body = LimitDetail),
        (status = NOT_FOUND, description = "There is no such limit.", body = Problem),
        (status = UNPROCESSABLE_ENTITY, description = "This is not the name of a limit.", body = Problem),
    )
)]
pub async fn get(State(app): State<App>, Named(limit): Named<String>) -> Result<Response, Problem> {
    let detail = look(&app, &parse(&limit)?).await?;
    let limit = Limit::of(&detail.limit);
    let tag = HeaderValue::from_str(&limit.tag()).unwrap_or(HeaderValue::from_static("\"\""));
    let held_by = detail.holders.iter().map(HolderView::of).collect();
    let waiters = detail.waiters.iter().map(WaitingView::of).collect();
    let mut response = Json(LimitDetail { limit, held_by, waiters }).into_response();
    response.headers_mut().insert(header::ETAG, tag);
    Ok(response)
}

/// An operator's word about a limit.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLimit {
    /// So much is in force from now on.
    #[serde(default)]
    capacity: Option<u32>,
    /// Nothing more is granted while it is paused.
    #[serde(default)]
    paused: Option<bool>,
    /// What was declared comes back after so long.
    #[serde(default)]
    #[schema(example = "2h")]
    lasting: Option<String>,
}

/// Set a limit, or pause it. What runs goes on.
#[utoipa::path(
    put, path = "/api/v1/limits/{limit}", tag = "limits", request_body = NewLimit,
    params(
        ("limit" = String, Path, description = "`pool:database`, `action:etl.load`, `runs`, …, percent-encoded."),
        ("If-Match" = Option<String>, Header, description = "Only if it is still as it was when this `ETag` was given."),
    ),
    responses(
        (status = NO_CONTENT, description = "It is so now."),
        (status = NOT_FOUND, description = "There is no such pool.", body = Problem),
        (status = PRECONDITION_FAILED, description = "Somebody has changed it since.", body = Problem),
        (status = UNPROCESSABLE_ENTITY, description = "It cannot be given such a value.", body = Problem),
    )
)]
pub async fn set(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(limit): Named<String>,
    headers: HeaderMap,
    Body(new): Body<NewLimit>,
) -> Result<StatusCode, Problem> {
    expect_unchanged(&app, &limit, &headers).await?;
    let lasting = new.lasting.as_deref().map(duration).transpose()?;
    if lasting.is_some() && new.capacity.is_none() {
        return Err(Problem::invalid("`lasting` goes with `capacity`"));
    }
    let limits = app.of(&caller).limits();
    if let Some(capacity) = new.capacity {
        let set = limits.set(&limit, LimitValue::Units(capacity));
        match lasting {
            Some(span) => set.lasting(span).await?,
            None => set.await?,
        }
    }
    match new.paused {
        Some(true) => limits.pause(&limit).await?,
        Some(false) => limits.resume(&limit).await?,
        None => {}
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Take an operator's word back: what was declared holds.
#[utoipa::path(
    delete, path = "/api/v1/limits/{limit}", tag = "limits",
    params(
        ("limit" = String, Path, description = "`pool:database`, `action:etl.load`, `runs`, …, percent-encoded."),
        ("If-Match" = Option<String>, Header, description = "Only if it is still as it was when this `ETag` was given."),
    ),
    responses(
        (status = NO_CONTENT, description = "It is so now."),
        (status = NOT_FOUND, description = "There is no such pool.", body = Problem),
        (status = PRECONDITION_FAILED, description = "Somebody has changed it since.", body = Problem),
    )
)]
pub async fn reset(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(limit): Named<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    expect_unchanged(&app, &limit, &headers).await?;
    app.of(&caller).limits().reset(&limit).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn expect_unchanged(app: &App, limit: &str, headers: &HeaderMap) -> Result<(), Problem> {
    let key = parse(limit)?;
    let Some(expected) = headers.get(header::IF_MATCH) else { return Ok(()) };
    let now = Limit::of(&look(app, &key).await?.limit).tag();
    match expected.to_str() {
        Ok("*") => Ok(()),
        Ok(expected) if expected == now => Ok(()),
        _ => {
            let detail = "somebody has changed the limit since";
            Err(Problem::new(StatusCode::PRECONDITION_FAILED, "changed", detail).help("look at it again"))
        }
    }
}
