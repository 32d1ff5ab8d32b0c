//! The examples print what they say.

mod support;

use std::process::Command;
use support::example;

#[track_caller]
fn prints(name: &str, expected: &[&str]) {
    let output = Command::new(example(name)).output().unwrap();
    let (printed, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name} failed: {complaints}");
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected, "{complaints}");
}

#[test]
fn hello() {
    prints("hello", &["Hello, Ada (attempt 1)"]);
}

#[test]
fn limits() {
    prints(
        "limits",
        &[
            "the second film waits for tag:tenant=acme",
            "at most 2 of 20 frames were rendered at once",
            "then at most 1",
        ],
    );
}

#[test]
fn retry() {
    prints(
        "retry",
        &[
            "attempt 1: charge 1250 cents",
            "attempt 2: charge 1250 cents",
            "attempt 3: charge 1250 cents",
            "charged 1250 cents once, whoever asked again",
            "failed for good: the card is not valid",
        ],
    );
}

#[test]
fn batch() {
    prints("batch", &["the sum of 1000 squares is 333833500", "submitted twice, accepted once: true"]);
}

#[test]
fn events() {
    prints(
        "events",
        &[
            "run.queued",
            "worker.joined",
            "run.started",
            "task.granted to local, attempt 1",
            "task.retrying, because: not yet",
            "task.granted to local, attempt 2",
            "task.finished",
            "run.finished, succeeded",
            "once more from half way:",
            "task.granted",
            "task.finished",
            "run.finished",
        ],
    );
}

#[test]
fn flow() {
    prints(
        "flow",
        &[
            "Oslo: 14 degrees, Lisbon: 16 degrees, Graz: 14 degrees",
            "`report` cannot be submitted: input `cities` is required; there is no input `cites`; \
             did you mean `cities`?",
        ],
    );
}
