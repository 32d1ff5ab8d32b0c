//! One request and its answer.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use thiserror::Error;
use url::Url;

/// How long a server may take to answer, besides the time for which it was asked to wait.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest answer: outputs have 64 MiB.
const LARGEST: usize = 80 * 1024 * 1024;

/// A server, as it is asked. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Client {
    base: Url,
    token: Option<HeaderValue>,
    /// Of the next submission.
    key: Option<HeaderValue>,
    http: Http<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

#[derive(Debug, Error)]
pub enum ClientError {
    #[error("`{0}` is not the address of a server")]
    Address(String),
    #[error("the token cannot be sent: it is plain text without blanks")]
    Token,
    #[error("the key cannot be sent: it is plain text")]
    Key,
    /// Ask again.
    #[error("the server at {0} cannot be reached: {1}")]
    Unreachable(String, String),
    /// It has answered, and will answer the same again.
    #[error("{detail}")]
    Refused { status: u16, code: String, detail: String, help: Option<String>, faults: Vec<Fault> },
    #[error("the answer of {0} cannot be read: {1}")]
    Unreadable(String, String),
}

impl ClientError {
    /// Whether asking again may help.
    pub fn may_pass(&self) -> bool {
        match self {
            ClientError::Unreachable(..) => true,
            ClientError::Refused { status, .. } => *status >= 500 || *status == 429,
            ClientError::Address(_) | ClientError::Token | ClientError::Key | ClientError::Unreadable(..) => {
                false
            }
        }
    }

    /// The stable word of a refusal.
    pub fn code(&self) -> Option<&str> {
        match self {
            ClientError::Refused { code, .. } => Some(code),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct Problem {
    code: String,
    detail: String,
    help: Option<String>,
    #[serde(default)]
    faults: Vec<Fault>,
}

/// Something that is wrong with a file.
#[derive(Clone, Debug, Deserialize)]
pub struct Fault {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub code: String,
    pub message: String,
    pub help: Option<String>,
}

impl Client {
    /// `http://HOST:PORT`, or `https://…`. Reads the certificates of this machine, which blocks for a moment.
    pub fn new(address: &str, token: Option<&str>) -> Result<Client, ClientError> {
        let wrong = || ClientError::Address(address.to_owned());
        let base = Url::parse(address).map_err(|_| wrong())?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
            return Err(wrong());
        }
        let header = |token: &str| HeaderValue::from_str(&format!("Bearer {token}"));
        let mut token = token.map(header).transpose().map_err(|_| ClientError::Token)?;
        token.iter_mut().for_each(|token| token.set_sensitive(true));
        let tls = tidegate_worker::tls::config(None)
            .map_err(|why| ClientError::Unreachable(address.to_owned(), why))?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(PATIENCE));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        Ok(Client { base, token, key: None, http: Http::builder(TokioExecutor::new()).build(connector) })
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.ask(Method::GET, path, None::<&()>, Duration::ZERO).await
    }

    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.ask(Method::POST, path, Some(body), Duration::ZERO).await
    }

    pub async fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.ask(Method::PUT, path, Some(body), Duration::ZERO).await
    }

    /// An answer for which the server is asked to wait.
    pub async fn wait_for<T: DeserializeOwned>(&self, path: &str, wait: Duration) -> Result<T, ClientError> {
        self.ask(Method::GET, path, None::<&()>, wait).await
    }

    /// With an idempotency key, so that it may be sent again.
    pub async fn post_keyed<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        key: Option<&str>,
    ) -> Result<T, ClientError> {
        let key = key.map(HeaderValue::from_str).transpose().map_err(|_| ClientError::Key)?;
        Client { key, ..self.clone() }.post(path, body).await
    }

    /// `wait` is for how long the server is asked to wait. An answer without a body reads as null.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
        wait: Duration,
    ) -> Result<T, ClientError> {
        let (status, body) =
            match tokio::time::timeout(wait + PATIENCE, self.exchange(method, path, body)).await {
                Ok(answer) => answer?,
                Err(_) => return Err(self.unreachable("it does not answer")),
            };
        let unreadable = |error: serde_json::Error| ClientError::Unreadable(self.place(), error.to_string());
        if status.is_success() {
            let json: &[u8] = if body.is_empty() { b"null" } else { &body };
            return serde_json::from_slice(json).map_err(unreadable);
        }
        let Problem { code, detail, help, faults } = serde_json::from_slice(&body).map_err(unreadable)?;
        Err(ClientError::Refused { status: status.as_u16(), code, detail, help, faults })
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let failed = |error: &dyn std::error::Error| self.unreachable(&root_of(error));
        let uri = format!("{}{path}", self.base.as_str().trim_end_matches('/'));
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token);
        }
        if let Some(key) = &self.key {
            request = request.header("idempotency-key", key);
        }
        let bytes = match body {
            Some(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                serde_json::to_vec(body).map_err(|error| failed(&error))?
            }
            None => Vec::new(),
        };
        let request = request.body(Full::from(bytes)).map_err(|error| failed(&error))?;
        let response = self.http.request(request).await.map_err(|error| failed(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), LARGEST).collect().await;
        Ok((status, body.map_err(|error| failed(&*error))?.to_bytes()))
    }

    fn place(&self) -> String {
        self.base[..url::Position::BeforePath].to_owned()
    }

    fn unreachable(&self, why: &str) -> ClientError {
        ClientError::Unreachable(self.place(), why.to_owned())
    }
}

/// What is said deepest down is what happened.
fn root_of(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
