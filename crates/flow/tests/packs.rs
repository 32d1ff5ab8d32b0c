//! Packs: what names mean inside of them, and what they may not say.

use tidegate_core::model::{Runner, Work};
use tidegate_flow::{Diagnostics, Document, Elsewhere, File, parse_files};

fn read(files: &[(&'static str, &'static str, Option<&'static str>)]) -> Result<Document, Diagnostics> {
    let file = |&(name, text, pack): &(_, &'static str, _)| File { name, bytes: text.as_bytes(), pack };
    parse_files(&files.iter().map(file).collect::<Vec<_>>(), Elsewhere::Nothing)
}

const CHARGE: &str = "action: charge\ninputs: { id: {} }\nrun: [echo, charged]\n";
const MONTHLY: &str = "flow: billing.monthly\nsteps:\n  one: { action: charge }\n  two: { action: billing.charge }\n  three: { flow: daily }\n  four: { action: print }\n---\nflow: daily\nsteps: { one: { run: [ls] } }\n";
const MAIN: &str = "flow: daily\nsteps: { one: { flow: billing.monthly } }\n---\naction: print\nrun: [echo]\n---\naction: charge\nrun: [echo]\n";

#[test]
fn names_are_those_of_the_pack_first() {
    let document = read(&[
        ("packs/billing/charge.yaml", CHARGE, Some("billing")),
        ("packs/billing/monthly.yaml", MONTHLY, Some("billing")),
        ("main.yaml", MAIN, None),
    ]);
    let document = document.unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    let names: Vec<&str> = document.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["billing.monthly", "billing.daily", "daily"]);
    let names: Vec<&str> = document.actions.iter().map(|action| action.policy.action.as_str()).collect();
    assert_eq!(names, ["billing.charge", "print", "charge"]);
    let called = |work: &Work| match work {
        Work::Action { action, .. } => action.to_string(),
        Work::Flow { flow, .. } => flow.to_string(),
        other => panic!("{other:?}"),
    };
    let calls: Vec<String> = document.flows[0].steps.iter().map(|step| called(&step.work)).collect();
    assert_eq!(calls, ["billing.charge", "billing.charge", "billing.daily", "print"]);
    assert_eq!(document.flows[0].steps[0].needs.runner, Runner::Process, "what the action needs");
    assert_eq!(called(&document.flows[2].steps[0].work), "billing.monthly");
}

#[test]
fn a_function_of_a_pack_is_looked_for_under_its_whole_name() {
    let texts = "action: charge\n---\nflow: monthly\nsteps: { one: { action: charge } }\n";
    let file = File { name: "a.yaml", bytes: texts.as_bytes(), pack: Some("billing") };
    let document = parse_files(&[file], Elsewhere::Unknown).unwrap();
    assert_eq!(document.flows[0].steps[0].needs.runner, Runner::Function("billing.charge".into()));
}

#[test]
fn two_files_cannot_define_one_name() {
    let errors = read(&[
        ("packs/billing/a.yaml", CHARGE, Some("billing")),
        ("packs/billing/b.yaml", "action: billing.charge\nrun: [ls]\n", Some("billing")),
    ]);
    let said = "packs/billing/b.yaml:1:9: flow or action `billing.charge` is declared twice; the first is in packs/billing/a.yaml:1";
    assert_eq!(errors.unwrap_err().to_string(), said);
}

#[test]
fn what_was_meant_is_looked_for_in_the_pack() {
    let pack = ("packs/billing/charge.yaml", CHARGE, Some("billing"));
    let cases = [
        (("main.yaml", "flow: a\nsteps: { one: { action: billing.chrage } }\n", None), "billing.charge"),
        (
            ("packs/billing/a.yaml", "flow: a\nsteps: { one: { action: chrage } }\n", Some("billing")),
            "charge",
        ),
    ];
    for (file, meant) in cases {
        let errors = read(&[pack, file]).unwrap_err();
        assert!(
            errors.render(false).contains(&format!("did you mean `{meant}`?")),
            "{}",
            errors.render(false)
        );
    }
}
