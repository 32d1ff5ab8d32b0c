//! `tidegate check`: everything that is wrong with files, each read as `run` would read it; but whether workers have
//! functions for actions is not known here.

use crate::args::{self, Output};
use crate::failure::{Exit, Failure};
use crate::files::{Set, expand};
use crate::out::{print, say};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tidegate_flow::{Diagnostic, Diagnostics, Problem};

pub fn check(options: &args::Check, quiet: bool) -> Result<Exit, Failure> {
    let mut files = BTreeSet::new();
    for path in &options.paths {
        let found = expand(path)?;
        if found.is_empty() {
            let failure = Failure::new("no-files", "the directory holds no .yaml file");
            return Err(failure.at(path.display()).exit(Exit::Invalid));
        }
        files.extend(found);
    }
    let mut told: BTreeSet<PathBuf> = files.iter().map(|path| same(path)).collect();
    let mut wrong = 0;
    for path in &files {
        let Some(found) = findings(&Set::read(path)?, &mut told) else { continue };
        wrong += 1;
        match options.output {
            Output::Text => Failure::from(found).report(),
            Output::Json => found.iter().try_for_each(|one| print(object(&found, one)))?,
        }
    }
    let count = |n: usize| if n == 1 { "1 file".to_owned() } else { format!("{n} files") };
    if wrong > 0 {
        say(format!("{}, {wrong} with errors", count(files.len())));
        return Ok(Exit::Invalid);
    }
    if !quiet {
        say(format!("{}, no errors", count(files.len())));
    }
    Ok(Exit::Success)
}

/// What is wrong with a file, and with those that are read with it. Of these, what is wrong is said once: where the file
/// is checked itself, or else with the first that needs it; `told` are those files.
fn findings(set: &Set, told: &mut BTreeSet<PathBuf>) -> Option<Diagnostics> {
    let all = set.parse_for_server().err()?;
    let broken: BTreeSet<usize> = all.iter().map(|one| one.file).filter(|file| *file != set.main).collect();
    let is_whole = broken.is_empty();
    let new: BTreeSet<usize> =
        broken.into_iter().filter(|file| told.insert(same(&set.sources[*file].path))).collect();
    let found = all.only(|one| match one.file == set.main {
        true => is_whole || !may_follow(&one.problem),
        false => new.contains(&one.file),
    });
    (!found.is_empty()).then_some(found)
}

/// Whether it may be wrong only because another file is: what that declares is perhaps not known. A name that is nearly
/// one that exists is rather misspelt.
fn may_follow(problem: &Problem) -> bool {
    matches!(
        problem,
        Problem::UnknownPool { meant: None, .. }
            | Problem::UnknownConnection { meant: None, .. }
            | Problem::UnknownAction { meant: None, .. }
            | Problem::UnknownFlow { meant: None, .. }
    )
}

/// A path by which a file is recognised.
fn same(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn object(all: &Diagnostics, one: &Diagnostic) -> serde_json::Value {
    json!({
        "file": all.file_name(one),
        "line": one.line,
        "column": one.column,
        "code": one.problem.code(),
        "message": one.problem.to_string(),
        "help": one.problem.help(),
    })
}
