//! `tidegate run`, from the outside.

use crate::support::{Test, golden};
use rustix::process::Signal;

const QUICKSTART: &str = include_str!("../../../../examples/quickstart.yaml");

/// A step that lives until it is ended, and holds the pipe `alive` so long.
const LASTING: &str = r#"
flow: lasting
steps:
  last: { run: [sh, -c, "exec 3>alive; echo ready; exec sleep 1000"] }
  never: { after: [last], run: [echo, never] }
"#;

#[test]
fn quickstart_runs_to_its_outputs() {
    let test =
        Test::new().file("quickstart.yaml", QUICKSTART).args(["run", "quickstart.yaml", "--slots", "4"]);
    let outcome = test.run();
    golden("quickstart-stdout", &outcome.stdout);
    // Tasks overtake each other and waits may be too short to be seen; each task tells its own story in order.
    let mut lines: Vec<&str> = outcome.stderr.lines().filter(|line| !line.contains(" waits for ")).collect();
    let summary = lines.iter().position(|line| line.starts_with('✓')).expect("there is a summary");
    let tree = lines.split_off(summary);
    lines[1..].sort_by_key(|line| line.split_whitespace().nth(1));
    golden("quickstart-stderr", &[lines, tree].concat().join("\n"));
}

#[test]
fn inputs_come_from_the_command_line_and_from_a_file() {
    let flow = r#"
flow: sum
inputs:
  a: { type: integer, required: true }
  b: { type: integer, default: 5 }
  c: { type: list, default: [] }
steps:
  add: { run: [echo, "{{ inputs.a + inputs.b }}"] }
outputs: { sum: "{{ inputs.a + inputs.b }}", c: "{{ inputs.c }}" }
"#;
    let test = Test::new().file("sum.yaml", flow).file("in.json", r#"{"a": 1, "c": ["x"]}"#);
    let test = test.args(["run", "sum.yaml", "-q", "-o", "json", "--inputs", "in.json", "-i", "a=2"]);
    let outcome = test.run();
    assert_eq!(outcome.stdout, "{\"c\":[\"x\"],\"sum\":7}\n");
    assert_eq!(outcome.stderr, "");
    let outcome = test.args(["run", "sum.yaml", "-i", "a=one", "-i", "d=1"]).status(2).run();
    golden("wrong-inputs", &outcome.stderr);
}

#[test]
fn what_only_other_workers_can_do_is_refused_before_anything_runs() {
    let flow = r#"
flow: outer
steps:
  prepare: { run: [touch, prepared] }
  deep: { after: [prepare], flow: inner }
---
flow: inner
steps:
  call: { action: train }
---
action: train
run: [echo, training]
on: { queue: gpu, labels: [a100, big] }
---
flow: other
steps: { one: { run: [echo, fine] } }
"#;
    let test = Test::new().file("gpu.yaml", flow).args(["run", "gpu.yaml"]).status(2);
    golden("no-worker", &test.run().stderr);
    assert!(!test.path("prepared").exists());
    let test = test.args(["run", "gpu.yaml", "--action", "train"]).status(2);
    assert!(test.run().stderr.contains("action `train` needs a worker of queue `gpu` with `a100`, `big`"));
    test.args(["run", "gpu.yaml", "--flow", "other"]).status(0).run();
}

#[test]
fn a_template_that_fails_while_it_runs_says_where_it_stands() {
    let flow = r#"
flow: failing
steps:
  list: { run: [echo, "{}"] }
  use:
    after: [list]
    run: [echo, "{{ steps.list.output.json.name }}"]
"#;
    let outcome = Test::new().file("failing.yaml", flow).args(["run", "failing.yaml"]).status(1).run();
    let error = "`run[1]`: `steps.list.output.json.name` is undefined (failing.yaml:5)";
    assert!(outcome.stderr.contains(error), "{}", outcome.stderr);
}

#[test]
fn a_failing_flow_says_which_step_failed() {
    let flow = r#"
flow: failing
steps:
  good: { run: [echo, fine] }
  bad: { after: [good], run: [sh, -c, "exec >&2; echo about to fail; echo no such table; exit 3"] }
  next: { after: [bad], run: [echo, next] }
"#;
    let outcome = Test::new().file("failing.yaml", flow).args(["run", "failing.yaml"]).status(1).run();
    assert_eq!(outcome.stdout, "");
    golden("failing", &outcome.stderr);
}

/// The quick ones write while the noisy one does: it has begun, and ends after them.
#[test]
fn a_noisy_step_hides_no_lines_of_quick_ones_and_its_own_are_counted() {
    let flow = r#"
flow: noisy
steps:
  noisy: { run: [sh, -c, "seq 1 60000; read line < go; seq 60001 120000"] }
  quick: { with_items: "{{ range(20) }}", concurrency: 1, run: [echo, "quick {{ item }}"] }
  go: { after: [quick], run: [sh, -c, "echo > go"] }
"#;
    let test = Test::new().file("noisy.yaml", flow).args(["run", "noisy.yaml", "--slots", "2"]);
    let _go = test.pipe("go");
    let said = test.run().stderr;
    for item in 0..20 {
        assert!(said.contains(&format!("| quick {item}\n")), "item {item}");
    }
    let noisy = said.lines().filter(|line| line.split_whitespace().nth(1) == Some("noisy"));
    let (mut shown, mut hidden) = (0, 0);
    for line in noisy {
        let words: Vec<&str> = line.split_whitespace().skip(2).collect();
        match words[..] {
            ["|", number] => {
                shown += 1;
                assert_eq!(number.parse(), Ok(shown + hidden), "every gap is told");
            }
            ["…", count, "lines", "not", "shown"] => hidden += count.parse::<u32>().unwrap(),
            _ => {}
        }
    }
    assert_eq!(shown + hidden, 120_000);
}

#[test]
fn outputs_that_cannot_be_written_are_an_error() {
    let flow = "flow: small\nsteps: { one: { run: [echo] } }\noutputs: { a: 1 }\n";
    let test =
        Test::new().file("small.yaml", flow).args(["run", "small.yaml", "-q", "-o", "json"]).status(74);
    let mut command = test.command();
    command.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap());
    golden("output-not-written", &test.run_as(command).stderr);
}

