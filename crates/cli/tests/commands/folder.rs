//! Several `tidegate run` in one folder: real processes, really killed.

use crate::support::{Test, golden};
use rustix::process::Signal;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

const POOL: &str = "pools: { database: { slots: 1 } }\n";

/// Holds the only unit of the pool until it is let go, and then takes it again and again.
const HOLDS: &str = r#"
flow: holds
steps:
  hold: { run: [sh, -c, "mkdir busy; echo ready; : < go; rmdir busy"], pools: { database: 1 } }
  each: { after: [hold], with_items: "{{ range(15) }}", run: [sh, -c, "mkdir busy && echo one >> log; rmdir busy"], pools: { database: 1 } }
"#;

/// Takes the same unit, whenever it gets it.
const WANTS: &str = r#"
flow: wants
steps:
  each: { with_items: "{{ range(15) }}", run: [sh, -c, "mkdir busy && echo other >> log; rmdir busy"], pools: { database: 1 } }
outputs: { how: well }
"#;

/// A step that lives until it is ended, or ends at once if it may.
const LASTING: &str = r#"
flow: lasting
steps:
  last: { run: [sh, -c, "test -e finish || { exec 3>alive; echo ready; exec sleep 1000; }"], pools: { database: 1 } }
  next: { after: [last], run: [echo, next] }
outputs: { said: "{{ steps.next.output.stdout }}" }
"#;

/// A step that waits to be let go.
const PATIENT: &str = r#"
flow: patient
steps:
  wait: { run: [sh, -c, "echo ready; : < go"] }
  then: { after: [wait], run: [echo, then] }
outputs: { said: "{{ steps.then.output.stdout }}" }
"#;

fn folder() -> Test {
    let test = Test::new().file("tidegate.yaml", POOL).file("holds.yaml", HOLDS).file("wants.yaml", WANTS);
    test.file("lasting.yaml", LASTING).file("patient.yaml", PATIENT)
}

#[test]
fn two_runs_share_a_pool_and_never_have_it_both() {
    let test = folder().args(["run", "holds.yaml", "--slots", "4"]);
    let go = test.pipe("go");
    let mut first = test.start();
    first.until("| ready");
    let test = test.args(["run", "wants.yaml", "--slots", "4"]);
    let mut second = test.start();
    second.until("waits for pool database");
    assert!(!test.path("log").exists());
    go.release();
    assert!(second.finish().contains("succeeded"));
    assert!(first.finish().contains("succeeded"));
    // Whoever found the other inside failed, and its run with it.
    let log = fs::read_to_string(test.path("log")).unwrap();
    assert_eq!(["one", "other"].map(|who| log.lines().filter(|line| *line == who).count()), [15, 15]);
    let left = fs::read_dir(test.path(".tidegate")).unwrap().map(|file| file.unwrap().file_name());
    let about =
        left.filter(|name| [".address", ".cli-"].iter().any(|part| name.to_string_lossy().contains(part)));
    assert_eq!(about.count(), 0, "neither left anything about itself");
}

#[test]
fn steps_are_done_where_their_run_was_begun() {
    let flow = |name: &str| {
        format!(
            "flow: {name}\nsteps:\n  each: {{ with_items: \"{{{{ range(20) }}}}\", run: [sh, -c, 'echo $LC_WHO >> {name}'] }}\n"
        )
    };
    let test = folder().file("a.yaml", &flow("a")).file("b.yaml", &flow("b"));
    let test = test.args(["run", "patient.yaml"]);
    let go = test.pipe("go");
    let mut idle = test.start();
    idle.until("| ready");
    for name in ["a", "b"] {
        let file = format!("{name}.yaml");
        let invocation = ["run", &file, "--slots", "1"];
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(invocation).current_dir(test.directory()).env("LC_WHO", name);
        assert!(command.output().unwrap().status.success());
        let done = fs::read_to_string(test.path(name)).unwrap();
        assert_eq!(done.lines().filter(|who| *who == name).count(), 20, "{done}");
    }
    go.release();
    idle.finish();
}

