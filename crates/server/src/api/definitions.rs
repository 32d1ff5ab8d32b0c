//! What was declared: flows and actions.

use crate::app::App;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use tidegate::Error;
use tidegate_core::model::Input;
use tidegate_core::overview::{DefinitionView, Kind};
use utoipa::ToSchema;

/// A flow or an action.
#[derive(Serialize, ToSchema)]
pub struct Definition {
    name: String,
    /// Counts up with every change of what it does.
    version: u32,
    description: Option<String>,
    inputs: Vec<InputView>,
    /// Where it stands: file and line.
    declared_at: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct InputView {
    name: String,
    /// `string`, `integer`, `number`, `boolean`, `list`, `object` or `any`.
    #[serde(rename = "type")]
    kind: &'static str,
    required: bool,
    default: Value,
    description: Option<String>,
}

impl Definition {
    fn of(view: DefinitionView) -> Definition {
        Definition {
            name: view.name.to_string(),
            version: view.version,
            description: view.description,
            inputs: view.inputs.iter().map(InputView::of).collect(),
            declared_at: view.origin.file.is_some().then(|| view.origin.to_string()),
        }
    }
}

impl InputView {
    fn of(input: &Input) -> InputView {
        let default = input.default.as_deref().and_then(|text| serde_json::from_str(text).ok());
        InputView {
            name: input.name.to_string(),
            kind: input.kind.as_str(),
            required: input.required,
            default: default.unwrap_or_default(),
            description: input.description.clone(),
        }
    }
}

async fn declared(app: &App, kind: Kind) -> Result<Json<Vec<Definition>>, Problem> {
    let views = app.tide.engine().definitions(kind).await.map_err(Error::from)?;
    Ok(Json(views.into_iter().map(Definition::of).collect()))
}

/// Flows that were declared, by name.
#[utoipa::path(get, path = "/api/v1/flows", tag = "definitions", responses((status = OK, description = "All of them.", body = Vec<Definition>)))]
pub async fn flows(State(app): State<App>) -> Result<Json<Vec<Definition>>, Problem> {
    declared(&app, Kind::Flow).await
}

/// Actions that were declared, by name.
#[utoipa::path(get, path = "/api/v1/actions", tag = "definitions", responses((status = OK, description = "All of them.", body = Vec<Definition>)))]
pub async fn actions(State(app): State<App>) -> Result<Json<Vec<Definition>>, Problem> {
    declared(&app, Kind::Action).await
}
