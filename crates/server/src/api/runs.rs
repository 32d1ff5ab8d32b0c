//! Runs of flows, and actions by themselves: submitted, looked at, ended, done again.

use super::page::{self, Page};
use super::steps::{StepView, steps};
use super::{duration, run_id, short, time};
use crate::access::Caller;
use crate::app::App;
use crate::extract::{Ask, Body, Named};
use crate::problem::Problem;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};
use tidegate::{Name, RunId, State as Status, TaskId};
use tidegate_core::model::RETRY_TAG;
use tidegate_core::overview::Kind;
use tidegate_core::protocol::{NodeRow, Payload};
use tidegate_core::suggest::nearest;
use tidegate_engine::Definition;
use tidegate_store::{Sought, Wanted, rows_of};
use utoipa::{IntoParams, ToSchema};

/// How long a caller is kept waiting for the end of a run.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Under which a caller says that it may have sent the same before.
static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What is to be done.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRun {
    /// Of a flow or an action.
    #[schema(example = "nightly", max_length = 255)]
    name: String,
    /// As the flow or action declares them.
    #[serde(default)]
    inputs: Option<Value>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    /// Higher starts first.
    #[serde(default)]
    #[schema(minimum = -100, maximum = 100)]
    priority: i8,
    /// Not before so much time has passed.
    #[serde(default)]
    #[schema(example = "90s")]
    delay: Option<String>,
    /// Not before this time.
    #[serde(default)]
    #[schema(format = DateTime)]
    at: Option<String>,
}

/// Something that was submitted.
#[derive(Serialize, ToSchema)]
pub struct RunView {
    #[schema(example = "run_01k7z0vb8nf0qvt1n1gkz6h0h5")]
    id: String,
    /// Of its flow or action.
    name: String,
    /// `scheduled`, `waiting`, `running`, or how it ended.
    #[schema(example = "running")]
    state: &'static str,
    priority: i8,
    tags: BTreeMap<String, String>,
    /// When it was accepted.
    accepted: String,
    started: Option<String>,
    ended: Option<String>,
    error: Option<String>,
    /// The run that it does again.
    retry_of: Option<String>,
}

impl RunView {
    /// Of what was submitted; nothing for a part of it.
    fn of(row: &NodeRow) -> Option<RunView> {
        let tags = row.body.tags();
        let retry_of = tags.iter().find(|(tag, _)| tag.as_str() == RETRY_TAG);
        Some(RunView {
            id: row.body.id()?.to_string(),
            name: row.body.name()?.to_string(),
            state: row.life.state.as_str(),
            priority: row.priority,
            tags: tags.iter().map(|(tag, value)| (tag.to_string(), value.to_string())).collect(),
            accepted: time(row.accepted),
            started: row.life.started.map(time),
            ended: row.life.ended.map(time),
            error: row.life.error.clone(),
            retry_of: retry_of.map(|(_, run)| run.to_string()),
        })
    }
}

/// A run with everything in it.
#[derive(Serialize, ToSchema)]
pub struct RunDetail {
    #[serde(flatten)]
    run: RunView,
    inputs: Value,
    /// Of a run that succeeded.
    output: Value,
    /// Those that have begun, and those of flows inside them.
    steps: Vec<StepView>,
}

/// The id of what was accepted.
#[derive(Serialize, ToSchema)]
pub struct Accepted {
    #[schema(example = "run_01k7z0vb8nf0qvt1n1gkz6h0h5")]
    id: String,
}

/// Submit a run of a flow, or an action by itself.
///
/// It is durable when this is answered. With an `Idempotency-Key` the same content is accepted once, and gives the same id
/// again; other content under the same key is refused.
#[utoipa::path(
    post, path = "/api/v1/runs", tag = "runs", request_body = NewRun,
    params(("Idempotency-Key" = Option<String>, Header, description = "At most 255 bytes.")),
    responses(
        (status = CREATED, description = "It was accepted.", body = Accepted),
        (status = NOT_FOUND, description = "There is no such flow or action.", body = Problem),
        (status = CONFLICT, description = "The key was used for something else.", body = Problem),
        (status = UNPROCESSABLE_ENTITY, description = "Its inputs are not what was declared.", body = Problem),
        (status = TOO_MANY_REQUESTS, description = "A limit is reached that says `reject`.", body = Problem),
    )
)]
pub async fn submit(
    State(app): State<App>,
    headers: HeaderMap,
    Body(new): Body<NewRun>,
) -> Result<impl IntoResponse, Problem> {
    let name = Name::new(&new.name);
    expect_known(&app, &name).await?;
    let inputs = new.inputs.unwrap_or_else(|| Value::Object(Default::default()));
    let mut submit = app.tide.submit(name, &inputs).priority(new.priority);
    for (tag, value) in &new.tags {
        submit = submit.tag(tag.as_str(), value.as_str());
    }
    if let Some(key) = headers.get(&IDEMPOTENCY_KEY) {
        let key = key.to_str().map_err(|_| Problem::invalid("an idempotency key is plain text"))?;
        submit = submit.key(key);
    }
    submit = match (&new.delay, &new.at) {
        (None, None) => submit,
        (Some(delay), None) => submit.delay(duration(delay)?),
        (None, Some(at)) => submit.at(moment(at)?),
        (Some(_), Some(_)) => return Err(Problem::invalid("say `delay` or `at`, not both")),
    };
    let id = submit.await?.id().to_string();
    let location = [(header::LOCATION, format!("/api/v1/runs/{id}"))];
    Ok((StatusCode::CREATED, location, Json(Accepted { id })))
}