#[test]
fn the_second_goes_on_when_the_first_has_ended() {
    let test = folder().args(["run", "lasting.yaml"]).status(130);
    let alive = test.pipe("alive");
    let mut first = test.start();
    let held = alive.held();
    first.until("| ready");
    let test = test.args(["run", "patient.yaml"]);
    let go = test.pipe("go");
    let mut second = test.start();
    second.until("| ready");
    first.signal(Signal::INT);
    held.until_gone();
    assert!(first.finish().contains("lasting"), "an interrupt cancels its own run");
    go.release();
    assert!(second.finish().contains("✓ then"));
}

#[test]
fn an_interrupt_of_the_second_leaves_the_first_alone() {
    let test = folder().args(["run", "patient.yaml"]);
    let go = test.pipe("go");
    let mut first = test.start();
    first.until("| ready");
    let test = test.args(["run", "lasting.yaml"]).status(130);
    let alive = test.pipe("alive");
    let mut second = test.start();
    let held = alive.held();
    second.until("| ready");
    second.signal(Signal::INT);
    held.until_gone();
    assert!(second.finish().contains("was cancelled"));
    go.release();
    assert!(first.finish().contains("✓ then"));
}

#[test]
fn the_second_takes_over_from_a_killed_one_whose_run_is_resumed_later() {
    let test = folder().args(["run", "lasting.yaml"]).status(-1);
    let alive = test.pipe("alive");
    let mut first = test.start();
    let held = alive.held();
    first.until("| ready");
    let test = test.args(["run", "wants.yaml"]);
    let mut second = test.start();
    second.until("waits for pool database");
    first.signal(Signal::KILL);
    held.until_gone();
    first.finish();
    let said = second.finish();
    assert!(said.contains("succeeded") && !said.contains("lasting"), "{said}");

    fs::remove_file(test.path("alive")).unwrap();
    let test = test.args(["why"]);
    let waits = test.run().stdout;
    let (name, _) = waits.split_once(' ').expect("nobody went on with it");
    let test = test.args(["why", name]);
    golden("why-left", &test.run().stderr);
    let test = test.file("finish", "").args(["run", "--resume", "-o", "json"]);
    assert_eq!(test.run().stdout, "{\"said\":\"next\\n\"}\n");
}

#[test]
fn a_killed_follower_is_resumed_beside_the_one_that_leads() {
    let test = folder().args(["run", "patient.yaml"]);
    let go = test.pipe("go");
    let mut first = test.start();
    first.until("| ready");
    let test = test.args(["run", "lasting.yaml"]).status(-1);
    let alive = test.pipe("alive");
    let mut second = test.start();
    let held = alive.held();
    second.until("| ready");
    let test = test.args(["run", "--resume", "lasting.yaml"]).status(4);
    golden("resume-under-way", &test.run().stderr);
    second.signal(Signal::KILL);
    held.until_gone();
    second.finish();
    let test = test.file("finish", "").args(["run", "--resume", "-o", "json"]);
    assert_eq!(test.run().stdout, "{\"said\":\"next\\n\"}\n");
    go.release();
    assert!(first.finish().contains("✓ then"));
}

#[test]
fn what_a_killed_one_said_about_itself_is_harmless() {
    let test = folder().args(["run", "lasting.yaml"]).leave();
    let address = test.path(".tidegate/state.db.address");
    assert_eq!(fs::metadata(&address).unwrap().permissions().mode() & 0o777, 0o600);
    let test = test.args(["run", "wants.yaml", "-q"]);
    assert_eq!(test.run().stdout, "how  well\n");
    assert!(!address.exists());
}

#[test]
fn an_address_that_others_can_read_is_not_believed() {
    let test = folder().args(["run", "patient.yaml"]);
    let go = test.pipe("go");
    let mut first = test.start();
    first.until("| ready");
    let address = test.path(".tidegate/state.db.address");
    fs::set_permissions(&address, Permissions::from_mode(0o644)).unwrap();
    let test = test.args(["run", "wants.yaml"]).status(5);
    golden("address-not-believed", &test.run().stderr);
    fs::remove_file(&address).unwrap();
    fs::create_dir(&address).unwrap();
    let said = test.run().stderr;
    assert!(said.contains("state.db.address"), "{said}");
    fs::remove_dir(&address).unwrap();
    go.release();
    assert!(first.finish().contains("✓ then"));
}
