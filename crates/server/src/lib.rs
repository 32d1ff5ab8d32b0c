//! The HTTP side of an engine: what programs and people ask of it from elsewhere.
//!
//! - [`App`]: what every route needs
//! - [`routes`]: the one table of routes, each with the scope that it takes; OpenAPI follows from it
//! - [`api`]: one module a resource
//! - [`access`]: who asks, and what that caller may
//! - [`metrics`]: what is measured, as Prometheus reads it
//! - [`Problem`]: what goes wrong, in one form
//! - [`serve`]: connections, with bounds on everything, until it is told to end

mod access;
mod api;
mod app;
mod extract;
mod metrics;
mod problem;
mod routes;
mod serve;
mod staff;

pub use access::{Access, Caller, Issued, Scope, Token, is_live, issue, listed, revoke};
pub use app::App;
pub use problem::Problem;
pub use routes::{openapi, router};
pub use serve::serve;
