//! Definitions from files: compared with what is declared, and declared.

use crate::access::Caller;
use crate::app::App;
use crate::extract::Body;
use crate::problem::{Fault, Problem};
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use tidegate::{Diagnostics, Error, Name};
use tidegate_core::protocol::{Command, Declare};
use tidegate_engine::Definition;
use tidegate_flow::{Document, Elsewhere, File, parse_files};
use utoipa::ToSchema;

/// Files that belong together: what one of them uses, another may declare.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDefinitions {
    #[schema(min_items = 1, max_items = 1000)]
    files: Vec<NewFile>,
    /// Change nothing, and say what would change.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFile {
    /// As messages call it.
    #[schema(example = "flows/nightly.yaml")]
    name: String,
    /// All that stands in it.
    #[schema(example = "flow: nightly\nsteps: { one: { run: [echo, hello] } }\n")]
    text: String,
    /// The pack it is part of.
    #[serde(default)]
    pack: Option<String>,
}

/// What is different from before.
#[derive(Serialize, ToSchema)]
pub struct Applied {
    flows: Vec<Difference>,
    actions: Vec<Difference>,
    /// Whether the files say something about limits and pools, which then holds.
    limits: bool,
}

#[derive(Serialize, ToSchema)]
pub struct Difference {
    name: String,
    /// `new`, `changed` or `same`.
    change: &'static str,
}

/// Declare flows, actions, limits and pools. What is open goes on as it began; limits hold at once.
#[utoipa::path(
    put, path = "/api/v1/definitions", tag = "definitions", request_body = NewDefinitions,
    responses(
        (status = OK, description = "What is different from before.", body = Applied),
        (status = UNPROCESSABLE_ENTITY, description = "Something is wrong with the files: nothing has changed.", body = Problem),
    )
)]
pub async fn apply(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(new): Body<NewDefinitions>,
) -> Result<Json<Applied>, Problem> {
    let files: Vec<File<'_>> = new
        .files
        .iter()
        .map(|file| File { name: &file.name, bytes: file.text.as_bytes(), pack: file.pack.as_deref() })
        .collect();
    let document = parse_files(&files, Elsewhere::Workers).map_err(|wrong| faults(&wrong))?;
    let applied = compare(&app, &document).await?;
    if !new.dry_run {
        let Document { flows, actions, limits, files } = document;
        let declare = Command::Declare(Declare { flows, actions, limits, files });
        app.of(&caller).ask(declare).await?;
    }
    Ok(Json(applied))
}

async fn compare(app: &App, document: &Document) -> Result<Applied, Problem> {
    let known = async |name: &Name| app.tide.engine().definition(name.clone()).await.map_err(Error::from);
    let (mut flows, mut actions) = (Vec::new(), Vec::new());
    for flow in &document.flows {
        let change = match known(&flow.name).await? {
            Definition::Flow(before) if *before == *flow => "same",
            Definition::Unknown => "new",
            _ => "changed",
        };
        flows.push(Difference { name: flow.name.to_string(), change });
    }
    for action in &document.actions {
        let change = match known(&action.policy.action).await? {
            Definition::Action(before) if *before == *action => "same",
            Definition::Unknown => "new",
            _ => "changed",
        };
        actions.push(Difference { name: action.policy.action.to_string(), change });
    }
    Ok(Applied { flows, actions, limits: document.limits.is_some() })
}

fn faults(wrong: &Diagnostics) -> Problem {
    let fault = |one: &tidegate_flow::Diagnostic| Fault {
        file: wrong.file_name(one).to_owned(),
        line: one.line,
        column: one.column,
        code: one.problem.code(),
        message: one.problem.to_string(),
        help: one.problem.help(),
    };
    let detail = format!("the files have {} errors", wrong.len());
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-files", detail)
        .with(wrong.iter().map(fault).collect())
}
