//! Every kind of error has a file that shows it and a picture of what the user then sees.
//!
//! `problems/<code>.yaml` must give at least one error of that code; beside it stands what is drawn.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use strum::VariantNames;
use tidegate_flow::{Diagnostics, Elsewhere, File, Problem, parse_files};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/problems")
}

fn errors(name: &str, bytes: &[u8]) -> Diagnostics {
    // Files that say so are all there is.
    let elsewhere = match bytes.starts_with(b"# Nothing else exists.") {
        true => Elsewhere::Nothing,
        false => Elsewhere::Unknown,
    };
    // Others are parts of this pack.
    let pack = bytes.starts_with(b"# Part of pack `billing`.").then_some("billing");
    match parse_files(&[File { name: &format!("{name}.yaml"), bytes, pack }], elsewhere) {
        Ok(_) => panic!("{name} is accepted"),
        Err(errors) => errors,
    }
}

/// Files that are too large, too deep or not text are made here instead of being kept.
fn made() -> BTreeMap<String, Vec<u8>> {
    let deep = format!("flow: {}x{}\n", "[".repeat(80), "]".repeat(80));
    let layers = (1..9).map(|n| {
        let list = vec![format!("*a{}", n - 1); 9].join(", ");
        format!("a{n}: &a{n} [{list}]\n")
    });
    let bomb = format!("flow: demo\na0: &a0 x\n{}", layers.collect::<String>());
    let long = format!(
        "flow: demo\nkey: '{{{{ 1{} }}}}'\nsteps: {{ one: {{ run: [echo] }} }}\n",
        " + 1".repeat(600)
    );
    let nested: String = (1..10).map(|n| format!("do: [{{ name: m{n}, ")).collect();
    let nested = format!("flow: demo\nsteps:\n  one: {{ {nested}run: [echo]{} }}\n", " }]".repeat(9));
    BTreeMap::from([
        ("chain-too-deep".to_owned(), nested.into_bytes()),
        ("too-deep".to_owned(), deep.into_bytes()),
        ("too-many-values".to_owned(), bomb.into_bytes()),
        ("template-too-long".to_owned(), long.into_bytes()),
        ("file-too-large".to_owned(), vec![b'#'; 300 * 1024]),
        ("not-utf8".to_owned(), b"flow: demo\ndescription: caf\xe9\n".to_vec()),
    ])
}

fn cases() -> BTreeMap<String, Vec<u8>> {
    let mut cases = made();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            cases.insert(name, fs::read(&path).unwrap());
        }
    }
    cases
}

#[test]
fn every_problem_is_drawn() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("problems");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (name, bytes) in cases() {
            insta::assert_snapshot!(name.as_str(), errors(&name, &bytes).render(false));
        }
    });
}

#[test]
fn every_problem_has_a_file_that_shows_it() {
    let cases = cases();
    assert!(Problem::VARIANTS.len() >= 60);
    for &code in Problem::VARIANTS {
        let bytes = cases.get(code).unwrap_or_else(|| panic!("no tests/problems/{code}.yaml"));
        let found: Vec<_> = errors(code, bytes).iter().map(|error| error.problem.code()).collect();
        assert!(found.contains(&code), "{code} gives {found:?}");
    }
}

#[test]
fn sentences_start_lower_case_and_end_without_a_full_stop() {
    for (name, bytes) in cases() {
        for error in errors(&name, &bytes).iter() {
            let text = error.problem.to_string();
            let first = text.chars().next().unwrap_or('a');
            assert!(!first.is_uppercase() || text.starts_with("YAML"), "{text}");
            assert!(!text.ends_with('.'), "{text}");
        }
    }
}

#[test]
fn colors_are_drawn_when_wanted() {
    let errors = errors("demo", b"flow: demo\n");
    assert!(errors.render(true).contains("\u{1b}["));
    assert!(!errors.render(false).contains("\u{1b}["));
}
