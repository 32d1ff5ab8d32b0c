//! The core decides from what it is told, and from nothing else.

use super::check::{Check, Finding};
use super::tokens::{Token, begins};
use super::tree::Tree;

/// Modules of the standard library that reach outside the process, or into another thread.
const OUTSIDE: &[&str] = &["env", "fs", "io", "net", "os", "process", "thread"];

/// Clocks, randomness, waiting and output, wherever they are imported from.
const IMPURE: &[&str] = &[
    "Instant",
    "SystemTime",
    "RandomState",
    "HashMap",
    "HashSet",
    "async",
    "await",
    "thread_local",
    "print",
    "println",
    "eprint",
    "eprintln",
];

/// What asks the machine: the time, the time zone, the files that describe zones.
const ASKED: &[[&str; 4]] = &[
    ["Timestamp", ":", ":", "now"],
    ["Zoned", ":", ":", "now"],
    ["TimeZone", ":", ":", "system"],
    ["TimeZone", ":", ":", "get"],
    ["TimeZoneDatabase", ":", ":", "from_env"],
];

pub const CORE_IS_PURE: Check = Check {
    rule: "the core has no I/O, clock, randomness, threads, async or environment: what it needs comes with a command",
    find: find_impurities,
    bad: || {
        [
            "fn a() { std::env::var(\"A\"); }",
            "use std::fs;",
            "use std::{collections::BTreeMap, env};",
            "use std::{fs::File, sync::Arc};",
            "use ::std::net::TcpStream;",
            "fn a() { std::process::exit(1) }",
            "fn a() { std::thread::spawn(b); }",
            "use std::io::{self, Write};",
            "use std::time::{Duration, Instant};",
            "use std::{time::SystemTime};",
            "fn a() { let now = std::time::SystemTime::now(); }",
            "fn a() { b(jiff::Zoned::now()) }",
            "fn a() { b(TimeZone::system()) }",
            "use std::collections::HashMap;",
            "use std::hash::RandomState;",
            "async fn a() {}",
            "fn a() { println!(\"b\") }",
            "#[cfg(test)] mod tests {}\nfn a() { std::env::args() }",
        ]
        .map(core)
        .into()
    },
    good: || {
        vec![
            core("use std::{borrow::Cow, time::Duration};\nuse rustc_hash::FxHashMap;"),
            core("fn a(env: Env, now: &Zoned) { env.process(now); std::mem::take(b.fs) }"),
            core("use std::sync::{Arc, b::env};\nuse crate::process;"),
            core("/// std::env\nfn a() { b(\"std::env::var\") } // std::fs"),
            core("#[cfg(test)]\nmod tests { use std::time::Instant; fn a() { std::env::args() } }"),
            Tree::sample(&[("crates/core/tests/a.rs", "use std::fs;")]),
            Tree::sample(&[("crates/cli/src/a.rs", "use std::fs;")]),
        ]
    },
};

fn core(text: &str) -> Tree {
    Tree::sample(&[("crates/core/src/a.rs", text)])
}

fn find_impurities(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.rust().filter(|source| source.room() == Some("core")) {
        let tokens = source.tokens();
        for (index, token) in tokens.iter().enumerate().filter(|(_, token)| !token.is_test) {
            let rest = &tokens[index..];
            let is_asked = ASKED.iter().any(|asked| begins(rest, asked));
            if is_asked || IMPURE.contains(&token.text.as_str()) {
                findings.push(Finding::at(source, token.line, token.text.as_str()));
            }
            if begins(rest, &["std", ":", ":"]) {
                let reached = modules(&rest[3..]).filter(|module| OUTSIDE.contains(&module.text.as_str()));
                findings.extend(
                    reached.map(|module| Finding::at(source, module.line, format!("std::{}", module.text))),
                );
            }
        }
    }
    findings
}

/// The modules that a path names first: one, or each of a list in braces.
fn modules(path: &[Token]) -> impl Iterator<Item = &Token> {
    let is_list = path.first().is_some_and(|token| token.text == "{");
    let mut depth = 0usize;
    let pairs = path.windows(2).map_while(move |pair| {
        match pair[0].text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        (is_list && depth > 0).then_some((depth, pair))
    });
    let listed = pairs.filter(|(depth, pair)| *depth == 1 && ["{", ","].contains(&pair[0].text.as_str()));
    path.first().into_iter().filter(move |_| !is_list).chain(listed.map(|(_, pair)| &pair[1]))
}
