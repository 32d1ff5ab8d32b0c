//! Chains, as `tidegate run` carries them out.

use crate::support::{Test, golden};

/// A step that is tried twice: each attempt begins with the first member, and the error says where it ended.
#[test]
fn a_failing_chain_says_where_and_begins_anew() {
    let flow = r#"
flow: failing
steps:
  pages:
    do:
      - { name: begin, run: [echo, begin] }
      - name: rounds_of_two
        repeat: { while: "{{ true }}" }
        do:
          - { name: page, shell: 'echo "page $N"; test "$N" -lt 2 || exit 75', env: { N: "{{ repeat.index }}" } }
      - { name: never, run: [echo, never] }
    retry: { attempts: 2, delay: 1ms, on: "exit:75" }
  told:
    after: [pages]
    when: "{{ steps.pages.state == 'failed' }}"
    run: [echo, "{{ steps.pages.output.rounds_of_two.output.rounds }} rounds, begin {{ steps.pages.output.begin.state }}"]
"#;
    let outcome = Test::new().file("failing.yaml", flow).args(["run", "failing.yaml"]).run();
    golden("chain-failing", &outcome.stderr);
}

/// The timeout of the step counts for all of it, and ends what is under way.
#[test]
fn a_chain_has_the_time_that_its_step_has() {
    let flow = r#"
flow: slow
steps:
  slow:
    do:
      - { name: a, run: ["true"] }
      - { name: b, run: [sh, -c, "echo $$ > pid; exec sleep 1000"] }
    timeout: 2s
"#;
    let test = Test::new().file("slow.yaml", flow).args(["run", "slow.yaml"]).status(1);
    let outcome = test.run();
    assert!(outcome.stderr.contains("ran longer than its timeout"), "{}", outcome.stderr);
    let pid = std::fs::read_to_string(test.path("pid")).unwrap();
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists());
}

/// A loop of chains with an action that is one, too.
#[test]
fn items_and_actions_are_chains() {
    let flow = r#"
flow: both
steps:
  each:
    with_items: [1, 2, 3]
    do:
      - { name: one, run: [echo, "{{ item * 10 }}"] }
      - { name: two, run: [echo, "{{ one.output.json + index }}"] }
  call:
    action: greet
    inputs: { name: ada }
outputs:
  each: "{{ steps.each.output.items | map(attribute='output.two.output.json') | list }}"
  call: "{{ steps.call.output.say.output.stdout | trim }}"
---
action: greet
inputs: { name: { type: string, required: true } }
do:
  - { name: upper, run: [echo, "{{ inputs.name | upper }}"] }
  - { name: say, run: [echo, "Hello, {{ upper.output.stdout | trim }}"] }
"#;
    let test = Test::new().file("both.yaml", flow).args(["run", "both.yaml", "-q", "-o", "json"]);
    assert_eq!(test.run().stdout, "{\"call\":\"Hello, ADA\",\"each\":[10,21,32]}\n");
}
