//! Nothing unfinished, switched off or commented out.
//!
//! The words looked for are put together from halves, since this file is looked at too.

use super::check::{Check, Finding};
use super::tokens::begins;
use super::tree::{Source, Tree};

const UNFINISHED: &[&str] = &["todo", "unimplemented", "dbg"];

const PROMISES: &[&str] =
    &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];

pub const MACROS: Check = Check {
    rule: "what is on main is finished",
    find: |tree| find_tokens(tree, |rest| UNFINISHED.iter().find(|name| begins(rest, &[name, "!"])).copied()),
    bad: || {
        vec![
            code("fn a() { todo!() }"),
            code("fn a() { select! { b => unimplemented!(\"b\") } }"),
            code("fn a() { dbg!(b); }"),
        ]
    },
    good: || vec![code("fn a() { let todo = \"todo!()\"; todo } // todo!()")],
};

pub const WORDS: Check = Check {
    rule: "a promise to do it later belongs into the issue tracker",
    find: |tree| tree.all().flat_map(|source| find_lines(source, promise)).collect(),
    bad: || {
        PROMISES
            .iter()
            .map(|word| Tree::sample(&[("docs/a.md", &format!("Fine.\n- {word}: later"))]))
            .collect()
    },
    good: || vec![Tree::sample(&[("run", &format!("mktemp a.{0}{0}", PROMISES[2]))])],
};

pub const DEAD_CODE: Check = Check {
    rule: "code that is not needed is deleted, git keeps it",
    find: |tree| tree.rust().flat_map(|source| find_lines(source, dead_code)).collect(),
    bad: || {
        [
            "// let a = b;",
            "    // a.b();",
            "// if a {",
            "// }",
            "// #[derive(Debug)]",
            "// use a::b;",
            "// return a;",
        ]
        .map(code)
        .into()
    },
    good: || {
        [
            "// It waits; then it goes on.",
            "// Three things hold;",
            "// See a.b() for why.",
            "/// let a = b;",
            "let a = \"// b;\";",
            "// A set: {a, b}",
        ]
        .map(code)
        .into()
    },
};

pub const IGNORED: Check = Check {
    rule: "a test runs or does not exist",
    find: |tree| {
        let switched_off = |rest: &[_]| begins(rest, &["#", "[", "ignore"]).then_some("ignore");
        let mut findings = find_tokens(tree, switched_off);
        findings.extend(tree.rust().flat_map(|source| find_lines(source, ignored_example)));
        findings
    },
    bad: || {
        vec![
            code("#[test]\n#[ignore]\nfn a() {}"),
            code("#[test]\n#[ignore = \"slow\"]\nfn a() {}"),
            code(&format!("/// {}ignore\n/// a()\nfn a() {{}}", "`".repeat(3))),
        ]
    },
    good: || vec![code("fn ignore() {}"), code("#[arg(ignore_case = true)]\nstruct A;")],
};

fn code(text: &str) -> Tree {
    Tree::sample(&[("crates/core/src/a.rs", text)])
}

fn find_tokens(tree: &Tree, found: impl Fn(&[super::tokens::Token]) -> Option<&'static str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.rust() {
        let tokens = source.tokens();
        for (index, token) in tokens.iter().enumerate() {
            findings.extend(found(&tokens[index..]).map(|name| Finding::at(source, token.line, name)));
        }
    }
    findings
}

fn find_lines(source: &Source, found: impl Fn(&str) -> bool) -> Vec<Finding> {
    source
        .lines()
        .filter(|(_, line)| found(line))
        .map(|(number, line)| Finding::at(source, number, line.trim()))
        .collect()
}

fn promise(line: &str) -> bool {
    line.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|word| PROMISES.contains(&word))
}

/// A line of comment that reads as Rust rather than as English.
fn dead_code(line: &str) -> bool {
    let Some(comment) = line.trim_start().strip_prefix("// ") else { return false };
    let comment = comment.trim();
    let alone = matches!(comment, "}" | "};" | "})" | "});" | "},");
    let opens = comment.ends_with(" {") || comment.ends_with("({") || comment.starts_with("#[");
    // English ends with a semicolon now and then, but it does not parse as a statement of more than a word.
    let statement = comment.ends_with(';')
        && comment.contains(['(', '=', ' ', ':'])
        && syn::parse_str::<syn::Block>(&format!("{{{comment}}}")).is_ok();
    alone || opens || statement
}

fn ignored_example(line: &str) -> bool {
    let text = line.trim_start();
    let doc = text.strip_prefix("///").or_else(|| text.strip_prefix("//!"));
    doc.is_some_and(|doc| doc.trim_start().starts_with(&format!("{}ignore", "`".repeat(3))))
}
