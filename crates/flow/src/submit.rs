//! What happens before a run is submitted: its inputs are checked, its tags and key rendered.

use crate::evaluate::Renderer;
use crate::problem::quoted;
use crate::yaml::json_kind;
use serde_json::{Map, Value as Json};
use std::fmt;
use thiserror::Error;
use tidegate_core::ids::Name;
use tidegate_core::model::{Flow, Input, InputType, PRIORITIES};
use tidegate_core::suggest::nearest;

/// A run, ready to be submitted.
#[derive(Clone, PartialEq, Debug)]
pub struct Submission {
    /// An object with every declared input; one that is optional and was not given is null.
    pub inputs: Json,
    pub tags: Vec<(Name, Name)>,
    pub key: Option<Name>,
}

/// Why a run cannot be submitted. All of it at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused(pub Vec<SubmitError>);

#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SubmitError {
    #[error("the inputs must be an object, not {found}")]
    NotAnObject { found: &'static str },
    #[error("input `{input}` is required")]
    Missing { input: String },
    #[error("there is no input `{input}`{}", suggestion(meant))]
    Unknown { input: String, meant: Option<String> },
    #[error("input `{input}` must be {expected}, not {found}")]
    WrongType { input: String, expected: &'static str, found: &'static str },
    #[error("input `{input}` must be {expected}: `{text}` is not")]
    NotConvertible { input: String, expected: &'static str, text: String },
    #[error("input `{input}` is given twice")]
    Twice { input: String },
    #[error("`{field}`: {reason}")]
    Template { field: String, reason: String },
    #[error("a priority must be between {} and {}", PRIORITIES.start(), PRIORITIES.end())]
    Priority,
}

fn suggestion(meant: &Option<String>) -> String {
    meant.as_ref().map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default()
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl std::error::Error for Refused {}

/// Checks `given` against the flow's inputs, and renders its tags and key.
pub fn submission(flow: &Flow, given: Json) -> Result<Submission, Refused> {
    let inputs = check_inputs(&flow.inputs, given)?;
    let renderer = Renderer::over_inputs(&inputs);
    let mut errors = Vec::new();
    let mut keep = |result: Result<Option<Name>, String>, field: String| match result {
        Ok(text) => text,
        Err(reason) => {
            errors.push(SubmitError::Template { field, reason });
            None
        }
    };
    let mut tags = Vec::new();
    for (tag, template) in &flow.tags {
        let value = keep(renderer.name(template), format!("tags.{tag}"));
        tags.extend(value.map(|value| (tag.clone(), value)));
    }
    let key = match &flow.key {
        Some(template) => keep(renderer.name(template), "key".to_owned()),
        None => None,
    };
    if errors.is_empty() { Ok(Submission { inputs, tags, key }) } else { Err(Refused(errors)) }
}

/// An object with a value for every declared input, or everything that is wrong with `given`.
pub fn check_inputs(inputs: &[Input], given: Json) -> Result<Json, Refused> {
    let mut given = match given {
        Json::Object(given) => given,
        Json::Null => Map::new(),
        other => return Err(Refused(vec![SubmitError::NotAnObject { found: json_kind(&other) }])),
    };
    let mut errors = Vec::new();
    let mut checked = Map::new();
    for input in inputs {
        let name = input.name.as_str();
        let value = match given.remove(name) {
            // Whoever sends null for a typed input means "not given".
            None | Some(Json::Null) => match &input.default {
                Some(default) => serde_json::from_str(default).unwrap_or(Json::Null),
                None if input.required => {
                    errors.push(SubmitError::Missing { input: name.to_owned() });
                    continue;
                }
                None => Json::Null,
            },
            Some(value) => {
                if let Err(expected) = fits(input.kind, &value) {
                    let (input, found) = (name.to_owned(), json_kind(&value));
                    errors.push(SubmitError::WrongType { input, expected, found });
                }
                value
            }
        };
        checked.insert(name.to_owned(), value);
    }
    errors.extend(given.keys().map(|name| unknown(inputs, name)));
    if errors.is_empty() { Ok(Json::Object(checked)) } else { Err(Refused(errors)) }
}

/// Inputs as they come from a command line: text, converted to the declared types.
pub fn inputs_from_text<'a>(
    inputs: &[Input],
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Json, Refused> {
    let mut errors = Vec::new();
    let mut given = Map::new();
    for (name, text) in pairs {
        let Some(input) = inputs.iter().find(|input| input.name.as_str() == name) else {
            errors.push(unknown(inputs, name));
            continue;
        };
        match convert(input.kind, text) {
            Some(value) => {
                if given.insert(name.to_owned(), value).is_some() {
                    errors.push(SubmitError::Twice { input: name.to_owned() });
                }
            }
            None => errors.push(SubmitError::NotConvertible {
                input: name.to_owned(),
                expected: expected(input.kind),
                text: quoted(text),
            }),
        }
    }
    if errors.is_empty() { Ok(Json::Object(given)) } else { Err(Refused(errors)) }
}

/// A priority in the range users may give.
pub fn priority(value: i64) -> Result<i8, SubmitError> {
    i8::try_from(value).ok().filter(|value| PRIORITIES.contains(value)).ok_or(SubmitError::Priority)
}

fn unknown(inputs: &[Input], name: &str) -> SubmitError {
    let meant = nearest(name, inputs.iter().map(|input| input.name.as_str()));
    SubmitError::Unknown { input: quoted(name), meant }
}

fn expected(kind: InputType) -> &'static str {
    match kind {
        InputType::String => "text",
        InputType::Integer => "an integer",
        InputType::Number => "a number",
        InputType::Boolean => "`true` or `false`",
        InputType::List => "a list",
        InputType::Object => "an object",
        InputType::Any => "anything",
    }
}

/// Whether a value is of a type; if not, what the type is called.
pub(crate) fn fits(kind: InputType, value: &Json) -> Result<(), &'static str> {
    let fits = match kind {
        InputType::String => value.is_string(),
        InputType::Integer => value.is_i64() || value.is_u64(),
        InputType::Number => value.is_number(),
        InputType::Boolean => value.is_boolean(),
        InputType::List => value.is_array(),
        InputType::Object => value.is_object(),
        InputType::Any => true,
    };
    if fits { Ok(()) } else { Err(expected(kind)) }
}

fn convert(kind: InputType, text: &str) -> Option<Json> {
    let parsed = || serde_json::from_str::<Json>(text).ok();
    match kind {
        InputType::String => Some(Json::String(text.to_owned())),
        // `-i name=ada` should not need quotes within quotes.
        InputType::Any => Some(parsed().unwrap_or_else(|| Json::String(text.to_owned()))),
        _ => parsed().filter(|value| fits(kind, value).is_ok()),
    }
}
