//! Starting other programs from a command line written as text.
//!
//! Command lines are split at white space and never see a shell, so a table of them stays plain data.
//! Children get no standard input: nothing here may wait for somebody to type.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs a command line in the workspace's root, with its output visible, and fails when it fails.
pub fn run(line: &str) -> Result<()> {
    run_with(line, &[])
}

/// Like [`run`], with more in the environment.
pub fn run_among(line: &str, environment: &[(&str, String)]) -> Result<()> {
    finish(command(line).envs(environment.iter().cloned()), line)
}

/// Runs a command that was given as words, where we were started and with our input.
pub fn run_words(words: &[OsString], environment: &[(&str, String)]) -> Result<()> {
    let (first, rest) = words.split_first().context("there is no command")?;
    let name = first.to_string_lossy();
    finish(Command::new(program(&name)).args(rest).envs(environment.iter().cloned()), &name)
}

/// Like [`run`], with further arguments that may hold white space.
pub fn run_with(line: &str, arguments: &[&OsStr]) -> Result<()> {
    finish(command(line).args(arguments), line)
}

fn finish(command: &mut Command, line: &str) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}

/// Like [`run`], but a failure of the command is an outcome: what it said on stderr, which stays visible.
pub fn attempt(line: &str) -> Result<Result<(), String>> {
    let output = command(line).output().with_context(|| format!("cannot start `{line}`"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    eprint!("{said}");
    Ok(if output.status.success() { Ok(()) } else { Err(said) })
}

/// Whether a command line succeeds; what it prints is nobody's business.
pub fn answers(line: &str) -> bool {
    let quiet = command(line).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// Standard output of a command line that is expected to succeed, trimmed.
pub fn read(line: &str) -> Result<String> {
    let output =
        command(line).stderr(Stdio::inherit()).output().with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` ended with {}", output.status);
    }
    let text = String::from_utf8(output.stdout).with_context(|| format!("`{line}` printed no text"))?;
    Ok(text.trim().to_owned())
}

/// The folder that holds the workspace's manifest. Asked at run time: clones that share a build cache share
/// this program too, so a path that was compiled in may be that of another clone.
pub fn workspace_root() -> PathBuf {
    let told = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let xtask = told.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    xtask.parent().map_or_else(|| xtask.clone(), Path::to_path_buf)
}

/// Where cargo puts what it builds.
pub fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace_root().join("target"), PathBuf::from)
}

fn command(line: &str) -> Command {
    let mut words = line.split_whitespace();
    let mut command = Command::new(program(words.next().unwrap_or_default()));
    command.args(words).current_dir(workspace_root()).stdin(Stdio::null());
    command
}

/// The cargo that started us is the one to use: another one on PATH may be of another toolchain.
fn program(word: &str) -> OsString {
    match std::env::var_os("CARGO") {
        Some(cargo) if word == "cargo" => cargo,
        _ => word.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_names_itself_and_its_status() {
        let error = run("cargo no-such-subcommand").expect_err("the subcommand does not exist");
        assert_eq!(error.to_string(), "`cargo no-such-subcommand` ended with exit status: 101");
    }

    #[test]
    fn a_missing_program_does_not_answer() {
        assert!(answers("cargo --version"));
        assert!(!answers("no-such-program-anywhere"));
    }

    #[test]
    fn commands_run_in_the_root_of_the_workspace() {
        let manifest = read("cargo locate-project --message-format plain").expect("there is a manifest");
        assert_eq!(Path::new(&manifest), workspace_root().join("Cargo.toml"));
    }
}
