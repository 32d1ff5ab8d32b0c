//! `tidegate check`: everything that is wrong with files, each read as `run` would read it.

use crate::args;
use crate::failure::{Exit, Failure};
use crate::files::{SHARED, Source, expand};
use crate::out::say;
use std::collections::BTreeSet;

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
    let mut wrong = 0;
    for path in &files {
        let source = Source::read(path)?;
        let beside = Source::beside(path)?;
        let parsed = match &beside {
            // What is wrong there is said once, where that file is checked itself, or else here.
            Some(shared) if shared.parse_alone().is_err() && files.contains(&path.with_file_name(SHARED)) => {
                source.parse_alone()
            }
            beside => source.parse(beside.as_ref()),
        };
        if let Err(diagnostics) = parsed {
            wrong += 1;
            Failure::from(diagnostics).report();
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
