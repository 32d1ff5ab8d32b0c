//! From a file and arguments to something to submit.

use crate::args;
use crate::failure::{Exit, Failure};
use crate::files::{Set, name_of, read_bounded};
use serde_json::{Map, Value as Json};
use std::path::Path;
use tidegate_core::ids::Name;
use tidegate_core::model::{Action, Flow, Input, Origin};
use tidegate_core::protocol::LARGEST_PAYLOAD;
use tidegate_flow::Document;
use tidegate_flow::submit::{Refused, check_inputs, inputs_from_text, submission};

pub struct Prepared {
    pub document: Document,
    pub chosen: Chosen,
    /// Checked.
    pub inputs: Json,
    pub tags: Vec<(String, String)>,
    pub priority: i8,
}

/// What a file is to do.
#[derive(Clone)]
pub enum Chosen {
    Flow(Flow),
    /// An action by itself.
    Action(Action),
}

impl Chosen {
    pub fn name(&self) -> &Name {
        match self {
            Chosen::Flow(flow) => &flow.name,
            Chosen::Action(action) => &action.policy.action,
        }
    }

    fn inputs(&self) -> &[Input] {
        match self {
            Chosen::Flow(flow) => &flow.inputs,
            Chosen::Action(action) => &action.inputs,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Chosen::Flow(_) => "flow",
            Chosen::Action(_) => "action",
        }
    }

    /// Inputs with their defaults, if they are what was declared.
    fn check(&self, given: Json) -> Result<Json, Refused> {
        match self {
            Chosen::Flow(flow) => submission(flow, given).map(|checked| checked.inputs),
            Chosen::Action(action) => check_inputs(&action.inputs, given),
        }
    }
}

impl Prepared {
    pub fn read(file: &Path, options: &args::Run) -> Result<Prepared, Failure> {
        let document = document(file)?;
        let chosen = choose(&document, file, options)?;
        super::workers::has_all(&document, &chosen)?;
        let given = inputs(&chosen, options)?;
        let inputs = chosen.check(given).map_err(|refused| wrong_inputs(&refused, &chosen, options))?;
        let (tags, priority) = (options.tag.clone(), options.priority);
        Ok(Prepared { document, chosen, inputs, tags, priority })
    }
}

pub fn document(file: &Path) -> Result<Document, Failure> {
    Ok(Set::read(file)?.parse()?)
}

/// The flow or action that is meant: the first flow of the file, or its only action, unless one is named, which may also
/// be one of a pack.
pub fn choose(document: &Document, file: &Path, options: &args::Run) -> Result<Chosen, Failure> {
    let Document { flows, actions, .. } = document;
    let flow_names: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
    let action_names: Vec<&str> = actions.iter().map(|action| action.policy.action.as_str()).collect();
    let flow = |at: usize| Chosen::Flow(flows[at].clone());
    let action = |at: usize| Chosen::Action(actions[at].clone());
    let at = |names: &[&str], wanted: &String| names.iter().position(|name| name == wanted);
    let here = name_of(file);
    let of_file = |origin: &Origin| origin.file.as_ref().is_some_and(|name| name.as_str() == here);
    let first = flows.iter().position(|flow| flow.file.as_str() == here);
    let own: Vec<usize> = (0..actions.len()).filter(|at| of_file(&actions[*at].policy.origin)).collect();
    let chosen = match (&options.flow, &options.action) {
        (Some(wanted), _) => at(&flow_names, wanted).map(flow),
        (None, Some(wanted)) => at(&action_names, wanted).map(action),
        (None, None) => first.map(flow).or_else(|| (own.len() == 1).then(|| action(own[0]))),
    };
    chosen.ok_or_else(|| {
        let (code, sentence, names) = match (&options.flow, &options.action) {
            (Some(name), _) => ("no-flow", format!("there is no flow `{name}` in this file"), flow_names),
            (None, Some(name)) => {
                ("no-action", format!("there is no action `{name}` in this file"), action_names)
            }
            (None, None) if own.is_empty() => {
                ("no-flow", "there is no flow and no action in this file".to_owned(), flow_names)
            }
            (None, None) => (
                "which-action",
                "there is no flow in this file, and more than one action: name it with --action".to_owned(),
                own.iter().map(|at| action_names[*at]).collect(),
            ),
        };
        let failure = Failure::new(code, sentence).at(file.display()).exit(Exit::Invalid);
        let is_named = options.flow.is_some() || options.action.is_some();
        let whose = if is_named || !own.is_empty() { "it has" } else { "packs have" };
        if names.is_empty() { failure } else { failure.help(format!("{whose} {}", names.join(", "))) }
    })
}

/// From the file of inputs, and over it what was given one by one.
fn inputs(chosen: &Chosen, options: &args::Run) -> Result<Json, Failure> {
    let mut given = match &options.inputs {
        Some(path) => object(path)?,
        None => Map::new(),
    };
    let pairs = options.input.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let single = inputs_from_text(chosen.inputs(), pairs)
        .map_err(|refused| wrong_inputs(&refused, chosen, options))?;
    given.extend(single.as_object().cloned().unwrap_or_default());
    Ok(Json::Object(given))
}

fn object(path: &Path) -> Result<Map<String, Json>, Failure> {
    let bytes = read_bounded(path, LARGEST_PAYLOAD)?;
    let wrong = |why: String| Failure::new("inputs", why).at(path.display()).exit(Exit::Invalid);
    match serde_json::from_slice(&bytes) {
        Ok(Json::Object(values)) => Ok(values),
        Ok(_) => Err(wrong("the inputs must be a JSON object".to_owned())),
        Err(error) => Err(wrong(format!("the inputs are not JSON: {error}"))),
    }
}

fn wrong_inputs(refused: &Refused, chosen: &Chosen, options: &args::Run) -> Failure {
    let place = match &options.inputs {
        Some(path) => format!("{} and the command line", path.display()),
        None => "the command line".to_owned(),
    };
    let failure = Failure::new("inputs", refused.to_string()).at(place).exit(Exit::Invalid);
    let declared = |input: &Input| match input.required {
        true => format!("{} (required)", input.name),
        false => input.name.to_string(),
    };
    let declared: Vec<String> = chosen.inputs().iter().map(declared).collect();
    let (kind, name) = (chosen.kind(), chosen.name());
    match declared.is_empty() {
        true => failure.help(format!("{kind} `{name}` has no inputs")),
        false => failure.help(format!("{kind} `{name}` has the inputs {}", declared.join(", "))),
    }
}
