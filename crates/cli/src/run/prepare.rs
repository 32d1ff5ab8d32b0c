//! From a file and arguments to something to submit.

use crate::args;
use crate::failure::{Exit, Failure};
use crate::files::Source;
use serde_json::{Map, Value as Json};
use std::path::Path;
use tidegate_core::model::Flow;
use tidegate_flow::Document;
use tidegate_flow::submit::{Refused, inputs_from_text, submission};

pub struct Prepared {
    pub document: Document,
    pub flow: Flow,
    /// Checked.
    pub inputs: Json,
}

impl Prepared {
    pub fn read(file: &Path, options: &args::Run) -> Result<Prepared, Failure> {
        let document = document(file)?;
        let flow = choose(&document.flows, file, options)?.clone();
        let given = inputs(&flow, options)?;
        let checked = submission(&flow, given).map_err(|refused| wrong_inputs(&refused, &flow, options))?;
        Ok(Prepared { document, flow, inputs: checked.inputs })
    }
}

pub fn document(file: &Path) -> Result<Document, Failure> {
    let beside = Source::beside(file)?;
    Ok(Source::read(file)?.parse(beside.as_ref())?)
}

/// The flow of a file that is meant.
pub fn choose<'a>(flows: &'a [Flow], file: &Path, options: &args::Run) -> Result<&'a Flow, Failure> {
    let chosen = match &options.flow {
        Some(name) => flows.iter().find(|flow| flow.name.as_str() == name),
        None => flows.first(),
    };
    chosen.ok_or_else(|| {
        let sentence = match &options.flow {
            Some(name) => format!("there is no flow `{name}` in this file"),
            None => "there is no flow in this file".to_owned(),
        };
        let failure = Failure::new("no-flow", sentence).at(file.display()).exit(Exit::Invalid);
        let names: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
        if names.is_empty() { failure } else { failure.help(format!("it has {}", names.join(", "))) }
    })
}

/// From the file of inputs, and over it what was given one by one.
fn inputs(flow: &Flow, options: &args::Run) -> Result<Json, Failure> {
    let mut given = match &options.inputs {
        Some(path) => object(path)?,
        None => Map::new(),
    };
    let pairs = options.input.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let single =
        inputs_from_text(&flow.inputs, pairs).map_err(|refused| wrong_inputs(&refused, flow, options))?;
    given.extend(single.as_object().cloned().unwrap_or_default());
    Ok(Json::Object(given))
}

fn object(path: &Path) -> Result<Map<String, Json>, Failure> {
    let source = Source::read(path)?;
    let wrong = |why: String| Failure::new("inputs", why).at(path.display()).exit(Exit::Invalid);
    match serde_json::from_slice(&source.bytes) {
        Ok(Json::Object(values)) => Ok(values),
        Ok(_) => Err(wrong("the inputs must be a JSON object".to_owned())),
        Err(error) => Err(wrong(format!("the inputs are not JSON: {error}"))),
    }
}

fn wrong_inputs(refused: &Refused, flow: &Flow, options: &args::Run) -> Failure {
    let place = match &options.inputs {
        Some(path) => format!("{} and the command line", path.display()),
        None => "the command line".to_owned(),
    };
    let failure = Failure::new("inputs", refused.to_string()).at(place).exit(Exit::Invalid);
    let declared: Vec<String> = flow
        .inputs
        .iter()
        .map(
            |input| {
                if input.required { format!("{} (required)", input.name) } else { input.name.to_string() }
            },
        )
        .collect();
    match declared.is_empty() {
        true => failure.help(format!("flow `{}` has no inputs", flow.name)),
        false => failure.help(format!("flow `{}` has the inputs {}", flow.name, declared.join(", "))),
    }
}
