//! Servers that share a store: one leads, the others forward to it.
//!
//! Every server listens on a private port for the others ([`Listener`]); one that follows keeps a connection to the one
//! that leads ([`Upstream`]). Workers of a server that follows are remote workers of the one that leads. A message that
//! is lost with its connection is no loss: callers are told to ask again, workers say everything again by themselves.

mod connection;
mod listener;
mod outbox;
mod upstream;

pub use listener::Listener;
pub(crate) use upstream::Upstream;
