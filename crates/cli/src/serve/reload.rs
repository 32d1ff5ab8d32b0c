//! Files that are declared, and declared again when they change.

use crate::failure::Failure;
use crate::files::{Set, expand};
use crate::out::say;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tidegate::Tidegate;

/// How often it is looked whether a file has changed.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What a file was when it was read.
type Seen = (Option<SystemTime>, u64);

pub struct Reload {
    directory: PathBuf,
    /// Nothing before the first look.
    seen: Option<BTreeMap<PathBuf, Seen>>,
}

impl Reload {
    pub fn of(directory: &Path) -> Reload {
        Reload { directory: directory.to_owned(), seen: None }
    }

    pub async fn follow(&mut self, tide: &Tidegate, quiet: bool) {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        loop {
            ticks.tick().await;
            self.look(tide, quiet).await;
        }
    }

    /// Declares what is there, if any of it has changed. What is wrong is said; what was declared before then stays.
    pub async fn look(&mut self, tide: &Tidegate, quiet: bool) {
        let found = expand(&self.directory);
        let paths = found.as_deref().unwrap_or_default().iter();
        let now = paths.map(|path| (path.clone(), fingerprint(path))).collect();
        if self.seen.as_ref() == Some(&now) {
            return;
        }
        self.seen = Some(now);
        let files = found.unwrap_or_else(|failure| {
            failure.report();
            Vec::new()
        });
        let good = files.iter().filter(|path| report(define(path, tide))).count();
        let refused = tide.declare().await;
        report(refused.map_err(|error| Failure::new("refused", error.to_string())));
        if !quiet {
            say(format!("{good} of {} files are declared", files.len()));
        }
    }
}

/// Whether nothing is wrong.
fn report(result: Result<(), Failure>) -> bool {
    result.inspect_err(Failure::report).is_ok()
}

fn define(path: &Path, tide: &Tidegate) -> Result<(), Failure> {
    tide.define(Set::read(path)?.parse_for_server()?);
    Ok(())
}

fn fingerprint(path: &Path) -> Seen {
    std::fs::metadata(path).map(|known| (known.modified().ok(), known.len())).unwrap_or((None, 0))
}