/// A typing error is better found now than by waiting for a worker that never comes.
async fn expect_known(app: &App, name: &Name) -> Result<(), Problem> {
    let engine = app.tide.engine();
    if !matches!(engine.definition(name.clone()).await.map_err(tidegate::Error::from)?, Definition::Unknown) {
        return Ok(());
    }
    let workers = engine.workers().await.map_err(tidegate::Error::from)?;
    let functions = workers.iter().flat_map(|worker| &worker.skills).flat_map(|skills| &skills.functions);
    if functions.clone().any(|function| function == name) {
        return Ok(());
    }
    let mut known: Vec<String> = functions.map(Name::to_string).collect();
    for kind in [Kind::Flow, Kind::Action] {
        let declared = engine.definitions(kind).await.map_err(tidegate::Error::from)?;
        known.extend(declared.iter().map(|definition| definition.name.to_string()));
    }
    let problem = Problem::not_found(format!("there is no flow or action `{}`", short(name.as_str())));
    Err(match nearest(name.as_str(), known.iter().map(String::as_str)) {
        Some(meant) => problem.help(format!("did you mean `{meant}`?")),
        None => problem,
    })
}

fn moment(text: &str) -> Result<SystemTime, Problem> {
    let at: jiff::Timestamp = text.parse().map_err(|_| {
        Problem::invalid(format!("`{}` is not a time such as `2030-01-31T08:00:00Z`", short(text)))
    })?;
    Ok(at.into())
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct RunsWanted {
    /// Only those in this state.
    #[param(example = "failed")]
    state: Option<String>,
    /// Only those of this flow or action.
    name: Option<String>,
    /// How many, at most 1,000.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<u32>,
    /// From an earlier page.
    cursor: Option<String>,
}

/// List what was submitted, newest first.
#[utoipa::path(
    get, path = "/api/v1/runs", tag = "runs", params(RunsWanted),
    responses(
        (status = OK, description = "A page of them.", body = Page<RunView>),
        (status = UNPROCESSABLE_ENTITY, description = "There is no such state or page.", body = Problem),
    )
)]
pub async fn list(
    State(app): State<App>,
    Ask(wanted): Ask<RunsWanted>,
) -> Result<Json<Page<RunView>>, Problem> {
    let state = match wanted.state.as_deref() {
        None => None,
        Some(word) => Some(
            Status::parse(word)
                .ok_or_else(|| Problem::invalid(format!("there is no state `{}`", short(word))))?,
        ),
    };
    let before = match wanted.cursor.as_deref() {
        None => None,
        Some(text) => {
            let node = text.parse().map_err(|_| Problem::invalid("this cursor is of no earlier page"))?;
            Some(tidegate_core::ids::NodeId(node))
        }
    };
    let most = page::size(wanted.limit);
    let asked = Wanted { before, state, name: wanted.name.as_deref().map(Name::new) };
    // One more, to know whether there is a next page.
    let mut rows = app.read(move |store| store.submitted(&asked, most + 1)).await?;
    let is_last = rows.len() <= most as usize;
    rows.truncate(most as usize);
    let next = rows.last().filter(|_| !is_last).map(|row| row.node.0.to_string());
    Ok(Json(Page { items: rows.iter().filter_map(RunView::of).collect(), next }))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Patience {
    /// Answer when it has ended, or after so long: at most `60s`.
    #[param(example = "30s")]
    wait: Option<String>,
}

/// One run with its inputs, its steps and its output.
#[utoipa::path(
    get, path = "/api/v1/runs/{id}", tag = "runs",
    params(("id" = String, Path, description = "The whole id."), Patience),
    responses(
        (status = OK, description = "The run as it is now.", body = RunDetail),
        (status = NOT_FOUND, description = "There is no such run.", body = Problem),
    )
)]
pub async fn get(
    State(app): State<App>,
    Named(id): Named<String>,
    Ask(patience): Ask<Patience>,
) -> Result<Json<RunDetail>, Problem> {
    let id = run_id(&id)?;
    let run = app.tide.run(id).await?;
    if let Some(wait) = &patience.wait {
        let wait = duration(wait)?.min(LONGEST_WAIT);
        // Whether or not it has ended: what is known then is told.
        tokio::select! {
            _ = tokio::time::timeout(wait, run.wait()) => {}
            () = app.closed() => {}
        }
    }
    detail(&app, id).await.map(Json)
}

