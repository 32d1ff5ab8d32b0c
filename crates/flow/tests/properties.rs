//! Whatever is in a file, reading it ends, and ends in an answer.

use proptest::prelude::*;
use tidegate_flow::evaluate::{Scope, evaluate_outputs, evaluate_step};
use tidegate_flow::{parse, parse_duration};

/// Pieces that lead deep into the language, so that chance finds more than syntax errors.
const PIECES: [&str; 44] = [
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
    "outputs:\n",
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

/// Sizes at which anything worse than linear would be felt.
#[test]
fn large_files_are_read_in_time() {
    let many: String =
        (0..4000).map(|n| format!("  s{n}: {{ run: [echo], after: [s{}] }}\n", n.max(1) - 1)).collect();
    let chain = format!("flow: a\nsteps:\n{many}");
    assert!(parse("chain.yaml", &chain).is_err_and(|errors| errors.len() == 1), "the first waits for itself");
    let wrong: String = (0..5000).map(|n| format!("x{n}: 1\n")).collect();
    let errors = parse("wrong.yaml", format!("flow: a\nsteps: {{}}\n{wrong}")).unwrap_err();
    assert!(errors.len() > 5000);
    assert!(errors.render(false).contains("of them not shown"));
}
