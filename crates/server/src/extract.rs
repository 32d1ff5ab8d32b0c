//! From requests to what handlers take: whatever is wrong is a [`Problem`].

use crate::problem::Problem;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Json, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// How long a body may take.
const ARRIVES_WITHIN: Duration = Duration::from_secs(30);

/// A JSON body.
pub struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, Problem> {
        match tokio::time::timeout(ARRIVES_WITHIN, Json::from_request(request, state)).await {
            Ok(Ok(Json(body))) => Ok(Body(body)),
            Ok(Err(rejection)) => Err(wrong_body(&rejection)),
            Err(_) => {
                let sentence = "the body took longer than 30 s to arrive";
                Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "slow", sentence))
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body as Bytes;
    use futures_util::stream::{self, StreamExt};

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_given_up() {
        let half = stream::iter([Ok::<_, std::io::Error>("{\"a\":")]).chain(stream::pending());
        let request = Request::builder()
            .header("content-type", "application/json")
            .body(Bytes::from_stream(half))
            .expect("it is a request");
        let Err(problem) = Body::<serde_json::Value>::from_request(request, &()).await else {
            panic!("half a body was taken");
        };
        assert_eq!((problem.status(), problem.code()), (408, "slow"));
    }
}
