//! What goes into the core and what comes out: the words of the whole house.

mod evaluation;

pub use evaluation::{Evaluation, Payload, Question, Rendered};
