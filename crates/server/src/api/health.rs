//! Whether the server lives, and whether it is ready: the only routes that everybody may ask.

use crate::app::App;
use crate::problem::Problem;
use axum::extract::State;
use axum::http::StatusCode;
use std::time::Duration;

/// How long an engine may take to say what time it is before it is called not ready.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the process lives.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = OK, description = "It lives.", body = str)))]
pub async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether it can take work: the store answers, and somebody leads.
#[utoipa::path(
    get, path = "/readyz", tag = "health",
    responses(
        (status = OK, description = "It can.", body = str),
        (status = SERVICE_UNAVAILABLE, description = "It cannot now.", body = Problem),
    )
)]
pub async fn readyz(State(app): State<App>) -> Result<&'static str, Problem> {
    match tokio::time::timeout(PATIENCE, app.tide.engine().now()).await {
        Ok(Ok(_)) => Ok("ready\n"),
        _ => {
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "the engine cannot answer now"))
        }
    }
}
