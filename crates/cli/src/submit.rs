//! `tidegate submit`: something for a server to do.

use crate::args::{self, Output};
use crate::failure::{Exit, Failure};
use crate::out::{print, say};
use crate::server::{connect, failed};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use std::time::Duration;
use tidegate_core::ids::Name;
use tidegate_core::model::{Input, InputType};
use tidegate_flow::submit::inputs_from_text;
use tidegate_remote::Client;

/// How long one request waits for the end of a run.
const WAIT: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
struct Accepted {
    id: String,
}

#[derive(Deserialize)]
struct Definition {
    name: String,
    inputs: Vec<Declared>,
}

#[derive(Deserialize)]
struct Declared {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    required: bool,
}

pub async fn submit(options: &args::Submit, quiet: bool) -> Result<Exit, Failure> {
    let client = connect(&options.server)?;
    let inputs = inputs(&client, options).await?;
    let tags: Map<String, Json> =
        options.tag.iter().map(|(tag, value)| (tag.clone(), json!(value))).collect();
    let mut run = json!({
        "name": options.name, "inputs": inputs, "tags": tags, "priority": options.priority,
    });
    if let Some(delay) = &options.delay {
        run["delay"] = json!(delay);
    }
    if let Some(at) = &options.at {
        run["at"] = json!(at);
    }
    let accepted: Accepted = client
        .post_keyed("/api/v1/runs", &run, options.key.as_deref())
        .await
        .map_err(|error| failed(&error))?;
    if !options.wait {
        print(&accepted.id)?;
        return Ok(Exit::Success);
    }
    if !quiet {
        say(format!("{} was accepted", accepted.id));
    }
    wait(&client, &accepted.id, options.output).await
}

/// Values of the types that were declared. What nobody declares is JSON, or text.
async fn inputs(client: &Client, options: &args::Submit) -> Result<Json, Failure> {
    let mut declared = Vec::new();
    for kind in ["flows", "actions"] {
        let known: Vec<Definition> =
            client.get(&format!("/api/v1/{kind}")).await.map_err(|error| failed(&error))?;
        let meant = known.into_iter().find(|known| known.name == options.name);
        declared.extend(meant.into_iter().flat_map(|known| known.inputs));
    }
    let mut inputs: Vec<Input> = declared.iter().map(input).collect();
    for (name, _) in &options.input {
        if declared.is_empty() && inputs.iter().all(|known| known.name.as_str() != name) {
            inputs.push(input(&Declared { name: name.clone(), kind: "any".to_owned(), required: false }));
        }
    }
    let pairs = options.input.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    inputs_from_text(&inputs, pairs).map_err(|refused| {
        Failure::new("inputs", refused.to_string()).at("the command line").exit(Exit::Invalid)
    })
}

fn input(declared: &Declared) -> Input {
    let kind = InputType::parse(&declared.kind).unwrap_or(InputType::Any);
    let name = Name::new(&declared.name);
    Input { name, kind, required: declared.required, default: None, description: None }
}

/// Until it has ended, and says how.
async fn wait(client: &Client, id: &str, output: Output) -> Result<Exit, Failure> {
    let path = format!("/api/v1/runs/{id}?wait={}s", WAIT.as_secs());
    loop {
        let run: Json = match client.wait_for(&path, WAIT).await {
            Ok(run) => run,
            // The run goes on, whether or not its server can be reached now.
            Err(error) if error.may_pass() => {
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
            Err(error) => return Err(failed(&error)),
        };
        if run["ended"].is_null() {
            continue;
        }
        let state = run["state"].as_str().unwrap_or_default().replace('_', " ");
        if state == "succeeded" {
            match output {
                Output::Json => print(&run["output"])?,
                Output::Text => crate::run::outputs_text(&run["output"])?,
            }
            return Ok(Exit::Success);
        }
        let why = run["error"].as_str().map(|error| format!(": {error}")).unwrap_or_default();
        return Err(Failure::new("failed", format!("{id} {state}{why}")).exit(Exit::Failed));
    }
}
