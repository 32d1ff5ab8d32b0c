//! From requests to what handlers take: whatever is wrong is a [`Problem`].

use crate::problem::Problem;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Json, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

/// A JSON body.
pub struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, Problem> {
        match Json::from_request(request, state).await {
            Ok(Json(body)) => Ok(Body(body)),
            Err(rejection) => Err(wrong_body(&rejection)),
        }
    }
}

fn wrong_body(rejection: &JsonRejection) -> Problem {
    let text = rejection.body_text();
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "the body may have 1 MiB")
        }
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", "the body must be JSON")
                .help("send the header `content-type: application/json`")
        }
        StatusCode::REQUEST_TIMEOUT => Problem::new(StatusCode::REQUEST_TIMEOUT, "slow", text),
        _ => Problem::invalid(text),
    }
}

/// What stands behind the `?`.
pub struct Ask<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Ask<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Ask<T>, Problem> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(ask)) => Ok(Ask(ask)),
            Err(rejection) => Err(Problem::invalid(QueryRejection::body_text(&rejection))),
        }
    }
}

/// What stands in the path.
pub struct Named<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Named<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Named<T>, Problem> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(named)) => Ok(Named(named)),
            Err(rejection) => Err(Problem::not_found(PathRejection::body_text(&rejection))),
        }
    }
}
