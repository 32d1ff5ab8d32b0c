//! The one table of routes. Each is listed with the scope that it takes, and nothing else can be asked for.

use crate::access::{Scope, authenticate, require};
use crate::api::{
    apply, audit, definitions, events, health, limits, queue, runs, stats, tasks, tokens, work, workers,
};
use crate::app::App;
use crate::metrics;
use crate::problem::Problem;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder, PathItem};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;
use utoipa_swagger_ui::SwaggerUi;

/// A layer that lets through whoever has the scope. Its type cannot be written down.
macro_rules! guarded {
    ($scope:expr) => {
        middleware::from_fn(move |request, next| require($scope, request, next))
    };
}

/// Bytes of a body.
const BODY: usize = 1024 * 1024;
/// Where the description of everything is found.
const DESCRIPTION: &str = "/api/v1/openapi.json";
/// The name of how callers prove who they are, in the description.
const TOKEN: &str = "token";

/// Everything that can be asked for.
pub fn router(app: App) -> Router {
    let (router, openapi) = table().split_for_parts();
    let docs = SwaggerUi::new("/docs").url(DESCRIPTION, described(openapi));
    let docs = Router::from(docs).layer(guarded!(Scope::Read));
    router
        .merge(docs)
        .fallback(async || Problem::not_found("there is no such route").help("see /docs"))
        .layer(DefaultBodyLimit::max(BODY))
        .layer(middleware::from_fn_with_state(app.clone(), authenticate))
        .with_state(app)
}

/// The description of everything, as OpenAPI 3.1.
pub fn openapi() -> OpenApi {
    described(table().into_openapi())
}

fn table() -> OpenApiRouter<App> {
    use Scope::{Admin, Define, Operate, Read, Run};
    OpenApiRouter::new()
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(takes(Read, routes!(metrics::metrics)))
        .routes(takes(Run, routes!(runs::submit)))
        .routes(takes(Read, routes!(runs::list)))
        .routes(takes(Read, routes!(runs::get)))
        .routes(takes(Run, routes!(runs::cancel)))
        .routes(takes(Run, routes!(runs::retry)))
        .routes(takes(Operate, routes!(runs::change)))
        .routes(takes(Read, routes!(tasks::why)))
        .routes(takes(Read, routes!(queue::list)))
        .routes(takes(Read, routes!(definitions::flows)))
        .routes(takes(Read, routes!(definitions::actions)))
        .routes(takes(Read, routes!(stats::get)))
        .routes(takes(Define, routes!(apply::apply)))
        .routes(takes(Read, routes!(limits::list)))
        .routes(takes(Read, routes!(limits::get)))
        .routes(takes(Operate, routes!(limits::set)))
        .routes(takes(Operate, routes!(limits::reset)))
        .routes(takes(Read, routes!(workers::list)))
        .routes(takes(Run, routes!(work::join)))
        .routes(takes(Run, routes!(work::poll)))
        .routes(takes(Run, routes!(work::heartbeat)))
        .routes(takes(Run, routes!(work::finish::finish)))
        .routes(takes(Run, routes!(work::drain)))
        .routes(takes(Run, routes!(work::leave)))
        .routes(takes(Read, routes!(events::follow)))
        .routes(takes(Operate, routes!(audit::list)))
        .routes(takes(Admin, routes!(tokens::list)))
        .routes(takes(Admin, routes!(tokens::create)))
        .routes(takes(Admin, routes!(tokens::revoke)))
}

/// What a route takes is checked before it, and stands in its description.
fn takes(scope: Scope, (schemas, mut paths, methods): UtoipaMethodRouter<App>) -> UtoipaMethodRouter<App> {
    for operation in paths.paths.values_mut().flat_map(operations) {
        operation.security = Some(vec![SecurityRequirement::new(TOKEN, [scope.as_str()])]);
    }
    (schemas, paths, methods.layer(guarded!(scope)))
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch].into_iter().flatten()
}

fn described(openapi: OpenApi) -> OpenApi {
    let info = InfoBuilder::new().title("Tidegate").version(env!("CARGO_PKG_VERSION")).description(Some(
        "Runs flows and jobs: a limit is never exceeded, work never stalls, every wait can be explained.",
    ));
    let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let own = OpenApiBuilder::new()
        .info(info.build())
        .components(Some(
            ComponentsBuilder::new().security_scheme(TOKEN, SecurityScheme::Http(token)).build(),
        ))
        .build();
    own.merge_from(openapi)
}
