//! The picture on a real pseudo-terminal, which `script` makes.

use crate::support::Test;
use std::process::Command;

#[test]
fn a_terminal_gets_a_picture_and_its_cursor_back() {
    let flow = "flow: brief\nsteps:\n  one: { run: [echo, hello] }\n  two: { after: [one], run: [sleep, '0.3'] }\n\
                outputs: { said: '{{ steps.one.output.stdout }}' }\n";
    let test = Test::new().file("brief.yaml", flow);
    let line = format!("'{}' run brief.yaml", env!("CARGO_BIN_EXE_tidegate"));
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .current_dir(test.directory())
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .output()
        .expect("script is there");
    let painted = String::from_utf8(output.stdout).expect("it writes text");
    assert!(output.status.success(), "{painted}");
    assert!(painted.contains("\x1b[?25l"), "the cursor is hidden while it paints");
    let pictures = painted.matches("\x1b[?2026h").count();
    assert!((3..=20).contains(&pictures), "ten pictures a second at most, {pictures} were painted");
    let (_, last) = painted.rsplit_once("\x1b[?2026h").expect("there is a last picture");
    let plain = anstream::adapter::strip_str(last).to_string();
    let words = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("✓ brief run_") && words.contains("✓ one") && words.contains("✓ two"), "{words}");
    assert!(words.ends_with("said hello"), "{words}");
    assert!(last.contains("\x1b[?25h"), "the cursor is back");
}
