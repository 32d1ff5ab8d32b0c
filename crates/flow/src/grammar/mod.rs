//! What can be written where: one table of places and their fields.
//!
//! Whatever speaks of fields reads it: unknown-field errors and their suggestions, bounds of numbers, which fields go
//! with which kind of work, the JSON Schema for editors, and the reference page. It says what a field looks like; what
//! follows from one is said by `compile`, and names that refer to something are checked there.

mod action;
mod capacity;
mod chain;
mod flow;
mod forms;
mod words;
mod work;

pub use action::{ACTION, LINE, NEEDS, QUOTA, RATE, RETRY};
pub use capacity::{BOUNDS, CAPACITY, CONNECTION, LIMITS, MATCH, POOL, TAG};
pub(crate) use chain::USUAL_ROUNDS;
pub use chain::{MEMBER, REPEAT};
pub use flow::{FLOW, INPUT, ON_FAILURE, STEP};
pub use forms::Form;
use forms::{CAUSE, DURATION, PAUSE, QUOTIENT, RATIO, SECRET_REFERENCE, SIZE, STATUS, WAIT};
pub(crate) use forms::{CAUSES, EXPRESSION, IDENTIFIER, MAX_IDENTIFIER, MAX_NAME, NAME};
pub use work::{AUTH, BASIC, HTTP, SECRET, SQL, STATEMENT};

pub(crate) use words::{
    BACKOFFS, INPUT_TYPES, METHODS, ON_FAILURE_WORDS, QUOTA_WINDOWS, WHEN_BUSY, WHEN_EXHAUSTED, WHEN_FULL,
};

use std::ops::RangeInclusive;

/// The most runs, items or steps at once that anyone can mean.
pub(crate) const MAX_AT_ONCE: u32 = 1_000_000;
/// The most slots a pool may have, and so the most anyone can ask for.
pub(crate) const MAX_SLOTS: u32 = 1_000_000;
/// The most tries, and the most lost workers, of one task.
pub(crate) const MAX_ATTEMPTS: u32 = 10_000;

/// A kind of object, and the fields it may have.
#[derive(Debug)]
pub struct Place {
    /// One word, by which the schema and the reference call it.
    pub id: &'static str,
    /// As part of a sentence: "unknown field `x` in a step".
    pub phrase: &'static str,
    pub fields: &'static [Field],
    /// Fields of which at most one may be given; one of them must, if `needs_one`. A flag counts if it is true.
    pub one_of: &'static [&'static str],
    pub needs_one: bool,
    /// Fields that belong to the language but do not work yet.
    pub later: &'static [&'static str],
    /// Fields of other places that people look for here. Whoever compiles it says why they are not.
    pub elsewhere: &'static [&'static str],
}

/// One field of a place.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub shape: Shape,
    /// One sentence.
    pub about: &'static str,
    /// What holds without it, if that needs to be said.
    pub default: Option<&'static str>,
    pub required: bool,
    /// It makes sense only together with one of these, which are among the place's `one_of`.
    pub only_with: &'static [&'static str],
}

/// What a value looks like.
#[derive(Debug)]
pub enum Shape {
    /// Any value as it stands.
    Any,
    /// Any value; texts inside may be templates.
    Template,
    /// Text as it stands.
    Text,
    /// A single value that becomes text, and may be a template.
    Plain,
    /// Exactly one `{{ expression }}`.
    Expression,
    Flag,
    Count(u32, u32),
    /// The name of something.
    Name,
    /// One of a few words.
    Words(fn() -> Vec<&'static str>),
    /// Text of a form.
    Form(&'static Form),
    Object(&'static Place),
    /// An object whose keys are chosen by whoever writes it.
    Map(Keys, &'static Shape),
    /// A list of at least so many.
    List(usize, &'static Shape),
    /// Any of these.
    Either(&'static [Shape]),
}

/// What the keys of a [`Shape::Map`] look like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keys {
    /// Names, of which there must be one.
    SomeIdentifiers,
    /// Names that templates write after a dot.
    Identifiers,
    Names,
    Free,
}

/// The documents a file may hold.
pub static DOCUMENTS: [&Place; 3] = [&FLOW, &ACTION, &CAPACITY];

/// Every place, each before those that stand inside it.
pub fn places() -> Vec<&'static Place> {
    let mut found: Vec<&'static Place> = DOCUMENTS.to_vec();
    let mut next = 0;
    while let Some(place) = found.get(next).copied() {
        for field in place.fields {
            field.shape.visit(&mut |inner| {
                if !found.iter().any(|known| std::ptr::eq(*known, inner)) {
                    found.push(inner);
                }
            });
        }
        next += 1;
    }
    found
}

impl Place {
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.fields.iter().map(|field| field.name)
    }

    /// Fields that do not go together with `work`, which is among the `one_of`.
    pub(crate) fn strangers(&self, work: &str) -> impl Iterator<Item = &'static Field> {
        self.fields
            .iter()
            .filter(move |field| !field.only_with.is_empty() && !field.only_with.contains(&work))
    }
}

impl Field {
    const fn new(name: &'static str, shape: Shape, about: &'static str) -> Field {
        Field { name, shape, about, default: None, required: false, only_with: &[] }
    }

    const fn required(self) -> Field {
        Field { required: true, ..self }
    }

    const fn default(self, default: &'static str) -> Field {
        Field { default: Some(default), ..self }
    }

    const fn only_with(self, only_with: &'static [&'static str]) -> Field {
        Field { only_with, ..self }
    }

    /// Between which numbers it must lie, if it can be a number.
    pub(crate) fn range(&self) -> Option<RangeInclusive<u32>> {
        let range = |shape: &Shape| match shape {
            Shape::Count(min, max) => Some(*min..=*max),
            _ => None,
        };
        match &self.shape {
            Shape::Either(shapes) => shapes.iter().find_map(range),
            shape => range(shape),
        }
    }
}

impl Shape {
    /// Calls `see` with every place that stands directly inside.
    fn visit(&self, see: &mut impl FnMut(&'static Place)) {
        match self {
            Shape::Object(place) => see(place),
            Shape::Map(_, inner) | Shape::List(_, inner) => inner.visit(see),
            Shape::Either(shapes) => shapes.iter().for_each(|shape| shape.visit(see)),
            _ => {}
        }
    }
}

/// The words of a table that says what each means.
fn words<T>(table: &[(&'static str, T)]) -> Vec<&'static str> {
    table.iter().map(|(word, _)| *word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_consistent() {
        let places = places();
        assert!(places.len() > 15);
        for place in &places {
            assert_eq!(places.iter().filter(|other| other.id == place.id).count(), 1, "{}", place.id);
            for field in place.fields {
                let name = format!("{}.{}", place.id, field.name);
                assert_eq!(place.names().filter(|other| *other == field.name).count(), 1, "{name}");
                assert!(
                    field.about.ends_with('.') && field.about.len() < 200,
                    "{name} is told in a sentence"
                );
                assert!(field.only_with.iter().all(|with| place.one_of.contains(with)), "{name}");
                assert!(!place.later.contains(&field.name), "{name}");
                assert!(!(field.required && field.default.is_some()), "{name}");
            }
            assert!(place.one_of.iter().all(|one| place.field(one).is_some()), "{}", place.id);
        }
    }
}
