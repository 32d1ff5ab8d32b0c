//! The tree builds anywhere, so it names no place of the machine it was written on.

use super::check::{Check, Finding};
use super::tree::Tree;

/// Folders at the root of a file system that only exist, or only hold our things, on somebody's machine.
const PRIVATE: &[&str] = &["home", "root", "work", "Users"];

pub const PATHS: Check = Check {
    rule: "no path of a particular machine is in the tree",
    find: find_paths,
    bad: || {
        let paths = PRIVATE.iter().map(|folder| format!("/{folder}/a"));
        paths
            .flat_map(|path| [format!("see {path}"), format!("\"{path}\""), path])
            .map(|text| doc(&text))
            .collect()
    },
    good: || {
        [
            "$HOME/work/a",
            "crates/work/a",
            "https://a.example/home/a",
            "/homes/a",
            "~/root/a",
            "./home/a",
            "a /work",
        ]
        .map(doc)
        .into()
    },
};

fn doc(text: &str) -> Tree {
    Tree::sample(&[("docs/a.md", text)])
}

fn find_paths(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.all() {
        let lines = source.lines().filter(|(_, line)| names_private_folder(line));
        findings.extend(lines.map(|(number, line)| Finding::at(source, number, line.trim())));
    }
    findings
}

fn names_private_folder(line: &str) -> bool {
    PRIVATE.iter().any(|folder| {
        let path = format!("/{folder}/");
        line.match_indices(&path).any(|(index, _)| {
            // In the middle of a longer path it is an ordinary folder name.
            let before = line[..index].chars().next_back();
            !before.is_some_and(|letter| letter.is_alphanumeric() || "._-~}*".contains(letter))
        })
    })
}
