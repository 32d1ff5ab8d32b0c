//! What a rule is made of.

use std::fmt;

use super::tree::{Source, Tree};

/// A rule, how to find what breaks it, and the samples that prove the finding.
pub struct Check {
    /// One sentence, shown below every finding: what to do instead.
    pub rule: &'static str,
    pub find: fn(&Tree) -> Vec<Finding>,
    /// Small trees, each of which breaks the rule.
    pub bad: fn() -> Vec<Tree>,
    /// Small trees close to the rule that do not break it.
    pub good: fn() -> Vec<Tree>,
}

/// One place where a rule is broken.
#[derive(Debug)]
pub struct Finding {
    place: String,
    says: String,
}

impl Finding {
    pub fn at(source: &Source, line: usize, says: impl Into<String>) -> Self {
        Self { place: format!("{}:{line}", source.path), says: says.into() }
    }

    pub fn file(source: &Source, says: impl Into<String>) -> Self {
        Self { place: source.path.clone(), says: says.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.place, self.says)
    }
}
