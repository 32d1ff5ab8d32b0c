//! A file is named after the idea it holds.

use super::check::{Check, Finding};
use super::tree::Tree;

/// Names that say nothing, and so collect everything.
const EMPTY: &[&str] = &["common", "helper", "helpers", "manager", "misc", "util", "utils"];

pub const FILES: Check = Check {
    rule: "a file is named after the idea it holds, not after the habit of having such a file",
    find: |tree| {
        let named_empty = tree.rust().filter(|source| source.path.split('/').any(is_empty));
        named_empty.map(|source| Finding::file(source, "this name says nothing")).collect()
    },
    bad: || {
        let paths = EMPTY
            .iter()
            .flat_map(|name| [format!("crates/core/src/{name}.rs"), format!("xtask/src/{name}/mod.rs")]);
        paths.map(|path| Tree::sample(&[(&path, "")])).collect()
    },
    good: || vec![Tree::sample(&[("crates/core/src/commons.rs", "")])],
};

fn is_empty(part: &str) -> bool {
    EMPTY.contains(&part.trim_end_matches(".rs"))
}
