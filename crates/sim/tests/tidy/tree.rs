//! The files of the workspace, or of a sample that pretends to be one.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use super::tokens::{self, Token};

/// Folders and files that are not ours: build output, stores of a local run, code of others, git's own data
/// (a plain file in a worktree).
const NOT_SOURCE: &[&str] = &[".git", ".tidegate", "mutants.out", "mutants.out.old", "target", "vendor"];

#[derive(Debug)]
pub struct Tree {
    sources: Vec<Source>,
}

#[derive(Debug)]
pub struct Source {
    /// Relative to the root, with forward slashes.
    pub path: String,
    pub text: String,
    /// The whole file is compiled for tests only.
    pub is_test: bool,
}

impl Tree {
    /// Reads every text file below a folder.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        collect(root, "", &mut files)?;
        files.sort();
        Ok(Self::of(files))
    }

    /// A sample of files: path and text.
    pub fn sample(files: &[(&str, &str)]) -> Self {
        Self::of(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    /// All sources, of every language.
    pub fn all(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter()
    }

    pub fn rust(&self) -> impl Iterator<Item = &Source> {
        self.all().filter(|source| source.path.ends_with(".rs"))
    }

    fn of(files: Vec<(String, String)>) -> Self {
        let mut sources: Vec<Source> = files
            .into_iter()
            .map(|(path, text)| Source { is_test: lies_with_tests(&path), path, text })
            .collect();
        let modules: BTreeSet<String> = sources
            .iter()
            .filter(|source| source.path.ends_with(".rs"))
            .flat_map(|source| {
                let folder = module_folder(&source.path);
                tokens::test_modules(&source.tokens()).into_iter().map(move |name| format!("{folder}/{name}"))
            })
            .collect();
        for source in &mut sources {
            source.is_test |= modules.iter().any(|module| {
                let rest = source.path.strip_prefix(module.as_str());
                rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
            });
        }
        Self { sources }
    }
}

impl Source {
    /// The folder below `crates/` that this file belongs to.
    pub fn room(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    pub fn tokens(&self) -> Vec<Token> {
        tokens::read(&self.text, self.is_test).unwrap_or_else(|error| panic!("{}: {error}", self.path))
    }

    /// Lines with their numbers, counted from one.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<(String, String)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if NOT_SOURCE.contains(&name.as_str()) {
            continue;
        }
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{path}/"), files)?;
        } else if let Ok(text) = String::from_utf8(fs::read(entry.path())?) {
            files.push((path, text));
        }
    }
    Ok(())
}

fn lies_with_tests(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "benches"))
}

/// Where the modules that a file declares without a body are found.
fn module_folder(path: &str) -> String {
    let (folder, file) = path.rsplit_once('/').unwrap_or((".", path));
    match file.trim_end_matches(".rs") {
        "lib" | "main" | "mod" => folder.to_owned(),
        stem => format!("{folder}/{stem}"),
    }
}

#[test]
fn a_module_declared_for_tests_makes_its_file_a_test() {
    let tree = Tree::sample(&[
        ("crates/core/src/lib.rs", "#[cfg(test)]\nmod laws;\nmod state;"),
        ("crates/core/src/laws.rs", ""),
        ("crates/core/src/laws/order.rs", ""),
        ("crates/core/src/state.rs", "#[cfg(test)]\nmod moves;"),
        ("crates/core/src/state/moves.rs", ""),
        ("crates/core/src/lawsuit.rs", ""),
        ("crates/core/tests/all.rs", ""),
    ]);
    let tests: Vec<&str> =
        tree.all().filter(|source| source.is_test).map(|source| source.path.as_str()).collect();
    assert_eq!(
        tests,
        [
            "crates/core/src/laws.rs",
            "crates/core/src/laws/order.rs",
            "crates/core/src/state/moves.rs",
            "crates/core/tests/all.rs"
        ]
    );
}
