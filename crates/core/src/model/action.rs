//! Actions: something with a name that flows can do.

use super::{ActionPolicy, Input, Template};
use serde::{Deserialize, Serialize};

/// One version of an action: what it takes, what it does, and the limits that travel with it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Action {
    pub policy: ActionPolicy,
    pub description: Option<String>,
    pub inputs: Vec<Input>,
    /// Over `inputs`; the limits of the action count per key.
    pub key: Option<Template>,
    pub work: ActionWork,
}

impl Action {
    /// A function that workers register, with these limits and no declared inputs.
    pub fn function(policy: ActionPolicy) -> Self {
        Action { policy, description: None, inputs: Vec::new(), key: None, work: ActionWork::Function }
    }

    /// Whether who calls one of the two would notice nothing if it were the other.
    pub(crate) fn does_the_same(&self, other: &Action) -> bool {
        let runners = (&self.policy.needs.runner, &other.policy.needs.runner);
        (&self.inputs, &self.key, &self.work) == (&other.inputs, &other.key, &other.work)
            && runners.0 == runners.1
    }
}

/// What carries an action out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ActionWork {
    /// What a worker carries out, as for a step; the template is over the action's inputs.
    #[serde(alias = "Run")]
    Order(Template),
    /// A function that a worker registered under the action's name.
    Function,
}
