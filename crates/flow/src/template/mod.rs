//! Templates: text with `{{ expression }}` in it, by minijinja, strict and bounded.
//!
//! What a template refers to is found by reading it (`scan`), so that names can be checked with their exact
//! place when a file is loaded, and so that only the outputs a template needs are loaded when it is rendered.

mod check;
mod engine;
mod outline;
mod scan;

pub(crate) use check::{Names, check, is_reserved};
pub(crate) use engine::{Compiled, Limits, MAX_TEXT, is_template, render, value_of, value_to_json};
pub(crate) use outline::Outline;
pub(crate) use scan::{KEYWORDS, Reference, Scan, scan, single_expression};
