//! The rules of the house, as a test: what review would say every time is said here once.
//!
//! Each file below `tidy/` holds one kind of rule, which is a function from the workspace's files to a list
//! of findings, together with small samples it must and must not complain about. A rule without a sample
//! that breaks it does not pass, so no rule here is unable to fail.

mod tidy {
    pub mod arrows;
    pub mod check;
    pub mod headers;
    pub mod leftovers;
    pub mod machine;
    pub mod names;
    pub mod panics;
    pub mod purity;
    pub mod size;
    pub mod sleeps;
    pub mod sql;
    pub mod tokens;
    pub mod tree;
}

use std::path::Path;

use tidy::check::Check;
use tidy::tree::Tree;
use tidy::{arrows, headers, leftovers, machine, names, panics, purity, size, sleeps, sql};

const CHECKS: &[Check] = &[
    arrows::ARROWS,
    arrows::CORE_STAYS_SMALL,
    headers::HEADERS,
    leftovers::MACROS,
    leftovers::WORDS,
    leftovers::DEAD_CODE,
    leftovers::IGNORED,
    machine::PATHS,
    names::FILES,
    panics::UNWRAPS,
    purity::CORE_IS_PURE,
    size::FILES,
    size::FUNCTIONS,
    sleeps::SLEEPS,
    sql::SQL,
];

#[test]
fn the_workspace_is_tidy() {
    // Asked at run time: clones that share a build cache may share this program, but not their files.
    let sim = std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    let tree = Tree::read(&Path::new(&sim).join("../..")).expect("the workspace is readable");
    assert!(tree.rust().any(|source| source.path == "crates/sim/tests/tidy.rs"), "the tree was not found");

    let mut report = String::new();
    for check in CHECKS {
        for finding in (check.find)(&tree) {
            report += &format!("\n  {finding}\n      {}", check.rule);
        }
    }
    assert!(report.is_empty(), "the house is untidy:\n{report}\n");
}

#[test]
fn every_rule_can_be_broken() {
    for check in CHECKS {
        let samples = (check.bad)();
        assert!(!samples.is_empty(), "{}: no sample breaks this rule", check.rule);
        for sample in samples {
            assert!(!(check.find)(&sample).is_empty(), "{}: not noticed in {sample:#?}", check.rule);
        }
    }
}

#[test]
fn no_rule_complains_about_good_code() {
    for check in CHECKS {
        for sample in (check.good)() {
            let findings = (check.find)(&sample);
            assert!(findings.is_empty(), "{}: {findings:?} in {sample:#?}", check.rule);
        }
    }
}
