//! The reference page has every command as it explains itself. `TIDEGATE_BLESS=1` writes the page instead.

use crate::support::Test;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

const HEAD: &str = "# The command line

What each command says about itself with `--help`. Data goes to stdout and everything else to stderr; the exit code is 0 if it \
went well, 1 if a run failed, 2 if something was wrong with the arguments or files, 3 if there is no such thing, 4 if it was \
refused, 5 if a store or server cannot be used, 6 if something has not happened in time, 74 if stdout could not be written, \
and 130 after an interrupt.
";
/// Clap's own, with which nothing can be done but read about the others.
const HELP: &str = "help";

fn help_of(path: &[String]) -> String {
    let words = path.iter().map(String::as_str).chain(["--help"]);
    let help = Test::new().args(words).run().stdout;
    // The terminal that there may be decides nothing.
    help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// The commands that a command has inside.
fn inside(help: &str) -> Vec<String> {
    let Some((_, rest)) = help.split_once("\nCommands:\n") else { return Vec::new() };
    let lines = rest.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn describe(path: &[String], page: &mut String) {
    let help = help_of(path);
    let name = [&["tidegate".to_owned()][..], path].concat().join(" ");
    writeln!(page, "\n## {name}\n\n```\n{help}\n```").expect("there is memory");
    for inner in inside(&help).into_iter().filter(|inner| inner != HELP) {
        describe(&[path, &[inner]].concat(), page);
    }
}

#[test]
fn every_command_is_in_the_reference_as_it_explains_itself() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/commands.md");
    let mut page = HEAD.to_owned();
    describe(&[], &mut page);
    assert!(["## tidegate run\n", "## tidegate limits set\n"].iter().all(|heading| page.contains(heading)));
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(&path, &page).expect("the page can be written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/reference/commands.md is out of date; TIDEGATE_BLESS=1 writes it");
}

#[test]
fn completions_are_scripts_that_know_all_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = Test::new().args(["completions", shell]).run().stdout;
        assert!(["limits", "resume", "io-slots"].iter().all(|word| script.contains(word)), "{shell}");
        assert!(!script.contains("guardian"), "{shell} offers what is not for people");
    }
    let test = Test::new().args(["completions", "bash"]);
    fs::write(test.path("tidegate.bash"), test.run().stdout).expect("it can be written");
    let check = std::process::Command::new("bash").arg("-n").arg(test.path("tidegate.bash")).status();
    assert!(check.expect("bash is there").success());
}
