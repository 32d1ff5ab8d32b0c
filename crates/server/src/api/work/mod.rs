//! The side of the API that workers speak: join, ask for something to do, keep it, say how it ended, leave.

pub mod finish;
mod lease;

use super::{duration, short};
use crate::app::App;
use crate::extract::{Ask, Body, Named};
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use lease::{Handed, LeaseView};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidegate::{Error, Name};
use tidegate_core::admission::{Skills, SlotCounts};
use tidegate_core::model::Requirement;
use tidegate_core::protocol::{Answer, Command, Heartbeat, Join, Lease, Leave};
use utoipa::{IntoParams, ToSchema};

/// How long a worker is kept waiting for something to do.
const LONGEST_POLL: Duration = Duration::from_secs(60);
/// Of each kind.
const MOST_SLOTS: u32 = 10_000;
/// How often a worker should say what it has: several times in the shortest lease that is usual.
const HEARTBEAT_EVERY: f64 = 5.0;

/// A worker introduces itself.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWorker {
    /// Who starts to work under a name takes the place of who did before.
    #[schema(example = "images-1")]
    name: String,
    /// What it has functions for.
    #[serde(default)]
    #[schema(example = json!(["resize"]))]
    actions: Vec<String>,
    /// It works for these; for `default` unless told otherwise.
    #[serde(default)]
    queues: Vec<String>,
    /// What it has that others may lack.
    #[serde(default)]
    #[schema(example = json!(["gpu"]))]
    labels: Vec<String>,
    /// How many calls of its functions it takes at once, and requests and statements if it has built-in runners.
    #[serde(default)]
    #[schema(maximum = 10000)]
    slots: u32,
    /// How many processes, if it has built-in runners.
    #[serde(default)]
    #[schema(maximum = 10000)]
    process_slots: u32,
    /// It carries out `http`, `sql` and chains of these, which come as `order`: `tidegate worker` does.
    #[serde(default)]
    has_runners: bool,
    /// Higher than that of any earlier start under this name; it is given one unless it has its own.
    #[serde(default)]
    incarnation: Option<u64>,
}

/// What a worker says with everything else.
#[derive(Serialize, ToSchema)]
pub struct Joined {
    name: String,
    /// Tells this start of it from others.
    incarnation: u64,
    /// In seconds.
    heartbeat_every: f64,
}

/// Join: attempts are handed out from now on.
#[utoipa::path(
    post, path = "/api/v1/workers", tag = "workers", request_body = NewWorker,
    responses(
        (status = CREATED, description = "It has joined.", body = Joined),
        (status = UNPROCESSABLE_ENTITY, description = "It cannot be called that, or has no slots.", body = Problem),
    )
)]
pub async fn join(
    State(app): State<App>,
    Body(new): Body<NewWorker>,
) -> Result<(StatusCode, Json<Joined>), Problem> {
    if new.slots == 0 && new.process_slots == 0 || new.slots.max(new.process_slots) > MOST_SLOTS {
        return Err(Problem::invalid("a worker has 1 to 10,000 slots"));
    }
    let worker = Name::new(&new.name);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let incarnation = new.incarnation.unwrap_or(u64::try_from(since.as_micros()).unwrap_or(1));
    let names = |names: Vec<String>| -> Vec<Name> { names.into_iter().map(Name::from).collect() };
    let mut functions = names(new.actions);
    functions.sort();
    functions.dedup();
    let mut queues = names(new.queues);
    if queues.is_empty() {
        queues.push(Name::new(Requirement::DEFAULT_QUEUE));
    }
    let (processes, io) = (new.process_slots > 0, new.has_runners);
    let skills = Skills { queues, labels: names(new.labels), functions, processes, io };
    let slots = SlotCounts { process: new.process_slots, io: new.slots };
    // Whoever has a name may be given something before this is answered.
    app.staff.attach(app.tide.engine(), &worker, incarnation);
    tell(&app, Command::Join(Join { worker, incarnation, skills, slots })).await?;
    let joined = Joined { name: new.name, incarnation, heartbeat_every: HEARTBEAT_EVERY };
    Ok((StatusCode::CREATED, Json(joined)))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Polling {
    /// Answer as soon as there is something, or after so long: at most `60s`.
    #[param(example = "30s")]
    wait: Option<String>,
    /// As `join` gave it.
    incarnation: u64,
}

/// Ask for something to do.
#[utoipa::path(
    post, path = "/api/v1/workers/{name}/poll", tag = "workers",
    params(("name" = String, Path, description = "As it joined."), Polling),
    responses(
        (status = OK, description = "What it gets, which may be nothing.", body = Handed),
        (status = GONE, description = "Another worker has started under the name.", body = Problem),
    )
)]
pub async fn poll(
    State(app): State<App>,
    Named(name): Named<String>,
    Ask(polling): Ask<Polling>,
) -> Result<Json<Handed>, Problem> {
    let arrived = Instant::now();
    let wait = polling.wait.as_deref().map(duration).transpose()?.unwrap_or_default().min(LONGEST_POLL);
    let inbox = app.staff.attach(app.tide.engine(), &Name::new(&name), polling.incarnation);
    if inbox.incarnation() != polling.incarnation {
        return Err(replaced(&name));
    }
    let fetched = tokio::select! {
        fetched = inbox.fetch(wait) => fetched,
        () = app.closed() => Default::default(),
    };
    if fetched.is_replaced {
        return Err(replaced(&name));
    }
    Ok(Json(Handed::of(fetched, arrived)))
}

