//! What was declared: flows and actions, as they are now.

use crate::core::Core;
use crate::ids::Name;
use crate::model::{Input, Origin};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Kind {
    Flow,
    Action,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DefinitionView {
    pub name: Name,
    pub kind: Kind,
    pub version: u32,
    pub description: Option<String>,
    pub inputs: Vec<Input>,
    pub origin: Origin,
}

impl Core {
    /// Those of one kind, in the order of their names.
    pub fn definitions_view(&self, kind: Kind) -> Vec<DefinitionView> {
        let mut views = match kind {
            Kind::Flow => self.catalog.newest_flows().map(|plan| self.view_of_flow(&plan.flow)).collect(),
            Kind::Action => self.actions_view(),
        };
        views.sort_by(|one, other| one.name.cmp(&other.name));
        views
    }

    fn view_of_flow(&self, flow: &crate::model::Flow) -> DefinitionView {
        let version = self.catalog.newest(flow.name.as_str()).map_or(0, |(version, _)| version);
        DefinitionView {
            name: flow.name.clone(),
            kind: Kind::Flow,
            version,
            description: flow.description.clone(),
            inputs: flow.inputs.clone(),
            origin: flow.origin(),
        }
    }

    fn actions_view(&self) -> Vec<DefinitionView> {
        let view = |(version, action): (u32, &crate::model::Action)| DefinitionView {
            name: action.policy.action.clone(),
            kind: Kind::Action,
            version,
            description: action.description.clone(),
            inputs: action.inputs.clone(),
            origin: action.policy.origin.clone(),
        };
        self.catalog.newest_actions().map(view).collect()
    }
}
