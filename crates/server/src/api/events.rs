//! What happens, as it happens: server-sent events, which can be replayed from a position.

use crate::app::App;
use crate::extract::Ask;
use crate::problem::Problem;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use futures_util::stream::{Stream, unfold};
use serde::Deserialize;
use serde_json::{Value, json};
use std::convert::Infallible;
use tidegate::{Error, Event, Events, Position, RunId};
use utoipa::IntoParams;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Following {
    /// What happened after this event, as far as it is kept, and then what happens: `7.2`. The header `Last-Event-ID` says
    /// the same.
    #[param(example = "0.0")]
    after: Option<String>,
    /// Only of this run.
    run: Option<String>,
}

/// Follow what happens.
///
/// Each event has an id, a name (`run.queued`, `task.granted`, `limit.changed`, …) and JSON: `time`, `run`, `task` and what
/// belongs to its kind. `missed` says that some are not kept any more.
#[utoipa::path(
    get, path = "/api/v1/events", tag = "events", params(Following, ("Last-Event-ID" = Option<String>, Header, description = "As `after`.")),
    responses(
        (status = OK, description = "Events, until the caller goes.", content_type = "text/event-stream", body = String),
        (status = UNPROCESSABLE_ENTITY, description = "This is no position.", body = Problem),
    )
)]
pub async fn follow(
    State(app): State<App>,
    headers: HeaderMap,
    Ask(following): Ask<Following>,
) -> Result<Sse<impl Stream<Item = Result<Sent, Infallible>>>, Problem> {
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let run = following.run.as_deref().map(super::run_id).transpose()?;
    let events = match last.or(following.after) {
        Some(text) => {
            let position = text.parse::<Position>().map_err(|error| Problem::invalid(error.to_string()))?;
            app.tide.events().after(position)
        }
        None => app.tide.events(),
    };
    let follower = Follower { events, run, app };
    Ok(Sse::new(unfold(follower, Follower::next)).keep_alive(KeepAlive::default()))
}

struct Follower {
    events: Events,
    run: Option<RunId>,
    app: App,
}

impl Follower {
    /// Nothing once the server is about to end.
    async fn next(mut self) -> Option<(Result<Sent, Infallible>, Follower)> {
        let closed = self.app.closed();
        tokio::pin!(closed);
        loop {
            let event = tokio::select! {
                event = self.events.next() => event,
                () = &mut closed => return None,
            };
            let sent = match event {
                Ok(event) if self.run.is_some_and(|run| event.run != Some(run)) => continue,
                Ok(event) => sent(&event),
                Err(Error::Missed { from, to }) => {
                    Sent::default().event("missed").data(json!({ "from": from, "to": to }).to_string())
                }
                Err(_) => return None,
            };
            return Some((Ok(sent), self));
        }
    }
}

fn sent(event: &Event) -> Sent {
    let mut fields = event.what.details();
    fields.insert("time".to_owned(), Value::from(super::time(event.at)));
    if let Some(run) = event.run {
        fields.insert("run".to_owned(), Value::from(run.to_string()));
    }
    if let Some(task) = event.task {
        fields.insert("task".to_owned(), Value::from(task.to_string()));
    }
    let sent = Sent::default().id(event.position.to_string()).event(event.what.kind());
    sent.data(Value::Object(fields).to_string())
}
