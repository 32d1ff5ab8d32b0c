//! Tests wait on signals or on virtual time.

use super::check::{Check, Finding};
use super::tokens::{Token, begins};
use super::tree::Tree;

pub const SLEEPS: Check = Check {
    rule: "a test waits for a signal or steps virtual time, it does not sleep",
    find: find_sleeps,
    bad: || {
        [
            "fn a() { std::thread::sleep(b); }",
            "async fn a() { tokio::time::sleep(b).await; }",
            "use tokio::time::{self, sleep};\nasync fn a() { sleep(b).await; }",
            "async fn a() { time::sleep_until(b).await; }",
        ]
        .map(|text| Tree::sample(&[("crates/engine/tests/a.rs", text)]))
        .into_iter()
        .chain([Tree::sample(&[("crates/engine/src/a.rs", "#[test]\nfn a() { thread::sleep(b) }")])])
        .collect()
    },
    good: || {
        vec![
            Tree::sample(&[("crates/engine/src/a.rs", "fn a() { thread::sleep(b) }")]),
            Tree::sample(&[(
                "crates/engine/tests/a.rs",
                "fn sleep(b: B) { clock.sleep(b); virtual_clock::sleep(b) }",
            )]),
            Tree::sample(&[("crates/engine/tests/a.rs", "fn a() { run(\"sleep 60\") }")]),
        ]
    },
};

fn find_sleeps(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.rust() {
        let tokens = source.tokens();
        for (index, token) in tokens.iter().enumerate().filter(|(_, token)| token.is_test) {
            if sleeps(&tokens[..index], &tokens[index..]) {
                findings.push(Finding::at(source, token.line, token.text.as_str()));
            }
        }
    }
    findings
}

/// Whether the token between what comes before it and what follows it is a call that sleeps for real. A
/// method, or a function of another module, may well be a clock of ours.
fn sleeps(before: &[Token], rest: &[Token]) -> bool {
    if !begins(rest, &["sleep", "("]) && !begins(rest, &["sleep_until", "("]) {
        return false;
    }
    match before {
        [.., module, colon, _] if colon.text == ":" => ["thread", "time"].contains(&module.text.as_str()),
        [.., last] => last.text != "." && last.text != "fn",
        [] => true,
    }
}
