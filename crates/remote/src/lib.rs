//! From elsewhere to a server: what commands ask, and what a worker on another machine says.
//!
//! - [`Client`]: one request and its answer
//! - [`hire`]: a worker that works for a server
//! - [`words`]: what the two say to each other, as JSON

mod client;
mod link;
mod words;

pub use client::{Client, ClientError, Fault};
pub use hyper::Method;
pub use link::{Hired, hire};
