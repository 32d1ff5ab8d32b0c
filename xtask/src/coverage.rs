//! `cargo xtask coverage`: which lines of `crates/core` the tests reach.
//!
//! The core holds every rule, so it is the crate whose coverage says something. Its own tests count, and so
//! do the simulator's, which exist to exercise it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::lcov::{self, Lines};
use crate::need::{self, C_COMPILER, LLVM_COV, LLVM_TOOLS, NEXTEST};
use crate::process;

const MEASURED: &str = "crates/core/src";

#[derive(Args)]
pub struct Options {
    /// Fail when less than this share of the lines is reached, in percent.
    #[arg(long, value_name = "PERCENT")]
    fail_under: Option<f64>,
}

pub fn run(options: &Options) -> Result<()> {
    need::meet([&NEXTEST, &LLVM_COV, &LLVM_TOOLS, &C_COMPILER])?;
    let files = measure()?;
    if files.is_empty() {
        bail!("no line of {MEASURED} was measured");
    }
    eprint!("\n{}", table(&files));
    check(Sum::of(files.iter().map(|(_, lines)| lines)), options.fail_under)
}

fn check(sum: Sum, least: Option<f64>) -> Result<()> {
    let percent = sum.percent();
    match least {
        Some(least) if percent < least => {
            bail!("{percent:.2} % of the lines of {MEASURED} are reached, less than {least} %")
        }
        _ => Ok(()),
    }
}

/// Runs the tests with instrumentation and returns the lines of the measured files, by path.
fn measure() -> Result<Vec<(String, Lines)>> {
    let trace = process::target_folder().join("coverage.lcov");
    let tests = "cargo llvm-cov nextest --package tidegate-core --package tidegate-sim --all-features --lcov";
    process::run_with(tests, &["--output-path".as_ref(), trace.as_os_str()])?;
    let text = fs::read_to_string(&trace).with_context(|| format!("cannot read {}", trace.display()))?;

    let mut files = Vec::new();
    for (path, lines) in lcov::parse(&text) {
        let Ok(name) = Path::new(&path).strip_prefix(process::workspace_root().join(MEASURED)) else {
            continue;
        };
        if name
            .components()
            .any(|part| ["tests", "tests.rs", "testkit.rs"].iter().any(|test| part.as_os_str() == *test))
        {
            continue;
        }
        let source = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        files.push((name.display().to_string(), lines.without_tests(&source)));
    }
    Ok(files)
}

/// A sum of lines, and how many of them were reached.
#[derive(Clone, Copy, Default)]
struct Sum {
    lines: usize,
    reached: usize,
}

impl Sum {
    fn of<'a>(files: impl IntoIterator<Item = &'a Lines>) -> Self {
        files.into_iter().fold(Self::default(), |sum, lines| Self {
            lines: sum.lines + lines.total(),
            reached: sum.reached + lines.reached(),
        })
    }

    fn percent(self) -> f64 {
        if self.lines == 0 { 100.0 } else { self.reached as f64 * 100.0 / self.lines as f64 }
    }
}

fn table(files: &[(String, Lines)]) -> String {
    let width = files.iter().map(|(name, _)| name.len()).max().unwrap_or_default().max(MEASURED.len());
    let row = |name: &str, sum: Sum, missed: &str| {
        let line =
            format!("{name:width$} {:>7} {:>7} {:>8.2} %  {missed}", sum.lines, sum.reached, sum.percent());
        format!("{}\n", line.trim_end())
    };
    let mut text =
        format!("{MEASURED:width$} {:>7} {:>7} {:>10}  never reached\n", "lines", "reached", "share");
    for (name, lines) in files {
        text += &row(name, Sum::of([lines]), &lines.missed());
    }
    text + &row("total", Sum::of(files.iter().map(|(_, lines)| lines)), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_a_file_and_a_total() {
        let trace = "SF:a.rs\nDA:1,1\nDA:2,0\nSF:b.rs\nDA:1,1\nDA:2,1\n";
        let files: Vec<_> = lcov::parse(trace).into_iter().collect();
        let expected = "\
crates/core/src   lines reached      share  never reached
a.rs                  2       1    50.00 %  2
b.rs                  2       2   100.00 %
total                 4       3    75.00 %
";
        assert_eq!(table(&files), expected);
    }

    #[test]
    fn a_share_below_the_bar_fails() {
        let sum = Sum { lines: 200, reached: 189 };
        check(sum, None).expect("no bar");
        check(sum, Some(94.5)).expect("just enough");
        let error = check(sum, Some(95.0)).expect_err("too little");
        assert_eq!(error.to_string(), "94.50 % of the lines of crates/core/src are reached, less than 95 %");
    }
}
