//! `tidegate check`, from the outside.

use crate::support::{Test, golden};

const GOOD: &str = "flow: good\nsteps:\n  one: { run: [echo, hello], pools: { db: 1 } }\n";
const SHARED: &str = "pools: { db: { slots: 1 } }\n";

#[test]
fn good_files_are_counted() {
    let test = Test::new().file("flows/good.yaml", GOOD).file("flows/tidegate.yaml", SHARED);
    let test = test.file("flows/.hidden.yaml", "nonsense").file("flows/readme.md", "nonsense");
    let outcome = test.args(["check", "flows"]).run();
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("", "2 files, no errors\n"));
}

#[test]
fn every_error_of_every_file_is_shown() {
    let test = Test::new()
        .file(
            "a.yaml",
            "flow: a\nsteps:\n  one: { run: [echo], timeout: soon }\n  two: { after: [on], run: [ls] }\n",
        )
        .file("deep/b.yaml", "flow: b\nsteps:\n  one: { run: [echo], pools: { bd: 1 } }\n")
        .file("deep/tidegate.yaml", SHARED)
        .file("good.yaml", "flow: good\nsteps: { one: { run: [ls] } }\n");
    let outcome = test.args(["check", "."]).status(2).run();
    assert_eq!(outcome.stdout, "");
    golden("check-errors", &outcome.stderr);
}

#[test]
fn what_is_wrong_beside_many_files_is_said_once() {
    let test = Test::new()
        .file("a.yaml", GOOD)
        .file("b.yaml", &GOOD.replace("good", "other"))
        .file("tidegate.yaml", "pools: { db: { slots: none } }\n");
    let outcome = test.args(["check", "."]).status(2).run();
    assert_eq!(outcome.stderr.matches("error[").count(), 1, "{}", outcome.stderr);
}

/// The large one would need more memory than there is, the endless one all of it, and the pipe all the time.
#[test]
fn of_what_is_too_large_or_no_file_next_to_nothing_is_read() {
    let mut test =
        Test::new().file("huge.yaml", "").file("good.yaml", &GOOD.replace(", pools: { db: 1 }", ""));
    let huge = std::fs::File::options().write(true).open(test.path("huge.yaml")).unwrap();
    huge.set_len(1 << 40).unwrap();
    let _pipe = test.pipe("pipe.yaml");
    let mut said = String::new();
    for path in ["huge.yaml", "pipe.yaml", "/dev/zero"] {
        test = test.args(["check", path]).status(2);
        said += &test.run().stderr;
    }
    golden("check-not-read", &said);
    let test = test.args(["run", "good.yaml", "--inputs", "huge.yaml"]).status(2);
    assert!(test.run().stderr.contains("error[file-too-large]"));
}

#[test]
fn a_file_may_come_through_a_pipe() {
    let test = Test::new().file("good.yaml", "flow: good\nsteps: { one: { run: [ls] } }\n");
    let mut command = std::process::Command::new("sh");
    let script = format!("cat good.yaml | '{}' check /dev/stdin", env!("CARGO_BIN_EXE_tidegate"));
    command.args(["-c", &script]).current_dir(test.directory());
    assert_eq!(test.run_as(command).stderr, "1 file, no errors\n");
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let test = Test::new().args(["check", "missing.yaml"]).status(2);
    golden("check-missing", &test.run().stderr);
    let test = test.file("empty/readme.md", "").args(["check", "empty"]).status(2);
    assert!(test.run().stderr.contains("error[no-files]"));
}
