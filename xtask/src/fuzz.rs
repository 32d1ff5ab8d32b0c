//! `cargo xtask fuzz`: feeds the language with what nobody would write, and looks whether it stays upright.
//!
//! The targets are programs of their own in `fuzz/`, built with the coverage that libFuzzer follows; what it finds worth
//! keeping goes on living in `fuzz/corpus` if asked for. No sanitizer is needed: there is no unsafe code to watch.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::need::{self, C_COMPILER};
use crate::process;

const TARGETS: [&str; 3] = ["parse", "templates", "compile"];

#[derive(Args)]
pub struct Options {
    /// Which of parse, templates and compile; all unless told otherwise.
    targets: Vec<String>,
    /// How long each of them runs.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Keep, in fuzz/corpus, a small set of inputs that reaches every place that was reached.
    #[arg(long)]
    keep: bool,
}

/// What libFuzzer follows a program by. All of it is stable.
const COVERAGE: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "--cfg=fuzzing",
];

/// One input takes at most 10 s and 1 GiB, and is at most as long as a file that is read plus a bit.
const BOUNDS: &str = "-timeout=10 -rss_limit_mb=1024 -max_len=65536";

pub fn run(options: &Options) -> Result<()> {
    let unknown = options.targets.iter().find(|name| !TARGETS.contains(&name.as_str()));
    if let Some(name) = unknown {
        bail!("there is no target `{name}`; there are {}", TARGETS.join(", "));
    }
    need::meet([&C_COMPILER])?;
    let target = process::target_folder().join("fuzz");
    let triple = host()?;
    let build = format!(
        "cargo build --quiet --release --manifest-path fuzz/Cargo.toml --target {triple} --target-dir {}",
        target.display()
    );
    // With a target of its own, build scripts and macros are built without coverage.
    process::run_among(&build, &[("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\u{1f}"))])?;
    for name in TARGETS {
        if options.targets.is_empty() || options.targets.iter().any(|wanted| wanted == name) {
            fuzz(name, &target.join(&triple).join("release").join(name), &target, options)?;
        }
    }
    Ok(())
}

fn fuzz(name: &str, program: &Path, target: &Path, options: &Options) -> Result<()> {
    let (found, crashes) = (target.join("found").join(name), target.join("crashes"));
    let kept = format!("fuzz/corpus/{name}");
    for folder in [found.as_path(), crashes.as_path(), Path::new(&kept)] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    eprintln!("── {name}, {} s", options.seconds);
    let folders = match name {
        "parse" => format!("{} {kept} examples crates/flow/tests/problems", found.display()),
        _ => format!("{} {kept}", found.display()),
    };
    let line = format!(
        "{} {BOUNDS} -max_total_time={} -print_final_stats=1 -verbosity=0 -artifact_prefix={}/{name}- {folders}",
        program.display(),
        options.seconds,
        crashes.display()
    );
    process::run(&line)
        .with_context(|| format!("an input that breaks `{name}` is in {}", crashes.display()))?;
    if options.keep {
        let merged = target.join("merged").join(name);
        let _ = fs::remove_dir_all(&merged);
        fs::create_dir_all(&merged)?;
        process::run(&format!(
            "{} {BOUNDS} -merge=1 -use_counters=0 -verbosity=0 {} {folders}",
            program.display(),
            merged.display()
        ))?;
        fs::remove_dir_all(&kept)?;
        let words: Vec<OsString> =
            ["cp", "-r"].map(OsString::from).into_iter().chain([merged.into(), kept.into()]).collect();
        process::run_words(&words, &[])?;
    }
    Ok(())
}

fn host() -> Result<String> {
    let said = process::read("rustc --version --verbose")?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not say what it builds for")
}
