//! JSON with templates in its strings, rendered.

use crate::problem::quoted;
use crate::template::{Compiled, Limits, MAX_TEXT, render, value_of};
use minijinja::value::Value;
use serde_json::Value as Json;
use std::sync::Arc;
use tidegate_core::ids::{LONGEST_NAME, Name};
use tidegate_core::model::Template;
use tidegate_core::protocol::LARGEST_PAYLOAD;

pub(super) const ORDER: Limits = Limits { text: MAX_TEXT, value: MAX_TEXT };
pub(super) const OUTPUT: Limits = Limits { text: LARGEST_PAYLOAD, value: LARGEST_PAYLOAD };

/// Variables, and how large what is made of them may become.
pub(crate) struct Renderer {
    context: Value,
    limits: Limits,
    compiled: Arc<Compiled>,
}

impl Renderer {
    pub fn new(context: Value) -> Renderer {
        Renderer::limited(context, ORDER)
    }

    pub fn limited(context: Value, limits: Limits) -> Renderer {
        Renderer { context, limits, compiled: Arc::default() }
    }

    /// For what sees nothing but inputs: tags, keys, actions.
    pub fn over_inputs(inputs: &Json) -> Renderer {
        Renderer::new(Value::from_pairs([("inputs", value_of(inputs))]))
    }

    /// What of its templates has been compiled, for one who renders the same with other variables.
    pub fn templates(&self) -> Arc<Compiled> {
        self.compiled.clone()
    }

    pub fn compiled(self, compiled: Arc<Compiled>) -> Renderer {
        Renderer { compiled, ..self }
    }

    /// One of the variables, if there is one of that name.
    pub fn variable(&self, name: &str) -> Option<Value> {
        self.context.get_item(&Value::from(name)).ok().filter(|value| !value.is_undefined())
    }

    /// `path` says where the template stands, for errors.
    pub fn template(&self, template: &Template, path: &str) -> Result<Json, String> {
        let value = serde_json::from_str(&template.0)
            .map_err(|error| format!("`{path}` is not a template: {error}"))?;
        self.json(&value, path)
    }

    /// A tag's value or a key: text; null is none at all.
    pub fn name(&self, template: &Template) -> Result<Option<Name>, String> {
        let text = match self.template(template, "")? {
            Json::Null => return Ok(None),
            value => plain_text(&value)?,
        };
        if text.len() > LONGEST_NAME {
            return Err(format!("the text is longer than {LONGEST_NAME} bytes"));
        }
        Ok(Some(Name::from(text)))
    }

    pub fn json(&self, value: &Json, path: &str) -> Result<Json, String> {
        match value {
            Json::String(text) => render(text, &self.context, self.limits, &self.compiled).map_err(|error| {
                match path.is_empty() {
                    true => error,
                    false => format!("`{}`: {error}", quoted(path)),
                }
            }),
            Json::Array(items) => {
                let item = |(index, item)| self.json(item, &format!("{path}[{index}]"));
                items.iter().enumerate().map(item).collect::<Result<_, _>>().map(Json::Array)
            }
            Json::Object(fields) => {
                let field = |(name, value): (&String, &Json)| {
                    Ok((name.clone(), self.json(value, &format!("{path}.{name}"))?))
                };
                fields.iter().map(field).collect::<Result<_, String>>().map(Json::Object)
            }
            plain => Ok(plain.clone()),
        }
    }
}

/// A value as a program's argument: text as it is, everything else as JSON.
pub(super) fn plain_text(value: &Json) -> Result<String, String> {
    match value {
        Json::String(text) if text.contains('\0') => Err("the text contains a zero byte".to_owned()),
        Json::String(text) => Ok(text.clone()),
        Json::Null => Err("the value is null".to_owned()),
        other => Ok(other.to_string()),
    }
}
