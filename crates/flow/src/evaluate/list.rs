//! The list of a loop, where it is a part of something that is stored as it stands: `{{ steps.fetch.output.json }}`.
//!
//! Such a list is cut out of the text, one item after the other. As a value of the template language it would need
//! twenty times the room, and it may have 64 MiB.

use super::too_many;
use crate::template::{scan, single_expression};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::collections::HashMap;
use tidegate_core::model::{Flow, MAX_ITEMS};
use tidegate_core::protocol::{Evaluation, Payload};

/// Where a list stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListPlace {
    pub within: Within,
    path: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Within {
    /// The inputs of the run.
    Inputs,
    /// The output of the step with this index, which is not a loop.
    Output(u32),
}

/// Where the list of this step stands, if nothing is to be done with it but to take it.
pub fn list_place(flow: &Flow, step: usize) -> Option<ListPlace> {
    let template = &flow.steps.get(step)?.each.as_ref()?.items;
    let text: String = serde_json::from_str(&template.0).ok()?;
    let (expression, _) = single_expression(&text)?;
    let found = scan(&text).references;
    let [reference] = found.as_slice() else { return None };
    // Nothing else may stand in the expression: no filter, no index, no brackets.
    let names = || std::iter::once(&reference.root).chain(&reference.path);
    if expression.trim().split('.').ne(names().map(String::as_str)) {
        return None;
    }
    match (reference.root.as_str(), reference.path.as_slice()) {
        ("inputs", path) => Some(ListPlace { within: Within::Inputs, path: path.to_vec() }),
        ("steps", [name, output, path @ ..]) if output == "output" => {
            let index = flow.steps.iter().position(|step| step.name.as_str() == name)?;
            let is_plain = flow.steps[index].each.is_none();
            is_plain.then(|| ListPlace { within: Within::Output(index as u32), path: path.to_vec() })
        }
        _ => None,
    }
}

impl ListPlace {
    /// The list that stands there in `text`. Nothing if there is none: why not, the template says.
    pub fn read(&self, text: &Payload) -> Option<Evaluation> {
        let list = self
            .path
            .iter()
            .try_fold(serde_json::from_slice(text.bytes()).ok()?, |object, name| field(object, name))?;
        Some(match count(list)? {
            count if count > MAX_ITEMS => Evaluation::Failed { error: too_many(count as usize) },
            count => Evaluation::List { items: Payload::new(list.get()), count },
        })
    }
}

fn field<'a>(object: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    let mut fields: HashMap<std::borrow::Cow<'a, str>, &'a RawValue> =
        serde_json::from_str(object.get()).ok()?;
    fields.remove(name)
}

/// How many items a list has, if it is one and each of them can be read.
fn count(list: &RawValue) -> Option<u32> {
    struct Counted(u32);
    impl<'de> serde::de::Visitor<'de> for Counted {
        type Value = u32;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: serde::de::SeqAccess<'de>>(mut self, mut items: A) -> Result<u32, A::Error> {
            while items.next_element::<Json>()?.is_some() {
                self.0 = self.0.saturating_add(1);
            }
            Ok(self.0)
        }
    }
    serde::Deserializer::deserialize_seq(&mut serde_json::Deserializer::from_str(list.get()), Counted(0)).ok()
}
