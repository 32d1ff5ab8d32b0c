//! What the shell has others do: render templates. User templates never run in the writer.

use tidegate_core::Asked;
use tidegate_core::ids::Name;
use tidegate_core::protocol::{Evaluation, Payload, Submission};
use tidegate_store::{Reads, StoreError};
use tidegate_wire::Definition;

/// Renders templates. Called off the writer, from a thread that may block.
pub trait Evaluate: Send + Sync {
    fn evaluate(&self, asked: &Asked, store: &mut dyn Reads) -> Result<Evaluation, StoreError>;

    /// What is to be submitted for a name and its input, which is JSON. The error is a sentence.
    fn prepare(&self, name: &Name, definition: &Definition, input: &Payload) -> Result<Prepared, String>;
}

/// What can be submitted, with the tags that its definition gives it.
#[derive(Clone, PartialEq, Debug)]
pub struct Prepared {
    pub what: Submission,
    pub tags: Vec<(Name, Name)>,
}

impl Prepared {
    pub fn job(action: &Name, key: Option<Name>, order: Payload) -> Self {
        Prepared { what: Submission::Job { action: action.clone(), key, order }, tags: Vec::new() }
    }
}
