//! `inputs:` of a flow or an action: names, types, defaults.

use super::context::Context;
use crate::grammar::{self, INPUT_TYPES};
use crate::problem::Problem;
use crate::submit::fits;
use crate::yaml::{Entry, json_kind};
use std::sync::Arc;
use tidegate_core::model::{Input, InputType};

pub(super) fn compile(cx: &mut Context<'_>, entry: Option<&Entry>) -> Vec<Input> {
    let Some(entry) = entry else { return Vec::new() };
    cx.entries(entry).iter().filter_map(|entry| input(cx, entry)).collect()
}

/// The names alone, those of broken inputs included: using them is not a second mistake.
pub(super) fn names(entry: Option<&Entry>) -> Vec<String> {
    entry
        .map(|entry| entry.node.entries().iter().map(|input| input.key.clone()).collect())
        .unwrap_or_default()
}

fn input(cx: &mut Context<'_>, entry: &Entry) -> Option<Input> {
    let name = cx.identifier(&entry.key, entry.key_span, "an input");
    let fields = cx.fields(&entry.node, &entry.key, &grammar::INPUT)?;
    let kind = match fields.get("type") {
        Some(entry) => cx.choice(entry, &INPUT_TYPES)?,
        None => InputType::Any,
    };
    let required = fields.get("required").and_then(|entry| cx.flag(entry)).unwrap_or(false);
    let description =
        fields.get("description").and_then(|entry| cx.text(&entry.node, "description")).map(str::to_owned);
    let default = fields.get("default").map(|default| {
        let value = default.node.json();
        if required {
            let problem = Problem::RequiredWithDefault { input: entry.key.clone() };
            cx.report(default.key_span, problem);
        }
        if let Err(expected) = fits(kind, &value) {
            let found = json_kind(&value);
            let problem = Problem::BadDefault { input: entry.key.clone(), expected, found };
            cx.report(default.node.span, problem);
        }
        Arc::from(value.to_string())
    });
    Some(Input { name: name?, kind, required, default, description })
}
