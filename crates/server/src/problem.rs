//! What goes wrong, in one form: `application/problem+json` with a stable code, a sentence, and no internals.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tidegate::{Error, Refusal};
use utoipa::ToSchema;

/// Why a request was not carried out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: the code tells kinds apart.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The HTTP status.
    #[schema(example = 404)]
    status: u16,
    /// The status in words.
    #[schema(example = "Not Found")]
    title: &'static str,
    /// A stable word for programs.
    #[schema(example = "not-found")]
    code: &'static str,
    /// A sentence for people.
    #[schema(value_type = String, example = "there is no run run_01K7Z0")]
    detail: Box<str>,
    /// What to do about it, if that can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    help: Option<Box<str>>,
    /// What is wrong with files, one by one.
    #[serde(skip_serializing_if = "<[Fault]>::is_empty")]
    #[schema(value_type = Vec<Fault>)]
    faults: Box<[Fault]>,
}

/// Something that is wrong with a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct Fault {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub code: &'static str,
    pub message: String,
    pub help: Option<String>,
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Problem {
        Problem {
            kind: "about:blank",
            status: status.as_u16(),
            title: status.canonical_reason().unwrap_or("Error"),
            code,
            detail: detail.into().into_boxed_str(),
            help: None,
            faults: Box::default(),
        }
    }

    pub fn with(self, faults: Vec<Fault>) -> Problem {
        Problem { faults: faults.into(), ..self }
    }

    pub fn help(self, help: impl Into<String>) -> Problem {
        Problem { help: Some(help.into().into_boxed_str()), ..self }
    }

    pub fn status(&self) -> u16 {
        self.status
    }

    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The request itself is wrong.
    pub fn invalid(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail)
    }

    pub fn not_found(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not-found", detail)
    }

    /// It may work in a moment.
    fn unavailable(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_string(&self).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let sentence = error.to_string();
        match error {
            error if error.may_pass() => Problem::unavailable("the engine cannot answer now"),
            Error::Closed => Problem::unavailable("the server is about to end"),
            Error::Refused(refusal) => Problem::from(refusal),
            Error::UnknownRun(_) | Error::Lost(_) => Problem::not_found(sentence),
            Error::Inputs { .. } | Error::Priority(_) | Error::LimitName(_) => Problem::invalid(sentence),
            Error::Definitions(diagnostics) => Problem::invalid(diagnostics.render(false)),
            // What a store says about itself is nobody's business but the operator's.
            _ => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "it could not be carried out"),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let sentence = refusal.to_string();
        match refusal {
            Refusal::UnknownFlow(_) | Refusal::UnknownPool(_) | Refusal::UnknownRun(_) => {
                Problem::not_found(sentence)
            }
            Refusal::UnknownTask(_) => Problem::not_found("there is nothing open of this name"),
            Refusal::Busy { .. } | Refusal::LineFull { .. } => {
                Problem::new(StatusCode::TOO_MANY_REQUESTS, "busy", sentence)
            }
            Refusal::TooLarge { .. } => Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", sentence),
            Refusal::UnknownWorker(_) => Problem::new(StatusCode::GONE, "unknown-worker", sentence),
            Refusal::WorkerReplaced(_) => Problem::new(StatusCode::GONE, "replaced", sentence),
            Refusal::Stale => Problem::new(StatusCode::CONFLICT, "stale", sentence),
            Refusal::WrongValue(_) | Refusal::TooWide { .. } | Refusal::NoName | Refusal::NameTooLong(_) => {
                Problem::invalid(sentence)
            }
            _ => Problem::new(StatusCode::CONFLICT, "refused", sentence),
        }
    }
}