#[test]
fn a_reader_that_has_gone_away_is_no_success_and_no_news() {
    let flow = "flow: small\nsteps: { one: { run: [echo] } }\noutputs: { a: 1 }\n";
    let test = Test::new().file("small.yaml", flow).args(["run", "small.yaml", "-q"]).status(141);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = test.command();
    command.stdout(writer);
    assert_eq!(test.run_as(command).stderr, "");
}

#[test]
fn an_invalid_file_is_refused_with_all_its_errors() {
    let flow = "flow: broken\nsteps:\n  one: { rnu: [echo] }\n  two: { after: [oen], run: [echo], pools: { db: 1 } }\n";
    let outcome = Test::new().file("broken.yaml", flow).args(["run", "broken.yaml"]).status(2).run();
    golden("invalid", &outcome.stderr);
}

#[test]
fn pools_may_stand_beside_the_file() {
    let flow = "flow: shared\nsteps:\n  one: { run: [echo, hello], pools: { db: 1 } }\n";
    let test = Test::new().file("flows/shared.yaml", flow).args(["run", "flows/shared.yaml", "-q"]).status(2);
    assert!(test.run().stderr.contains("error[unknown-pool]"));
    let test = test.file("flows/tidegate.yaml", "pools: { db: { slots: 1 } }\n");
    test.args(["run", "flows/shared.yaml", "-q"]).run();
}

#[test]
fn files_with_pools_of_their_own_run_in_one_folder() {
    let flow = |name: &str, pool: &str| {
        format!(
            "flow: {name}\nsteps: {{ only: {{ run: [echo, {name}], pools: {{ {pool}: 1 }} }} }}\n---\npools: {{ {pool}: {{ slots: 1 }} }}\n"
        )
    };
    let mut test = Test::new().file("a.yaml", &flow("a", "database")).file("b.yaml", &flow("b", "site"));
    for file in ["a.yaml", "b.yaml", "a.yaml"] {
        test = test.args(["run", file]);
        assert!(test.run().stderr.contains("succeeded"), "{file}");
    }
    // The pool was renamed, and the flow with it.
    let test = test.file("a.yaml", &flow("c", "storage"));
    assert!(test.run().stderr.contains("succeeded"));
}

