//! Tidegate inside a program: an engine over an embedded store, and a worker beside it.

mod evaluator;
mod forward;
mod local;

pub use local::{Local, LocalError, Options};
pub use tidegate_core as core;
pub use tidegate_flow as flow;
