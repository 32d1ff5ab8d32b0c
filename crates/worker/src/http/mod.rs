//! Requests to servers: `http` steps and actions.
//!
//! Only http and https, and no addresses by which a machine asks for its own credentials, also after a redirection.
//! Everything that comes back has a bound in bytes, and every wait one in time. Secrets leave the worker towards the
//! server that they are for, and nowhere else. Nothing is tried again here: that is decided, durably, elsewhere.

mod answer;
mod connect;
mod request;
#[cfg(test)]
mod tests;

use crate::secrets::Secrets;
use answer::Answer;
pub(crate) use connect::Reach;
use connect::{Client, Forbidden};
use hyper::header::LOCATION;
use hyper::{Response, StatusCode};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tidegate_core::model::{Cause, Request};
use tidegate_core::protocol::{Failure, Outcome};
use tokio::sync::OnceCell;

/// How long servers are waited for, whatever the timeout of the step.
#[derive(Clone, Copy)]
struct Patience {
    /// Until a connection stands, its encryption included.
    connect: Duration,
    /// While the server says nothing.
    silence: Duration,
}

const PATIENCE: Patience = Patience { connect: Duration::from_secs(10), silence: Duration::from_secs(600) };

/// Sends requests. All of them share the connections that are open.
#[derive(Clone)]
pub(crate) struct Requests {
    reach: Reach,
    patience: Patience,
    /// Made for the first request, because that takes a moment.
    client: Arc<OnceCell<Client>>,
}

impl Requests {
    pub(crate) fn new(reach: Reach) -> Requests {
        Requests { reach, patience: PATIENCE, client: Arc::default() }
    }

    /// Dropping this ends the request and its connection.
    pub(crate) async fn perform(self, request: Box<Request>) -> Outcome {
        let asked = request::shown(&request);
        let mut secrets = Secrets::default();
        match self.ask(&request, &mut secrets).await {
            Ok(answer) => answer.outcome(&asked, &request.ok, &secrets),
            Err(trouble) => {
                let error = secrets.conceal(&format!("{asked}: {trouble}"));
                let cause = trouble.cause().map(|cause| Cause(cause.into()));
                Outcome::Failed(Failure { cause, ..Failure::new(error) })
            }
        }
    }

    async fn ask(&self, request: &Request, secrets: &mut Secrets) -> Result<Answer, Trouble> {
        let mut prepared = request::prepare(request, secrets, self.reach)?;
        let client = self.client().await?;
        let mut followed = 0;
        loop {
            let asking = self.patience.wait(client.request(prepared.message()?));
            let response = asking.await?.map_err(|error| match error.is_connect() {
                true => Trouble::unreachable("there is no connection", &error),
                false => Trouble::unreachable("there is no answer", &error),
            })?;
            match redirection(&response).filter(|_| request.redirects > 0) {
                None => return answer::read(response, request.max_size, self.patience).await,
                Some(_) if followed == request.redirects => {
                    return Err(Trouble::Redirects { most: request.redirects });
                }
                Some(to) => {
                    followed += 1;
                    prepared = prepared.redirected(response.status(), to, self.reach)?;
                }
            }
        }
    }

    async fn client(&self) -> Result<&Client, Trouble> {
        let (reach, patience) = (self.reach, self.patience.connect);
        let make = || async move {
            let made = tokio::task::spawn_blocking(move || connect::client(reach, patience)).await;
            made.map_err(|error| error.to_string())?
        };
        self.client.get_or_try_init(make).await.map_err(Trouble::Order)
    }
}

impl Patience {
    async fn wait<T>(self, next: impl Future<Output = T>) -> Result<T, Trouble> {
        let silent = |_| Trouble::Silent { seconds: self.silence.as_secs() };
        tokio::time::timeout(self.silence, next).await.map_err(silent)
    }
}

/// Where the server sends us instead of answering.
fn redirection<T>(response: &Response<T>) -> Option<&str> {
    let redirects = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    response.headers().get(LOCATION).filter(|_| redirects)?.to_str().ok()
}

/// Why there is no answer.
#[derive(Debug, Error)]
enum Trouble {
    #[error("{0}")]
    Order(String),
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    #[error("{0}")]
    Unreachable(String),
    #[error("the server has said nothing for {seconds} seconds")]
    Silent { seconds: u64 },
    #[error("the answer is larger than the {most} bytes that `max_size` allows")]
    TooLarge { most: usize },
    #[error("there are more than {most} redirections")]
    Redirects { most: u32 },
    #[error("the server redirects to another one, and what is sent holds a secret")]
    SecretsElsewhere,
}

impl Trouble {
    /// What lies at the bottom says most.
    fn unreachable(what: &str, error: &(dyn Error + 'static)) -> Trouble {
        let mut deepest = error;
        while let Some(source) = deepest.source() {
            deepest = source;
        }
        match deepest.downcast_ref::<Forbidden>() {
            Some(Forbidden(address)) => Trouble::Forbidden(Forbidden(*address)),
            None => Trouble::Unreachable(format!("{what}: {deepest}")),
        }
    }

    fn cause(&self) -> Option<&'static str> {
        match self {
            Trouble::Unreachable(_) => Some(Cause::CONNECT),
            Trouble::Silent { .. } => Some(Cause::TIMEOUT),
            _ => None,
        }
    }
}
