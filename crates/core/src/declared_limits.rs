//! Limits that several files declare, side by side: what one file says never undoes what another says.
//!
//! A file speaks for itself. Declared again, whatever it no longer says goes; what other files said stays, except where
//! both speak of the same thing: then the newest counts. Only a pool that somebody still names stays in any case, with
//! the slots it had: a wait for something that does not exist could never end.

use crate::ids::Name;
use crate::model::{LimitsDocument, Origin, Pool, RUNS};
use std::cmp::Ordering;

/// What is newly said, and in which files it stands.
pub(crate) struct Said<'a> {
    limits: Option<&'a LimitsDocument>,
    files: Vec<&'a str>,
}

impl<'a> Said<'a> {
    /// `files` were read, whether or not they say anything about limits.
    pub fn new(limits: Option<&'a LimitsDocument>, files: &'a [Name]) -> Said<'a> {
        let origins = limits.into_iter().flat_map(origins).filter_map(|origin| origin.file.as_ref());
        let files = files.iter().chain(origins).map(place).collect();
        Said { limits, files }
    }

    /// Whether it replaces everything that stood there.
    fn replaces(&self, origin: &Origin) -> bool {
        match &origin.file {
            Some(file) => self.files.contains(&place(file)),
            None => self.limits.is_some(),
        }
    }

    /// What then holds. `is_named` knows which pools cannot go.
    pub fn over(&self, old: &LimitsDocument, is_named: impl Fn(&Pool) -> bool) -> LimitsDocument {
        let new = self.limits.cloned().unwrap_or_default();
        let (runs, runs_origin) = match () {
            () if speaks_of_runs(&new) => (new.runs, new.runs_origin),
            () if self.replaces(&old.runs_origin) => (Some(RUNS), Origin::default()),
            () => (old.runs, old.runs_origin.clone()),
        };
        let stays = |origin: &Origin| !self.replaces(origin);
        LimitsDocument {
            runs,
            runs_origin,
            tags: side_by_side(
                &old.tags,
                new.tags,
                |a, b| (&a.tag, &a.value).cmp(&(&b.tag, &b.value)),
                |tag| stays(&tag.origin),
            ),
            actions: side_by_side(
                &old.actions,
                new.actions,
                |a, b| a.pattern.cmp(&b.pattern),
                |rule| stays(&rule.origin),
            ),
            pools: side_by_side(
                &old.pools,
                new.pools,
                |a, b| a.name.cmp(&b.name),
                |pool| stays(&pool.origin) || is_named(pool),
            ),
        }
    }
}

/// A text inside a program is `main.rs:12`. The line moves with the next version of the program, the file does not.
fn place(file: &Name) -> &str {
    match file.as_str().rsplit_once(':') {
        Some((program, line)) if line.bytes().all(|byte| byte.is_ascii_digit()) => program,
        _ => file.as_str(),
    }
}

fn origins(limits: &LimitsDocument) -> impl Iterator<Item = &Origin> {
    let tags = limits.tags.iter().map(|tag| &tag.origin);
    let rules = limits.actions.iter().map(|rule| &rule.origin);
    let pools = limits.pools.iter().map(|pool| &pool.origin);
    tags.chain(rules).chain(pools).chain([&limits.runs_origin])
}

/// Every document has a number of runs; not every one was told it.
fn speaks_of_runs(limits: &LimitsDocument) -> bool {
    limits.runs != Some(RUNS) || limits.runs_origin.file.is_some()
}

/// In an order that does not depend on who came first: the same limits are the same document.
fn side_by_side<T: Clone>(
    old: &[T],
    new: Vec<T>,
    order: impl Fn(&T, &T) -> Ordering,
    stays: impl Fn(&T) -> bool,
) -> Vec<T> {
    let is_new = |known: &T| new.iter().any(|said| order(said, known).is_eq());
    let kept: Vec<T> = old.iter().filter(|known| !is_new(known) && stays(known)).cloned().collect();
    let mut all: Vec<T> = kept.into_iter().chain(new).collect();
    all.sort_by(order);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `what` is a name and its slots.
    fn pools(file: &str, what: &[(&str, u32)]) -> LimitsDocument {
        let pool = |&(name, slots): &(&str, u32)| Pool {
            name: Name::new(name),
            slots,
            lease: None,
            origin: Origin { file: Some(Name::new(file)), line: 1 },
        };
        LimitsDocument { pools: what.iter().map(pool).collect(), ..LimitsDocument::default() }
    }

    fn names(limits: &LimitsDocument) -> Vec<(&str, u32)> {
        limits.pools.iter().map(|pool| (pool.name.as_str(), pool.slots)).collect()
    }

    fn over(old: &LimitsDocument, new: &LimitsDocument) -> LimitsDocument {
        Said::new(Some(new), &[]).over(old, |_| false)
    }

    #[test]
    fn files_stand_side_by_side_in_whatever_order_they_come() {
        let (a, b) = (pools("a.yaml", &[("site", 2)]), pools("b.yaml", &[("db", 1)]));
        let both = over(&a, &b);
        assert_eq!(names(&both), [("db", 1), ("site", 2)]);
        assert_eq!(both, over(&b, &a));
        assert_eq!(both, over(&both, &a));
    }

    #[test]
    fn of_two_files_that_speak_of_the_same_the_newest_counts() {
        let (a, b) = (pools("a.yaml", &[("db", 2)]), pools("b.yaml", &[("db", 1)]));
        assert_eq!(names(&over(&a, &b)), [("db", 1)]);
        assert_eq!(names(&over(&b, &a)), [("db", 2)]);
    }

    #[test]
    fn what_a_file_no_longer_says_goes() {
        let old = over(&pools("a.yaml", &[("db", 2), ("site", 1)]), &pools("b.yaml", &[("gpu", 1)]));
        assert_eq!(names(&over(&old, &pools("a.yaml", &[("db", 3)]))), [("db", 3), ("gpu", 1)]);
        let silent = [Name::new("a.yaml")];
        assert_eq!(names(&Said::new(None, &silent).over(&old, |_| false)), [("gpu", 1)]);
    }

    #[test]
    fn a_pool_that_is_still_named_stays_as_it_was() {
        let old = pools("a.yaml", &[("db", 2), ("site", 1)]);
        let new = pools("a.yaml", &[("gpu", 1)]);
        let kept = Said::new(Some(&new), &[]).over(&old, |pool| pool.name.as_str() == "site");
        assert_eq!(names(&kept), [("gpu", 1), ("site", 1)]);
    }

    #[test]
    fn a_text_in_a_program_is_the_same_one_when_its_line_moves() {
        let old = pools("src/main.rs:12", &[("db", 2)]);
        assert_eq!(names(&over(&old, &pools("src/main.rs:15", &[("site", 1)]))), [("site", 1)]);
        assert_eq!(names(&over(&old, &pools("src/other.rs:12", &[("site", 1)]))), [("db", 2), ("site", 1)]);
    }

    #[test]
    fn the_number_of_runs_is_that_of_whoever_speaks_of_it() {
        let origin = Origin { file: Some(Name::new("a.yaml")), line: 1 };
        let three = LimitsDocument { runs: Some(3), runs_origin: origin, ..LimitsDocument::default() };
        let silent = pools("b.yaml", &[("db", 1)]);
        assert_eq!(over(&three, &silent).runs, Some(3));
        assert_eq!(over(&silent, &three).runs, Some(3));
        assert_eq!(over(&three, &pools("a.yaml", &[("db", 1)])).runs, Some(RUNS));
    }
}
