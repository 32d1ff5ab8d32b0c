//! Orders for chains: the chain as it stands in the file, and what its templates refer to.

use crate::evaluate::needs::walk;
use crate::evaluate::render::Renderer;
use crate::template::{MAX_TEXT, scan, value_to_json};
use minijinja::value::{Value, ValueKind};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

/// Parts of a value that are referred to, by name. One that has none is needed whole.
#[derive(Default)]
struct Wanted(BTreeMap<String, Wanted>);

/// An order that a worker renders. It is stored once for each item of a loop, so nothing comes with it that no
/// template names.
pub(super) fn order(root: &Json, renderer: &Renderer) -> Result<Json, String> {
    let mut wanted = Wanted::default();
    walk(root, &mut |text| {
        for reference in scan(text).references {
            wanted.add(&[vec![reference.root], reference.path].concat());
        }
    });
    let mut scope = Map::new();
    for (name, parts) in wanted.0 {
        // Members and `repeat` come into being on the worker.
        let Some(value) = renderer.variable(&name) else { continue };
        scope.insert(name.clone(), parts.of(&value).map_err(|error| format!("`{name}`: {error}"))?);
    }
    let order = json!({ "do": { "root": root, "scope": scope } });
    match order.to_string().len() > MAX_TEXT {
        true => Err(format!(
            "the chain and everything that its templates refer to are larger than {MAX_TEXT} bytes"
        )),
        false => Ok(order),
    }
}

impl Wanted {
    /// What is needed whole stays so.
    fn add(&mut self, path: &[String]) {
        let Some((first, rest)) = path.split_first() else { return self.0.clear() };
        match self.0.get_mut(first) {
            Some(whole) if whole.0.is_empty() => {}
            Some(part) => part.add(rest),
            None => self.0.entry(first.clone()).or_default().add(rest),
        }
    }

    /// What is not there is left out, and so is undefined there as it is here.
    fn of(&self, value: &Value) -> Result<Json, String> {
        if self.0.is_empty() || value.kind() != ValueKind::Map {
            return value_to_json(value, MAX_TEXT);
        }
        let mut parts = Map::new();
        for (name, wanted) in &self.0 {
            match value.get_item(&Value::from(name.as_str())) {
                Ok(part) if !part.is_undefined() => parts.insert(name.clone(), wanted.of(&part)?),
                _ => None,
            };
        }
        Ok(Json::Object(parts))
    }
}
