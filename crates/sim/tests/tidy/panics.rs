//! What runs in production returns its errors.

use super::check::{Check, Finding};
use super::tree::Tree;

const CAREFUL: &[&str] = &["core", "engine", "store", "flow", "worker", "server"];

pub const UNWRAPS: Check = Check {
    rule: "an error is returned, or ruled out by a type; it is not unwrapped",
    find: find_unwraps,
    bad: || {
        [
            "fn a() { b().unwrap(); }",
            "fn a() { b()\n.expect(\"b\") }",
            "fn a() { join!(b().unwrap()) }",
            "fn a() { b().map(Option::unwrap) }",
            "#[cfg(test)] mod tests {}\nfn a() { b().unwrap() }",
        ]
        .map(|text| Tree::sample(&[("crates/core/src/a.rs", text)]))
        .into()
    },
    good: || {
        vec![
            Tree::sample(&[("crates/core/src/a.rs", "fn a() { b().unwrap_or_default() }")]),
            Tree::sample(&[("crates/core/src/a.rs", "#[expect(dead_code)]\nfn unwrap() {}")]),
            Tree::sample(&[("crates/core/src/a.rs", "#[cfg(test)]\nmod tests { fn a() { b().unwrap() } }")]),
            Tree::sample(&[("crates/core/tests/a.rs", "fn a() { b().unwrap() }")]),
            Tree::sample(&[("crates/sim/src/a.rs", "fn a() { b().unwrap() }")]),
        ]
    },
};

fn find_unwraps(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.rust().filter(|source| source.room().is_some_and(|room| CAREFUL.contains(&room))) {
        for pair in source.tokens().windows(2).filter(|pair| !pair[1].is_test) {
            let is_called = pair[0].text == "." || pair[0].text == ":";
            if is_called && ["unwrap", "expect"].contains(&pair[1].text.as_str()) {
                findings.push(Finding::at(source, pair[1].line, format!("{}()", pair[1].text)));
            }
        }
    }
    findings
}