fn replaced(name: &str) -> Problem {
    let detail = format!("another worker has started under the name `{}`", short(name));
    Problem::new(StatusCode::GONE, "replaced", detail)
}

/// Everything a worker has.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Having {
    incarnation: u64,
    /// What is not listed is not renewed.
    #[schema(max_items = 10000)]
    has: Vec<LeaseView>,
}

/// Which of them it keeps.
#[derive(Serialize, ToSchema)]
pub struct Kept {
    /// Their leases begin anew, from when this was sent.
    renewed: Vec<LeaseView>,
    /// These are to end, or belong to somebody else.
    stop: Vec<LeaseView>,
}

/// Keep what it has.
#[utoipa::path(
    post, path = "/api/v1/workers/{name}/heartbeat", tag = "workers", request_body = Having,
    params(("name" = String, Path, description = "As it joined.")),
    responses(
        (status = OK, description = "What it keeps.", body = Kept),
        (status = GONE, description = "It is not known any more, or another has its name: join again.", body = Problem),
    )
)]
pub async fn heartbeat(
    State(app): State<App>,
    Named(name): Named<String>,
    Body(having): Body<Having>,
) -> Result<Json<Kept>, Problem> {
    let worker = Name::new(&name);
    let has = having.has.iter().map(Lease::try_from).collect::<Result<Vec<_>, _>>()?;
    match tell(&app, Command::Heartbeat(Heartbeat { worker, incarnation: having.incarnation, has })).await? {
        Answer::Renewal(renewal) => {
            let views = |leases: Vec<Lease>| leases.into_iter().map(LeaseView::from).collect();
            Ok(Json(Kept { renewed: views(renewal.renewed), stop: views(renewal.stop) }))
        }
        _ => Err(Problem::from(Error::Unavailable)),
    }
}

/// Which start of a worker is meant.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Start {
    incarnation: u64,
}

/// Take nothing more; what it has goes on.
#[utoipa::path(
    post, path = "/api/v1/workers/{name}/drain", tag = "workers", request_body = Start,
    params(("name" = String, Path, description = "As it joined.")),
    responses((status = NO_CONTENT, description = "Nothing more is handed out."))
)]
pub async fn drain(
    State(app): State<App>,
    Named(name): Named<String>,
    Body(start): Body<Start>,
) -> Result<StatusCode, Problem> {
    let (worker, slots) = (Name::new(&name), SlotCounts::default());
    tell(&app, Command::Offer { worker, incarnation: start.incarnation, slots }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Leave. What it has not reported is lost, and done again by others.
#[utoipa::path(
    post, path = "/api/v1/workers/{name}/leave", tag = "workers", request_body = Start,
    params(("name" = String, Path, description = "As it joined.")),
    responses((status = NO_CONTENT, description = "It has left."))
)]
pub async fn leave(
    State(app): State<App>,
    Named(name): Named<String>,
    Body(start): Body<Start>,
) -> Result<StatusCode, Problem> {
    let worker = Name::new(&name);
    tell(&app, Command::Leave(Leave { worker: worker.clone(), incarnation: start.incarnation })).await?;
    app.staff.forget(app.tide.engine(), &worker, start.incarnation);
    Ok(StatusCode::NO_CONTENT)
}

async fn tell(app: &App, command: Command) -> Result<Answer, Problem> {
    match app.tide.engine().insist(command).await.map_err(Error::from)? {
        Answer::Refused(refusal) => Err(Problem::from(refusal)),
        answer => Ok(answer),
    }
}
