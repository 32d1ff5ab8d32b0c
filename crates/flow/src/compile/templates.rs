//! Templates as they stand in a file: checked string by string, then kept as JSON text.

use super::context::Context;
use crate::problem::Problem;
use crate::source::Span;
use crate::template::{Names, check, scan, single_expression};
use crate::yaml::{Node, Value};
use serde_json::Value as Json;
use std::sync::Arc;
use tidegate_core::model::Template;

pub(super) fn template_of(value: &Json) -> Template {
    Template(Arc::from(value.to_string()))
}

impl Context<'_> {
    /// Checks every string inside `node`, and keeps the whole as a template.
    pub fn template(&mut self, node: &Node, names: Names<'_>) -> Template {
        self.check_templates(node, names);
        template_of(&node.json())
    }

    pub fn check_templates(&mut self, node: &Node, names: Names<'_>) {
        if self.diagnostics.is_full() {
            return;
        }
        match &node.value {
            Value::Scalar { text, .. } => {
                for (problem, start, end) in check(text, names) {
                    let span = self.locate(node.span, text, start, end);
                    self.report(span, problem);
                }
            }
            Value::List(items) => items.iter().for_each(|item| self.check_templates(item, names)),
            Value::Map(entries) => {
                entries.iter().for_each(|entry| self.check_templates(&entry.node, names));
            }
        }
    }

    /// A field that must be one `{{ expression }}`.
    pub fn expression(&mut self, node: &Node, field: &'static str, names: Names<'_>) -> Option<Template> {
        let Some(text) = node.text().filter(|text| single_expression(text).is_some()) else {
            // A broken expression is better explained by what is broken in it.
            let before = self.diagnostics.len();
            self.check_templates(node, names);
            if self.diagnostics.len() == before {
                self.report(node.span, Problem::NotOneExpression { field });
            }
            return None;
        };
        self.check_templates(node, names);
        Some(template_of(&Json::String(text.to_owned())))
    }

    /// Where bytes `start..end` of a scalar's text stand in the file.
    ///
    /// Quotes, escapes and indentation make the two differ, so the same piece is looked for in the source,
    /// as often as it came before; the whole scalar is the answer if it is not there.
    pub(super) fn locate(&self, scalar: Span, text: &str, start: usize, end: usize) -> Span {
        let raw = self.source().slice(scalar);
        let Some(piece) = text.get(start..end).filter(|piece| !piece.is_empty()) else { return scalar };
        let nth = text[..start].matches(piece).count();
        match raw.match_indices(piece).nth(nth) {
            Some((at, _)) => Span::new(scalar.start + at, scalar.start + at + piece.len()),
            None => scalar,
        }
    }
}

/// Whether a condition looks at how a step ended, and not only at what it gave.
pub(super) fn looks_at_states(text: &str) -> bool {
    scan(text)
        .references
        .iter()
        .any(|found| found.root == "steps" && found.path.get(1).is_some_and(|part| part == "state"))
}