async fn detail(app: &App, id: RunId) -> Result<RunDetail, Problem> {
    let missing = || Problem::not_found(format!("there is no run {id}"));
    let (rows, declared, inputs, output, items) = app
        .read(move |store| {
            let Some(found) = store.find(&[Sought::Id(id)])?.into_iter().next().flatten() else {
                return Ok(Default::default());
            };
            let task = TaskId::node(found.node);
            let rows = rows_of(store, found.node)?;
            let items = super::steps::items(store, &rows)?;
            let output = store.ended(task)?.and_then(|ended| ended.output);
            Ok((rows, store.declared()?, store.payload(task)?, output, items))
        })
        .await?;
    let root = rows.first().ok_or_else(missing)?;
    let run = RunView::of(root).ok_or_else(missing)?;
    let steps = steps(&declared, &rows, &items);
    Ok(RunDetail { run, inputs: json(inputs), output: json(output), steps })
}

fn json(payload: Option<Payload>) -> Value {
    payload.and_then(|payload| serde_json::from_slice(payload.bytes()).ok()).unwrap_or_default()
}

/// Cancel a run: what waits ends at once, what runs is told to stop.
#[utoipa::path(
    post, path = "/api/v1/runs/{id}/cancel", tag = "runs",
    params(("id" = String, Path, description = "The whole id.")),
    responses(
        (status = ACCEPTED, description = "It ends, or has ended already."),
        (status = NOT_FOUND, description = "There is no such run.", body = Problem),
    )
)]
pub async fn cancel(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
) -> Result<StatusCode, Problem> {
    app.of(&caller).run(run_id(&id)?).await?.cancel().await?;
    Ok(StatusCode::ACCEPTED)
}

#[derive(Deserialize, Default, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Again {
    /// Reuse nothing, also not of a run that succeeded.
    #[serde(default)]
    from_start: bool,
}

/// Do again what has ended, as a new run; steps that succeeded are reused.
#[utoipa::path(
    post, path = "/api/v1/runs/{id}/retry", tag = "runs", request_body = Again,
    params(("id" = String, Path, description = "The whole id.")),
    responses(
        (status = CREATED, description = "The new run.", body = Accepted),
        (status = NOT_FOUND, description = "There is no such run.", body = Problem),
        (status = CONFLICT, description = "It has not ended, or succeeded.", body = Problem),
    )
)]
pub async fn retry(
    State(app): State<App>,
    Named(id): Named<String>,
    Body(again): Body<Again>,
) -> Result<impl IntoResponse, Problem> {
    let retry = app.tide.retry(run_id(&id)?);
    let id = if again.from_start { retry.from_start() } else { retry }.await?.id().to_string();
    let location = [(header::LOCATION, format!("/api/v1/runs/{id}"))];
    Ok((StatusCode::CREATED, location, Json(Accepted { id })))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Higher starts first.
    #[serde(default)]
    #[schema(minimum = -100, maximum = 100)]
    priority: Option<i8>,
    /// Nothing more of it starts while it is paused.
    #[serde(default)]
    paused: Option<bool>,
}

/// Change a run that is open: its priority, or whether it is paused.
#[utoipa::path(
    patch, path = "/api/v1/runs/{id}", tag = "runs", request_body = Change,
    params(("id" = String, Path, description = "The whole id.")),
    responses(
        (status = NO_CONTENT, description = "It is so now."),
        (status = NOT_FOUND, description = "There is no such run, or it has ended.", body = Problem),
    )
)]
pub async fn change(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Body(change): Body<Change>,
) -> Result<StatusCode, Problem> {
    let run = app.of(&caller).run(run_id(&id)?).await?;
    if let Some(priority) = change.priority {
        run.set_priority(priority).await?;
    }
    match change.paused {
        Some(true) => run.pause().await?,
        Some(false) => run.resume().await?,
        None => {}
    }
    Ok(StatusCode::NO_CONTENT)
}
