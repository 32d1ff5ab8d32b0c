//! What goes into the core and what comes out: the words of the whole house.

mod evaluation;
mod worker;

pub use evaluation::{Evaluation, Payload, Question, Rendered};
pub use worker::{Attempt, Heartbeat, Lease, Outcome, Renewal};
