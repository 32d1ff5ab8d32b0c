//! Reading fields: each reader gives the value, or reports why not and gives nothing.

use crate::diagnostics::Diagnostics;
use crate::duration::parse_duration;
use crate::grammar::{Field, MAX_IDENTIFIER, MAX_NAME, Place};
use crate::problem::{Problem, quoted};
use crate::source::{Source, Span};
use crate::yaml::{Entry, Node, Value};
use serde_json::Value as Json;
use std::ops::RangeInclusive;
use tidegate_core::ids::Name;
use tidegate_core::model::Origin;
use tidegate_core::suggest::nearest;
use tidegate_core::time;

/// The file that is being compiled, and what was wrong so far.
pub(super) struct Context<'a> {
    pub file: usize,
    pub diagnostics: &'a mut Diagnostics,
}

/// The fields of one mapping, all of them known.
pub(super) struct Fields<'n> {
    entries: &'n [Entry],
    pub span: Span,
    pub place: &'static Place,
}

impl<'n> Fields<'n> {
    pub fn get(&self, field: &str) -> Option<&'n Entry> {
        self.entries.iter().find(|entry| entry.key == field)
    }
}

const NAME_RULE: &str = "start with a letter, go on with letters, digits, `-`, `_`, `.`; at most 100 of them";
const IDENTIFIER_RULE: &str = "start with a letter, go on with letters, digits, `_`; at most 64 of them";

