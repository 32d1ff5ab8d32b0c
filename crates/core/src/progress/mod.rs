//! Progress of a run: which step comes next, what a loop still has to do, and how it all ends, exactly once.

mod items;
mod reuse;
mod run;
mod step;
mod sub_flow;

pub(crate) use reuse::reusable;
pub use step::RESIDENT;
pub(crate) use step::resident;
