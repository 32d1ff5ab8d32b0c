//! SQL lives with the stores, with the drivers that read other people's tables, and with what both are measured against.

use super::check::{Check, Finding};
use super::tree::{Source, Tree};

pub const SQL: Check = Check {
    rule: "SQL about our own state lives in crates/store, SQL of cursors in a `drivers` folder, SQL of floors in files of crates/bench",
    find: |tree| tree.all().filter(|source| !may_hold_sql(source)).flat_map(find_sql).collect(),
    bad: || {
        [
            "fn a() { b(\"select c from d\"); }",
            "fn a() { b(r#\"\n  INSERT INTO d VALUES (1)\"#); }",
            "const A: &str = \"UPDATE d SET e = 1\";",
            "const A: &str = \"delete from d\";",
            "const A: &str = \"WITH c AS (SELECT 1) SELECT * FROM c\";",
            "const A: &str = \"CREATE TABLE d (e)\";",
        ]
        .map(|text| Tree::sample(&[("crates/engine/src/a.rs", text)]))
        .into_iter()
        .chain([Tree::sample(&[("crates/server/sql/a.sql", "-- Counts.\n")])])
        .chain([Tree::sample(&[("crates/bench/src/a.rs", "fn a() { b(\"select c from d\"); }")])])
        .collect()
    },
    good: || {
        let statement = "fn a() { b(\"select c from d\"); }";
        vec![
            Tree::sample(&[("crates/store/src/a.rs", statement), ("crates/store/sql/a.sql", "select 1")]),
            Tree::sample(&[("crates/worker/src/cursor/drivers/a.rs", statement)]),
            Tree::sample(&[("crates/bench/sql/a.sql", "select 1")]),
            Tree::sample(&[("crates/flow/tests/a.rs", statement)]),
            Tree::sample(&[(
                "crates/flow/src/a.rs",
                "/// Select a thing from a list.\nconst A: &str = \"updates\";",
            )]),
            Tree::sample(&[(
                "crates/flow/src/a.rs",
                "const A: &str = \"create a table first, then update it\";",
            )]),
        ]
    },
};

/// How statements begin: words that follow each other, with anything in between where it says `…`.
const STATEMENTS: &[&[&str]] = &[
    &["select", "…", "from"],
    &["insert", "into"],
    &["update", "…", "set"],
    &["delete", "from"],
    &["with", "…", "as", "…", "select"],
    &["create", "table"],
    &["create", "index"],
    &["create", "unique", "index"],
    &["alter", "table"],
    &["drop", "table"],
    &["truncate", "table"],
];

fn may_hold_sql(source: &Source) -> bool {
    let is_of_store = source.path.starts_with("crates/store/") || source.path.contains("/drivers/");
    // A peer's tables are the peer's.
    let is_of_bench = source.path.starts_with("crates/bench/sql/") || source.path.starts_with("bench-peers/");
    is_of_store || is_of_bench || source.is_test
}

fn find_sql(source: &Source) -> Vec<Finding> {
    if source.path.ends_with(".sql") {
        return vec![Finding::file(source, "a file of SQL")];
    }
    if !source.path.ends_with(".rs") {
        return Vec::new();
    }
    let tokens = source.tokens().into_iter().filter(|token| token.is_literal && !token.is_test);
    tokens
        .filter(|token| is_statement(&token.text))
        .map(|token| Finding::at(source, token.line, token.text))
        .collect()
}

/// Whether a literal, as written, holds a statement of SQL.
fn is_statement(literal: &str) -> bool {
    let Ok(text) = syn::parse_str::<syn::LitStr>(literal) else { return false };
    let text = text.value().to_lowercase();
    let words: Vec<&str> =
        text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    STATEMENTS.iter().any(|pattern| matches(&words, pattern))
}

fn matches(words: &[&str], pattern: &[&str]) -> bool {
    match pattern {
        [] => true,
        ["…", rest @ ..] => (0..words.len()).any(|skipped| matches(&words[skipped..], rest)),
        [first, rest @ ..] => words.first() == Some(first) && matches(&words[1..], rest),
    }
}
