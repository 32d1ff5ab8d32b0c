//! Whatever is in a file, reading it ends, and ends in an answer.

use proptest::prelude::*;
use tidegate_flow::evaluate::{Scope, evaluate_outputs, evaluate_step};
use tidegate_flow::{parse, parse_duration};

/// Pieces that lead deep into the language, so that chance finds more than syntax errors.
const PIECES: [&str; 58] = [
    "flow: a\n",
    "steps:\n",
    "  one:\n",
    "  two:\n",
    "    run: [echo, \"",
    "\"]\n",
    "    after: [one, two]\n",
    "    with_items: \"",
    "\"\n",
    "{{ ",
    " }}",
    "{% ",
    " %}",
    "{# ",
    " #}",
    "inputs.x",
    "steps.one.output",
    "item",
    "[0:2]",
    "['",
    "']",
    "| length",
    " is defined",
    "for x in ",
    "endfor",
    "inputs:\n",
    "  x: { type: list }\n",
    "---\n",
    "pools:\n",
    "  database: { slots: 2 }\n",
    "    pools: { database: 1 }\n",
    "&a ",
    "*a",
    "- ",
    "? ",
    ": ",
    "{",
    "}",
    "\t",
    "é",
    "\u{feff}",
    "\0",
    "    retry: { attempts: 2 }\n",
    "    http: { url: \"http://",
    "\", query: { a: 1 }, ok: [4xx] }\n",
    "outputs:\n",
    "    sql: { connection: db, query: \"",
    "\", params: [\"",
    "\"] }\n",
    "connections: { db: { url: \"mysql://a:b@c/d\" } }\n",
    "    do:\n",
    "      - name: page\n        run: [echo, \"",
    "      - name: save\n        do:\n          - { name: inner, wait: ",
    " }\n",
    "    repeat: { while: \"",
    "\", delay: 1s, max: 5 }\n",
    "page.output.json",
    "repeat.index",
];

fn soup() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..60).prop_map(|pieces| pieces.concat())
}