impl Context<'_> {
    pub fn report(&mut self, span: Span, problem: Problem) {
        self.diagnostics.report(self.file, span, problem);
    }

    pub fn source(&self) -> &Source {
        self.diagnostics.source(self.file)
    }

    /// The known word nearest to `word`, as long as anybody is going to read it.
    pub fn nearest<'k>(&self, word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
        if self.diagnostics.is_full() { None } else { nearest(word, known) }
    }

    pub fn line(&self, span: Span) -> u32 {
        self.source().line(span.start)
    }

    pub fn origin(&self, span: Span) -> Origin {
        Origin { file: Some(Name::new(&self.source().name)), line: self.line(span) }
    }

    /// The fields of `node`, which is `place` and stands under `field`.
    pub fn fields<'n>(&mut self, node: &'n Node, field: &str, place: &'static Place) -> Option<Fields<'n>> {
        let Value::Map(entries) = &node.value else {
            self.wrong_type(node, field, "an object", None);
            return None;
        };
        for entry in entries {
            let key = entry.key.as_str();
            if place.later.contains(&key) {
                self.report(entry.key_span, Problem::NotSupported { what: quoted(key) });
            } else if place.field(key).is_none() && !place.elsewhere.contains(&key) {
                let meant = nearest(key, place.names());
                let problem = Problem::UnknownField { field: quoted(key), place: place.phrase, meant };
                self.report(entry.key_span, problem);
            }
        }
        Some(Fields { entries, span: node.span, place })
    }

    pub fn required<'n>(&mut self, fields: &Fields<'n>, field: &'static str) -> Option<&'n Entry> {
        let entry = fields.get(field);
        if entry.is_none() {
            self.report(fields.span, Problem::MissingField { field, place: fields.place.phrase });
        }
        entry
    }

    pub fn wrong_type(
        &mut self,
        node: &Node,
        field: &str,
        expected: &'static str,
        help: Option<&'static str>,
    ) {
        let found = node.kind();
        self.report(node.span, Problem::WrongType { field: quoted(field), expected, found, help });
    }

    pub fn text<'n>(&mut self, node: &'n Node, field: &str) -> Option<&'n str> {
        let text = node.text();
        if text.is_none() {
            let help =
                matches!(node.value, Value::Scalar { .. }).then_some("put quotes around it to make it text");
            self.wrong_type(node, field, "text", help);
        }
        text
    }

    pub fn flag(&mut self, entry: &Entry) -> Option<bool> {
        let flag = entry.node.scalar().as_bool();
        if flag.is_none() {
            self.wrong_type(&entry.node, &entry.key, "`true` or `false`", None);
        }
        flag
    }

    /// A number of a field, between those that the field allows.
    pub fn count_of(&mut self, fields: &Fields<'_>, field: &str) -> Option<u32> {
        let range = fields.place.field(field).and_then(Field::range);
        debug_assert!(range.is_some(), "{field} of {} is no number", fields.place.phrase);
        let entry = fields.get(field)?;
        self.count(&entry.node, field, range?)
    }

    pub fn count(&mut self, node: &Node, field: &str, range: RangeInclusive<u32>) -> Option<u32> {
        let number = match node.scalar() {
            Json::Number(number) if !number.is_f64() => number,
            _ => {
                self.wrong_type(node, field, "an integer", None);
                return None;
            }
        };
        let count = number.as_u64().and_then(|n| u32::try_from(n).ok()).filter(|n| range.contains(n));
        if count.is_none() {
            let (min, max) = (u64::from(*range.start()), u64::from(*range.end()));
            self.report(node.span, Problem::OutOfRange { field: quoted(field), min, max });
        }
        count
    }

    pub fn duration(&mut self, entry: &Entry) -> Option<time::Span> {
        let text = match &entry.node.value {
            Value::Scalar { text, .. } if !entry.node.is_null() => text,
            _ => {
                self.wrong_type(&entry.node, &entry.key, "a duration", None);
                return None;
            }
        };
        let duration = parse_duration(text);
        if duration.is_none() {
            self.report(entry.node.span, Problem::BadDuration { text: quoted(text) });
        }
        duration
    }

    /// How long something may take, which is some time at least.
    pub fn time_of(&mut self, fields: &Fields<'_>, field: &'static str) -> Option<time::Span> {
        let entry = fields.get(field)?;
        let time = self.duration(entry)?;
        if time == time::Span::ZERO {
            self.report(entry.node.span, Problem::NoTime { field });
        }
        Some(time)
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&mut self, entry: &Entry, words: &[(&'static str, T)]) -> Option<T> {
        let word = self.text(&entry.node, &entry.key)?;
        let found = words.iter().find(|(known, _)| *known == word).map(|(_, value)| *value);
        if found.is_none() {
            let allowed: Vec<&'static str> = words.iter().map(|(known, _)| *known).collect();
            let meant = nearest(word, allowed.iter().copied());
            let problem =
                Problem::UnknownWord { field: entry.key.clone(), word: quoted(word), allowed, meant };
            self.report(entry.node.span, problem);
        }
        found
    }

    /// The name of a flow, action, pool, tag, queue or label.
    pub fn name(&mut self, text: &str, span: Span, what: &'static str) -> Option<Name> {
        let rest = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let good = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && text.chars().all(rest)
            && text.len() <= MAX_NAME;
        self.checked_name(text, span, what, good, NAME_RULE)
    }

    /// The name of a step or an input, which templates write after a dot.
    pub fn identifier(&mut self, text: &str, span: Span, what: &'static str) -> Option<Name> {
        let good = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && text.len() <= MAX_IDENTIFIER;
        self.checked_name(text, span, what, good, IDENTIFIER_RULE)
    }

    fn checked_name(
        &mut self,
        text: &str,
        span: Span,
        what: &'static str,
        good: bool,
        rule: &'static str,
    ) -> Option<Name> {
        if !good {
            self.report(span, Problem::BadName { name: quoted(text), what, rule });
        }
        good.then(|| Name::new(text))
    }

    pub fn named(&mut self, entry: &Entry, what: &'static str) -> Option<Name> {
        let text = self.text(&entry.node, &entry.key)?;
        self.name(text, entry.node.span, what)
    }

    pub fn list<'n>(&mut self, entry: &'n Entry, help: Option<&'static str>) -> Option<&'n [Node]> {
        match &entry.node.value {
            Value::List(items) => Some(items),
            _ => {
                self.wrong_type(&entry.node, &entry.key, "a list", help);
                None
            }
        }
    }

    /// The entries of a mapping whose keys are names.
    pub fn entries<'n>(&mut self, entry: &'n Entry) -> &'n [Entry] {
        if !matches!(entry.node.value, Value::Map(_)) {
            self.wrong_type(&entry.node, &entry.key, "an object", None);
        }
        entry.node.entries()
    }
}
