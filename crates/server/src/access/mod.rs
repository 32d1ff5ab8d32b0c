//! Who asks, and what that caller may do. Nothing is open unless it says so.

mod loopback;
mod scope;
mod stored;
mod token;

pub use scope::Scope;
pub(crate) use stored::Known;
pub use stored::{Issued, is_live, issue, listed, revoke};
pub use token::Token;

use crate::app::App;
use crate::problem::Problem;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::collections::BTreeSet;

/// What everybody may ask: whether the server lives, and whether it is ready.
pub(crate) const OPEN: [&str; 2] = ["/healthz", "/readyz"];

/// How a server knows its callers.
#[derive(Clone, Debug)]
pub enum Access {
    /// Whoever is on this machine may do everything: programs that run here, and no page of another site.
    Loopback,
    /// Whoever has one of these, or one of those in the store, may do what it is for.
    Tokens(Vec<Token>),
}

/// Whoever a request comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// As it stands in what is written down about changes.
    pub name: String,
    scopes: BTreeSet<Scope>,
}

impl Caller {
    fn admin(name: &str) -> Caller {
        Caller { name: name.to_owned(), scopes: BTreeSet::from([Scope::Admin]) }
    }

    fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&Scope::Admin)
    }
}

impl App {
    async fn caller(&self, headers: &HeaderMap) -> Result<Caller, Problem> {
        let known = match &*self.access {
            Access::Loopback => return loopback::check(headers).map(|()| Caller::admin("local")),
            Access::Tokens(known) => known,
        };
        let given = bearer(headers).ok_or_else(|| unauthorized("a token is needed"))?;
        if let Some(token) = known.iter().find(|token| token.is(given)) {
            return Ok(Caller { name: token.name.clone(), scopes: token.scopes.clone() });
        }
        let caller = self.known.caller(&self.tide, given).await?;
        caller.ok_or_else(|| unauthorized("this token is not known, was revoked, or its time is over"))
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn unauthorized(detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
        .help("send the header `authorization: Bearer TOKEN`")
}

/// The outermost layer: without a caller nothing else happens.
pub(crate) async fn authenticate(State(app): State<App>, mut request: Request, next: Next) -> Response {
    if OPEN.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    match app.caller(request.headers()).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// The layer around each route.
pub(crate) async fn require(scope: Scope, request: Request, next: Next) -> Response {
    match request.extensions().get::<Caller>() {
        Some(caller) if caller.may(scope) => next.run(request).await,
        Some(_) => {
            let detail = format!("this takes the scope `{}`", scope.as_str());
            Problem::new(StatusCode::FORBIDDEN, "forbidden", detail).into_response()
        }
        None => unauthorized("a token is needed").into_response(),
    }
}
