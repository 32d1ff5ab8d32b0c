//! Packs: folders of actions and flows that are read with the files beside them.

use crate::support::{Test, golden};

const CHARGE: &str = "action: charge\nrun: [echo, charged]\npools: { ledger: 1 }\n";
const MONTH: &str = "flow: month\nsteps: { charge: { action: charge } }\n";
const MAIN: &str = "flow: main\nsteps: { month: { flow: billing.month } }\n";
const SHARED: &str = "pools: { ledger: { slots: 1 } }\n";

fn test() -> Test {
    Test::new()
        .file("main.yaml", MAIN)
        .file("tidegate.yaml", SHARED)
        .file("packs/billing/charge.yaml", CHARGE)
        .file("packs/billing/month.yaml", MONTH)
        .file("packs/billing/notes.md", "not read")
        .file("packs/.git/config.yaml", "not: read")
}

#[test]
fn a_pack_is_read_by_run_check_and_plan() {
    let test = test().args(["run", "main.yaml"]);
    assert!(test.run().stderr.contains("| charged"));
    let test = test.args(["run", "main.yaml", "--action", "billing.charge"]);
    assert!(test.run().stdout.contains("charged"));
    let test = test.args(["plan", "main.yaml"]);
    assert!(test.run().stdout.contains("action billing.charge"));
    let test = test.args(["check", "."]);
    assert_eq!(test.run().stderr, "4 files, no errors\n");
}

#[test]
fn a_file_inside_a_pack_is_read_as_part_of_it() {
    let test = test().args(["run", "packs/billing/month.yaml"]);
    assert!(test.run().stderr.contains("billing.month"));
    let test = test.args(["check", "packs/billing"]);
    assert_eq!(test.run().stderr, "2 files, no errors\n");
    // Also for somebody who is in there.
    let test = test.args(["check", "month.yaml"]);
    let mut command = test.command();
    command.current_dir(test.path("packs/billing"));
    assert_eq!(test.run_as(command).stderr, "1 file, no errors\n");
}

#[test]
fn what_is_wrong_with_a_pack_is_said_once_and_where_it_stands() {
    let test = test()
        .file("other.yaml", &MAIN.replace("flow: main", "flow: other"))
        .file("packs/billing/again.yaml", "action: billing.charge\nrun: [ls]\n")
        .file("packs/billing/pools.yaml", "pools: { extra: { slots: 1 } }\n")
        .file("typo.yaml", "flow: typo\nsteps: { one: { action: billing.chrage } }\n");
    let test = test.args(["check", "."]).status(2);
    golden("packs-check", &test.run().stderr);
    let test = test.args(["check", ".", "-o", "json"]).status(2);
    golden("packs-check-json", &test.run().stdout);
}

#[test]
fn a_file_that_only_has_packs_beside_it_runs_nothing_by_itself() {
    let test = test().args(["run", "tidegate.yaml"]).status(2);
    golden("packs-nothing-of-its-own", &test.run().stderr);
    let test = test.file("one.yaml", "action: one\nrun: [echo, one]\n").args(["run", "one.yaml"]);
    assert!(
        test.run().stdout.contains("stdout     one\n"),
        "the only action of the file, whatever packs have"
    );
}

#[test]
fn a_pack_whose_name_cannot_be_part_of_names_is_refused() {
    let test = test().file("packs/two words/a.yaml", CHARGE).args(["check", "main.yaml"]).status(2);
    golden("packs-bad-name", &test.run().stderr);
}