#[test]
fn another_flow_of_the_file_can_be_chosen() {
    let flows = "flow: one\nsteps: { a: { run: [echo] } }\n---\nflow: two\nsteps: { b: { run: [echo] } }\n\
                 outputs: { which: two }\n";
    let test = Test::new().file("flows.yaml", flows).args(["run", "flows.yaml", "-q", "--flow", "two"]);
    assert_eq!(test.run().stdout, "which  two\n");
    let outcome = test.args(["run", "flows.yaml", "--flow", "three"]).status(2).run();
    golden("no-flow", &outcome.stderr);
}

#[test]
fn an_interrupt_cancels_the_run_and_leaves_no_process() {
    let test = Test::new().file("lasting.yaml", LASTING).args(["run", "lasting.yaml"]).status(130);
    let alive = test.pipe("alive");
    let mut run = test.start();
    let held = alive.held();
    run.until("| ready");
    run.signal(Signal::INT);
    held.until_gone();
    let said = run.finish();
    golden("interrupted", &said);
    assert_eq!(test.args(["why"]).run().stderr, "nothing waits\n");
}

#[test]
fn a_second_interrupt_does_not_wait_for_anybody() {
    let deaf = LASTING.replace("exec 3>alive", "trap '' TERM; exec 3>alive").replace("exec sleep", "sleep");
    let test = Test::new().file("deaf.yaml", &deaf).args(["run", "deaf.yaml"]).status(130);
    let alive = test.pipe("alive");
    let mut run = test.start();
    let held = alive.held();
    run.until("| ready");
    run.signal(Signal::INT);
    run.until("is being cancelled");
    run.signal(Signal::INT);
    assert!(run.finish().contains("error[interrupted]"));
    held.until_gone();
}

#[test]
fn after_a_crash_nothing_is_left_and_the_store_goes_on() {
    let other = "flow: other\nsteps: { one: { run: [echo, fine] } }\n";
    let test = Test::new().file("lasting.yaml", LASTING).file("other.yaml", other);
    let test = test.args(["run", "lasting.yaml"]).leave();
    let outcome = test.args(["run", "other.yaml"]).run();
    let told = "is not finished; `tidegate run --resume` finishes the newest";
    assert!(outcome.stderr.contains(told), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("other"), "{}", outcome.stderr);
}

#[test]
fn a_run_that_was_left_open_is_finished_by_resume() {
    let flow = r#"
flow: single
concurrency: 1
when_busy: reject
inputs: { name: { type: string, required: true } }
steps:
  one: { run: [sh, -c, "exec 3>alive; echo ready; test -e finish || exec sleep 1000"] }
  two: { after: [one], run: [echo, "{{ inputs.name }}"] }
outputs: { said: "{{ steps.two.output.stdout }}" }
"#;
    // Another flow stands in the same file.
    let flows = format!("{flow}---\nflow: with\nsteps: {{ one: {{ run: [echo] }} }}\n");
    let test = Test::new().file("single.yaml", &flows);
    let test = test.file("other.yaml", "flow: other\nsteps: { one: { run: [echo] } }\n");
    let test = test.args(["run", "single.yaml", "-i", "name=Ada"]).leave();

    let test = test.args(["run", "single.yaml", "-q", "-i", "name=Bob"]).status(4);
    golden("refused-for-a-leftover", &test.run().stderr);
    let test = test.args(["run", "other.yaml", "--resume"]).status(3);
    golden("resume-other-flow", &test.run().stderr);

    let test = test.file("finish", "").args(["run", "--resume", "single.yaml", "-o", "json"]);
    let outcome = test.run();
    assert_eq!(outcome.stdout, "{\"said\":\"Ada\\n\"}\n");
    assert!(outcome.stderr.contains("✓ one") && outcome.stderr.contains("✓ two"), "{}", outcome.stderr);
    let test = test.args(["run", "--resume"]).status(3);
    golden("resume-nothing", &test.run().stderr);
}

#[test]
fn a_store_that_another_program_has_for_itself_is_not_shared() {
    let test = Test::new().file("lasting.yaml", LASTING);
    std::fs::create_dir(test.path(".tidegate")).unwrap();
    let _owner = tidegate_store::SqliteStore::open(test.path(".tidegate/state.db")).unwrap();
    let test = test.args(["run", "lasting.yaml"]).status(5);
    golden("in-use", &test.run().stderr);
}
