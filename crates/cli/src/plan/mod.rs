//! `tidegate plan`: what a flow would do, and which limits it would meet, without doing anything.
//!
//! - [`sketch`]: what there is to tell, with the limits asked of a core that nothing was ever submitted to
//! - [`time`]: the longest way through it, and how long that may take
//! - [`draw`]: as text; [`json`]: for programs

mod draw;
mod json;
mod sketch;
mod time;

use crate::args::{self, Output};
use crate::failure::{Exit, Failure};
use crate::files::{Set, name_of};
use crate::out::print;
use serde_json::Value as Json;
use sketch::{Sketch, Surroundings};
use tidegate_core::Core;
use tidegate_core::model::Flow;
use tidegate_core::protocol::{Command, Declare};
use tidegate_core::time::Moment;
use tidegate_flow::Document;
use tidegate_flow::submit::{Refused, Submission, inputs_from_text, submission};

pub fn plan(options: &args::Plan) -> Result<Exit, Failure> {
    let document = Set::read(&options.file)?.parse_for_server()?;
    let flow = choose(&document, options)?;
    let submission = submitted(flow, options)?;
    let core = declared(&document);
    let sketch = Sketch::of(flow, submission.as_ref(), &Surroundings { core: &core, document: &document });
    match options.output {
        Output::Text => draw::lines(&sketch).into_iter().try_for_each(print)?,
        Output::Json => print(format!("{:#}", json::object(&sketch)))?,
    }
    Ok(Exit::Success)
}

/// A core that knows the document and nothing else.
pub fn declared(document: &Document) -> Core {
    let Document { flows, limits, actions, files } = document.clone();
    let mut core = Core::new(1);
    core.apply(Command::Declare(Declare { flows, actions, limits, files }), Moment(0));
    core
}

fn choose<'d>(document: &'d Document, options: &args::Plan) -> Result<&'d Flow, Failure> {
    let here = name_of(&options.file);
    let is_meant = |flow: &&Flow| match &options.flow {
        Some(wanted) => flow.name.as_str() == wanted,
        None => flow.file.as_str() == here,
    };
    document.flows.iter().find(is_meant).ok_or_else(|| {
        let sentence = match &options.flow {
            Some(name) => format!("there is no flow `{name}` in this file"),
            None => "there is no flow in this file".to_owned(),
        };
        let failure = Failure::new("no-flow", sentence).at(options.file.display()).exit(Exit::Invalid);
        let names: Vec<&str> = document.flows.iter().map(|flow| flow.name.as_str()).collect();
        if names.is_empty() { failure } else { failure.help(format!("there are {}", names.join(", "))) }
    })
}

/// What would be submitted; nothing, if that depends on inputs which nobody gave.
fn submitted(flow: &Flow, options: &args::Plan) -> Result<Option<Submission>, Failure> {
    let refused = |refused: Refused| {
        Failure::new("inputs", refused.to_string()).at("the command line").exit(Exit::Invalid)
    };
    let pairs = options.input.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let given: Json = inputs_from_text(&flow.inputs, pairs).map_err(refused)?;
    match submission(flow, given) {
        Ok(submission) => Ok(Some(submission)),
        Err(_) if options.input.is_empty() => Ok(None),
        Err(error) => Err(refused(error)),
    }
}
