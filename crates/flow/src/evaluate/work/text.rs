//! Values that become text, and references to secrets, which stay what they are.

use crate::evaluate::render::{Renderer, plain_text};
use crate::problem::quoted;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use tidegate_core::model::Text;

pub(super) fn text(renderer: &Renderer, value: &Json, path: &str) -> Result<String, String> {
    plain(&renderer.json(value, path)?, path)
}

pub(super) fn text_or_secret(renderer: &Renderer, value: &Json, path: &str) -> Result<Text, String> {
    match secret(value) {
        Some(secret) => Ok(secret),
        None => text(renderer, value, path).map(Text::Plain),
    }
}

/// Names and values, without those that are null.
pub(super) fn texts(
    renderer: &Renderer,
    values: &Json,
    field: &str,
) -> Result<BTreeMap<String, Text>, String> {
    let mut texts = BTreeMap::new();
    for (name, value) in values.as_object().into_iter().flatten() {
        let path = format!("{field}.{name}");
        let text = match secret(value) {
            Some(secret) => secret,
            None => match renderer.json(value, &path)? {
                Json::Null => continue,
                value => Text::Plain(plain(&value, &path)?),
            },
        };
        texts.insert(name.clone(), text);
    }
    Ok(texts)
}

fn secret(value: &Json) -> Option<Text> {
    value["secret"].as_str().map(|secret| Text::Secret { secret: secret.to_owned() })
}

fn plain(value: &Json, path: &str) -> Result<String, String> {
    plain_text(value).map_err(|error| format!("`{}`: {error}", quoted(path)))
}
