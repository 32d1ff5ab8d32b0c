//! Tokens: who may ask, and for what.

use super::{duration, time};
use crate::access::{self, Caller, Scope};
use crate::app::App;
use crate::extract::{Body, Named};
use crate::problem::Problem;
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use tidegate_core::protocol::TokenRow;
use utoipa::ToSchema;

/// A token, without its secret.
#[derive(Serialize, ToSchema)]
pub struct TokenView {
    id: String,
    /// Whom or what it is for; what it changes is written down with this name.
    name: String,
    scopes: Vec<String>,
    created: String,
    created_by: String,
    /// It is worth nothing afterwards.
    expires: Option<String>,
    expired: bool,
}

impl TokenView {
    fn of(row: &TokenRow) -> TokenView {
        TokenView {
            id: row.id.to_string(),
            name: row.name.to_string(),
            scopes: row.scopes.iter().map(ToString::to_string).collect(),
            created: time(row.at),
            created_by: row.by.to_string(),
            expires: row.until.map(time),
            expired: !access::is_live(row),
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    #[schema(example = "nightly-build")]
    name: String,
    /// `read`, `run`, `define`, `operate` or `admin`.
    #[schema(example = json!(["read", "run"]))]
    scopes: Vec<String>,
    /// For how long; for ever if nothing is said.
    #[serde(default)]
    #[schema(example = "90d")]
    lasting: Option<String>,
}

/// A token as it is given out, once.
#[derive(Serialize, ToSchema)]
pub struct MadeToken {
    #[serde(flatten)]
    view: TokenView,
    /// All of it. Nobody can be told again.
    token: String,
}

/// Tokens that were made and not revoked.
#[utoipa::path(get, path = "/api/v1/tokens", tag = "tokens", responses((status = OK, description = "All of them, without their secrets.", body = Vec<TokenView>)))]
pub async fn list(State(app): State<App>) -> Result<Json<Vec<TokenView>>, Problem> {
    let rows = access::listed(&app.tide).await?;
    Ok(Json(rows.iter().map(TokenView::of).collect()))
}

/// Make a token.
#[utoipa::path(
    post, path = "/api/v1/tokens", tag = "tokens", request_body = NewToken,
    responses(
        (status = CREATED, description = "The token, which is told this once.", body = MadeToken),
        (status = UNPROCESSABLE_ENTITY, description = "It has no name, or there is no such scope.", body = Problem),
    )
)]
pub async fn create(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(new): Body<NewToken>,
) -> Result<(StatusCode, Json<MadeToken>), Problem> {
    let unknown = |scope: &String| Problem::invalid(format!("there is no scope `{}`", super::short(scope)));
    let scopes = new.scopes.iter().map(|scope| Scope::parse(scope).ok_or_else(|| unknown(scope)));
    let scopes = scopes.collect::<Result<Vec<_>, _>>()?;
    if scopes.is_empty() {
        return Err(Problem::invalid("a token without scopes is good for nothing"));
    }
    let lasting = new.lasting.as_deref().map(duration).transpose()?.map(Into::into);
    let issued = access::issue(&app.of(&caller), &new.name, scopes, lasting, &caller.name).await?;
    app.known.forget().await;
    let made = MadeToken { view: TokenView::of(&issued.row), token: issued.token };
    Ok((StatusCode::CREATED, Json(made)))
}

/// Revoke a token: every server turns it away within seconds.
#[utoipa::path(
    delete, path = "/api/v1/tokens/{id}", tag = "tokens",
    params(("id" = String, Path, description = "As the list calls it.")),
    responses(
        (status = NO_CONTENT, description = "It is worth nothing any more."),
        (status = NOT_FOUND, description = "There is no such token.", body = Problem),
    )
)]
pub async fn revoke(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
) -> Result<StatusCode, Problem> {
    let is_revoked = access::revoke(&app.of(&caller), &id).await?;
    app.known.forget().await;
    match is_revoked {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::not_found(format!("there is no token `{}`", super::short(&id)))),
    }
}
