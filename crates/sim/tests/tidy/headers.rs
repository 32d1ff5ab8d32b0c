//! A module opens with what it is for.

use super::check::{Check, Finding};
use super::tree::{Source, Tree};

pub const HEADERS: Check = Check {
    rule: "a module opens with `//!`: what it is for, and what it refuses to do",
    find: |tree| tree.rust().filter(|source| !has_header(source)).map(no_header).collect(),
    bad: || {
        ["", "fn a() {}", "//!\nfn a() {}", "// A plain comment.\nfn a() {}", "fn a() {}\n//! Too late."]
            .map(|text| Tree::sample(&[("crates/core/src/a.rs", text)]))
            .into()
    },
    good: || {
        ["//! The letter a.\n", "\n//!\n//! The letter a.\nfn a() {}", "#![no_std]\n//! The letter a.\n"]
            .map(|text| Tree::sample(&[("crates/core/src/a.rs", text)]))
            .into()
    },
};

fn has_header(source: &Source) -> bool {
    let mut lines = source.text.lines().map(str::trim);
    let begins = lines.find(|line| !line.is_empty() && *line != "//!" && !line.starts_with("#!"));
    begins.is_some_and(|line| line.starts_with("//!"))
}

fn no_header(source: &Source) -> Finding {
    Finding::file(source, "does not say what it is for")
}