fn read(text: &[u8]) {
    match parse("any.yaml", text) {
        Err(errors) => {
            assert!(!errors.is_empty());
            assert!(errors.render(false).contains("error["));
        }
        Ok(document) => {
            for flow in &document.flows {
                for step in 0..flow.steps.len() {
                    evaluate_step(flow, step, &Scope::default());
                }
                evaluate_outputs(flow, &Scope::default());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read(&bytes);
    }

    #[test]
    fn any_text_is_read(text in "\\PC{0,200}") {
        read(text.as_bytes());
        parse_duration(&text);
    }

    #[test]
    fn pieces_of_the_language_in_any_order_are_read(text in soup()) {
        read(text.as_bytes());
    }

    #[test]
    fn any_template_is_checked(text in "[{}%#'\"a-z.\\[\\]|: é\\\\-]{0,40}") {
        let file = format!("flow: a\nsteps:\n  one:\n    run:\n      - |\n        {{{{ {text}\n      - {text:?}\n");
        read(file.as_bytes());
    }
}

/// A chain of members, some of them chains, with what belongs to members and what does not.
fn members(depth: u32) -> BoxedStrategy<String> {
    let names = prop::sample::select(vec!["a", "b", "page", "item", "not", "x-y", ""]);
    let texts = prop::sample::select(vec![
        "{{ a.output.n }}",
        "{{ b.state == 'skipped' }}",
        "{{ page.output.body.more }}",
        "{{ repeat.index < 3 }}",
        "{{ inputs.x }}",
        "{{ item }}",
        "5s",
        "true",
    ]);
    let leaf = (prop::sample::select(vec!["run: [echo, ", "wait: ", "shell: ", "action: "]), texts.clone());
    let leaf = leaf.prop_map(|(work, text)| {
        let close = if work.ends_with("[echo, ") { "]" } else { "" };
        format!("{work}{text:?}{close}")
    });
    let work = match depth {
        0 => leaf.boxed(),
        _ => prop_oneof![3 => leaf, 2 => members(depth - 1).prop_map(|members| format!("do: {members}"))]
            .boxed(),
    };
    let more = prop::sample::select(vec!["", "timeout: 1s", "retry: { attempts: 2 }", "pools: {}", "when: "]);
    let repeat = prop::option::of(texts.clone());
    let member = (names, work, more, repeat, texts).prop_map(|(name, work, more, repeat, text)| {
        let when = if more == "when: " { format!("{text:?}") } else { String::new() };
        let more = if more.is_empty() { String::new() } else { format!(", {more}{when}") };
        let repeat = repeat.map(|text| format!(", repeat: {{ while: {text:?} }}")).unwrap_or_default();
        format!("{{ name: {name:?}, {work}{more}{repeat} }}")
    });
    prop::collection::vec(member, 0..4).prop_map(|members| format!("[{}]", members.join(", "))).boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_chain_is_read(members in members(3)) {
        let file = format!("flow: a\ninputs: {{ x: {{ type: any, default: 1 }} }}\nsteps:\n  one:\n    do: {members}\n");
        read(file.as_bytes());
    }
}

/// Sizes at which anything worse than linear would be felt.
#[test]
fn large_files_are_read_in_time() {
    let many: String =
        (0..4000).map(|n| format!("  s{n}: {{ run: [echo], after: [s{}] }}\n", n.max(1) - 1)).collect();
    let chain = format!("flow: a\nsteps:\n{many}");
    assert!(parse("chain.yaml", &chain).is_err_and(|errors| errors.len() == 1), "the first waits for itself");
    let members: String = (1..4000)
        .map(|n| format!("      - {{ name: m{n}, run: [echo, '{{{{ m{}.state }}}}'] }}\n", n - 1))
        .collect();
    let chain = format!("flow: a\nsteps:\n  one:\n    do:\n      - {{ name: m0, run: [echo] }}\n{members}");
    let flow = parse("members.yaml", &chain).unwrap().flows.remove(0);
    evaluate_step(&flow, 0, &Scope::default());
    let wrong: String = (0..5000).map(|n| format!("x{n}: 1\n")).collect();
    let errors = parse("wrong.yaml", format!("flow: a\nsteps: {{}}\n{wrong}")).unwrap_err();
    assert!(errors.render(false).contains("100 errors, and there are more"));
}

/// Each of these once broke some reader of YAML or templates, here or elsewhere.
#[test]
fn hostile_files_get_an_answer() {
    let template = |text: String| format!("flow: a\nsteps:\n  one:\n    run: [echo, '{text}']\n");
    let files = [
        template(format!("{{{{ {}1{} }}}}", "(".repeat(50_000), ")".repeat(50_000))),
        template(format!("{{{{ {}1 }}}}", "not ".repeat(40_000))),
        template(format!("{{{{ {}1 }}}}", "-".repeat(100_000))),
        template(format!("{{{{ 1{} }}}}", " + 1".repeat(50_000))),
        template(format!("{{{{ a{} }}}}", ".b".repeat(100_000))),
        template(format!("{{{{ 1{} }}}}", "|abs".repeat(50_000))),
        template(format!("{{{{ 1{} }}}}", " if 1 else 1".repeat(20_000))),
        // As long as an expression may be, these must still fit on the stack.
        template(format!("{{{{ {}1 }}}}", "not ".repeat(990))),
        template(format!("{{{{ {}1 }}}}", "-".repeat(990))),
        template(format!("{{{{ {}1{} }}}}", "[".repeat(490), "]".repeat(490))),
        template(format!("{{{{ 1{} }}}}", " if 1 else 1".repeat(240))),
        template(format!("{{{{ 1{} }}}}", " ** 1".repeat(320))),
        template(format!("{{{{ 1{} }}}}", "|abs".repeat(490))),
        template("{% if true %}".repeat(15_000)),
        template(format!("{}{}", "{% if true %}".repeat(7_000), "{% endif %}".repeat(7_000))),
        template(format!("{}{}", "{% if true %}".repeat(140), "{% endif %}".repeat(140))),
        template("{{ inputs.x }}".repeat(15_000)),
        template("{%".repeat(100_000)),
        template("{{".repeat(100_000)),
        format!("flow: {}", "[".repeat(250_000)),
        format!("flow: {}", "{a: ".repeat(60_000)),
        "- ".repeat(120_000),
        "? ".repeat(120_000),
        format!("flow: a\nsteps: {}", "&a [".repeat(60)),
        format!("flow: a\nsteps: {}x{}\n", "&a [x, ".repeat(60), "]".repeat(60)),
        format!("&a {}", "a: &b {b: *b}\n".repeat(1000)),
        "a: &a [*a]".to_owned(),
        format!("a: |\n{}", "  x\n".repeat(60_000)),
        format!("flow: \"{}\"", "\\x41".repeat(60_000)),
        format!(
            "flow: a\nsteps:\n{}",
            (0..6000).map(|n| format!("  s{n}: {{ after: [s0, s1, s2] }}\n")).collect::<String>()
        ),
    ];
    for (number, file) in files.iter().enumerate() {
        let start = std::time::Instant::now();
        read(file.as_bytes());
        let spent = start.elapsed();
        assert!(spent.as_secs() < 20, "file {number} took {spent:?}");
    }
}
