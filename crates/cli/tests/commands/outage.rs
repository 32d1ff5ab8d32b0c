//! A store that cannot be written for a while. A limit on the size of files, which can be set from outside, is as
//! good as a full disk: writes fail, and work again once it is lifted.

use crate::support::{Test, golden};
use rustix::process::Signal;

/// Its second step writes more than a little, which is kept in the store.
const WRITING: &str = r#"
flow: writing
steps:
  wait: { run: [sh, -c, "cat go"] }
  write: { after: [wait], run: [sh, -c, "exec 3>alive; echo ready; cat more; head -c 60000 /dev/zero | tr '\\0' x"] }
outputs: { length: "{{ steps.write.output.stdout | length }}" }
"#;

#[test]
fn a_full_disk_is_told_once_and_the_run_goes_on_when_there_is_room() {
    let test = Test::new().file("writing.yaml", WRITING).args(["run", "writing.yaml"]);
    let (go, more) = (test.pipe("go"), test.pipe("more"));
    let alive = test.pipe("alive");
    let mut run = test.start_limitable();
    go.release();
    let held = alive.held();
    run.until("| ready");
    run.limit_files_to(Some(1));
    more.release();
    held.until_gone();
    run.until("cannot write to");
    run.limit_files_to(None);
    run.until("can be written again");
    let said = run.finish();
    let told: Vec<&str> = said.lines().filter(|line| line.contains("state.db")).collect();
    golden("outage", &told.join("\n"));
    assert!(said.contains("✓ write"), "{said}");
}

#[test]
fn an_interrupt_ends_a_run_that_cannot_be_written() {
    let test = Test::new().file("writing.yaml", WRITING).args(["run", "writing.yaml"]).status(130);
    let (go, _more) = (test.pipe("go"), test.pipe("more"));
    let alive = test.pipe("alive");
    let mut run = test.start_limitable();
    go.release();
    let held = alive.held();
    run.until("| ready");
    run.limit_files_to(Some(1));
    run.signal(Signal::TERM);
    held.until_gone();
    let said = run.finish();
    let error = said.lines().skip_while(|line| !line.starts_with("error["));
    golden("outage-interrupted", &error.collect::<Vec<_>>().join("\n"));
}

#[test]
fn nothing_is_started_where_nothing_can_be_written() {
    let test = Test::new().file("writing.yaml", WRITING).args(["run", "writing.yaml"]).status(5);
    let mut command = test.limitable();
    command.env("FILE_LIMIT", "0");
    golden("outage-at-the-start", &test.run_as(command).stderr);
}
