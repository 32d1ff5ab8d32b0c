//! What templates become when a run makes progress.

use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_core::model::{Action, Flow, Order, Surroundings, Text};
use tidegate_core::protocol::{Evaluation, Payload, Rendered};
use tidegate_core::time::Moment;
use tidegate_flow::evaluate::{
    Callee, Extent, Needed, Part, Scope, StepResult, Within, evaluate_items, evaluate_job, evaluate_outputs,
    evaluate_step, evaluate_when, list_place, steps_needed,
};
use tidegate_flow::parse;

/// A flow whose step `it` is `step`, after a step `first`.
fn flow(step: &str) -> Flow {
    let text = format!(
        "flow: demo\ninputs:\n  url: {{ type: string }}\n  rows: {{ type: any }}\nsteps:\n  first: {{ action: anything }}\n  it:\n    after: [first]\n{step}\n"
    );
    let mut document = parse("demo.yaml", text).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    document.flows.remove(0)
}

fn scope() -> Scope {
    let output =
        json!({ "exit_code": 0, "json": [{ "id": 7 }, { "id": 8 }], "flag": false, "nothing": null });
    let first = StepResult { state: "succeeded".to_owned(), output, error: None };
    Scope {
        inputs: json!({ "url": "http://x/?a=1&b=<2>", "rows": [1, "two", 3.5] }),
        steps: [("first".to_owned(), first)].into(),
        run: "run_1".to_owned(),
        now: Moment(1_000_000),
        callee: Callee::Unknown,
    }
}

fn step(text: &str) -> Evaluation {
    evaluate_step(&flow(text), 1, &scope())
}

fn argv(rendered: &Rendered) -> Vec<String> {
    match serde_json::from_slice(rendered.order.bytes()).unwrap() {
        Order::Run { argv, .. } => argv,
        other => panic!("{other:?}"),
    }
}

fn echo(template: &str) -> String {
    match step(&format!("    run: [echo, {}]", serde_json::to_string(template).unwrap())) {
        Evaluation::Order(rendered) => argv(&rendered).remove(1),
        other => panic!("{template}: {other:?}"),
    }
}

fn failure(text: &str) -> String {
    match step(text) {
        Evaluation::Failed { error } => error,
        other => panic!("{text}: {other:?}"),
    }
}

fn json_of(payload: &Payload) -> Value {
    serde_json::from_slice(payload.bytes()).unwrap()
}

#[test]
fn values_in_text_look_like_json_and_are_not_escaped() {
    let cases = [
        ("plain", "plain"),
        ("{{ inputs.url }}", "http://x/?a=1&b=<2>"),
        ("to {{ inputs.url }}!", "to http://x/?a=1&b=<2>!"),
        ("{{ inputs.rows }}", r#"[1,"two",3.5]"#),
        ("rows: {{ inputs.rows }}", r#"rows: [1,"two",3.5]"#),
        ("{{ steps.first.output.json[1].id + 1 }}", "9"),
        ("{{ steps['first'].output.json[0:1] }}", r#"[{"id":7}]"#),
        ("a {{ steps.first.output.flag }} b {{ steps.first.output.nothing }}", "a false b null"),
        ("{{ run.id }}/{{ steps.first.state }}", "run_1/succeeded"),
        ("{% for row in inputs.rows %}{{ row }},{% endfor %}", "1,two,3.5,"),
        ("{{ inputs.rows | length }}", "3"),
        ("echo ${#NAME} {{# not said #}}{{ run.id }}\n", "echo ${#NAME} run_1\n"),
        ("{% raw %}{{.Names}}{% endraw %}", "{{.Names}}"),
        ("{{ steps.first.output.missing | default('none given') }}", "none given"),
    ];
    for (template, text) in cases {
        assert_eq!(echo(template), text, "{template}");
    }
}

#[test]
fn an_order_has_arguments_environment_and_directory() {
    let Evaluation::Order(rendered) =
        step("    run: [echo]\n    env: { N: \"{{ 1 + 1 }}\" }\n    cwd: \"/{{ run.id }}\"")
    else {
        panic!()
    };
    let order: Order = serde_json::from_slice(rendered.order.bytes()).unwrap();
    let surroundings = |env: [(&str, Text); 1]| Surroundings {
        env: env.map(|(name, text)| (name.to_owned(), text)).into(),
        cwd: Some("/run_1".to_owned()),
    };
    let two = surroundings([("N", Text::Plain("2".to_owned()))]);
    assert_eq!(order, Order::Run { argv: vec!["echo".to_owned()], surroundings: two });
}

#[test]
fn a_script_is_left_as_it_is_and_secrets_are_only_referred_to() {
    let script =
        "    shell: \"echo $A ${#A}\"\n    env: { A: { secret: \"env:TOKEN\" }, B: \"{{ inputs.url }}\" }";
    let Evaluation::Order(rendered) = step(script) else { panic!() };
    let Order::Shell { script, surroundings } = serde_json::from_slice(rendered.order.bytes()).unwrap()
    else {
        panic!()
    };
    assert_eq!(script, "echo $A ${#A}");
    assert_eq!(surroundings.env["A"], Text::Secret { secret: "env:TOKEN".to_owned() });
    assert_eq!(surroundings.env["B"], Text::Plain("http://x/?a=1&b=<2>".to_owned()));
}

#[test]
fn errors_name_the_field_and_what_is_undefined() {
    let cases = [
        (
            "run: [echo, \"{{ steps.first.output.rows }}\"]",
            "`run[1]`: `steps.first.output.rows` is undefined",
        ),
        (
            "run: [echo, \"a {{ steps.first.output.rows.x }}\"]",
            "`run[1]`: `steps.first.output.rows` is undefined",
        ),
        (
            "run: [echo]\n    env: { A: \"x{{ steps.first.output.b }}\" }",
            "`env.A`: `steps.first.output.b` is undefined",
        ),
        ("run: [echo]\n    when: \"{{ inputs.rows }}\"", "`when` must be `true` or `false`, not a list"),
        (
            "run: [echo]\n    when: \"{{ steps.first.output.x == 1 }}\"",
            "`when`: `steps.first.output.x` is undefined",
        ),
        ("run: [echo]\n    with_items: \"{{ inputs.url }}\"", "`with_items` must be a list, not text"),
        ("run: [echo, \"{{ steps.first.output.nothing }}\"]", "`run[1]`: the value is null"),
        (
            "run: [echo, \"{{ [inputs.rows, steps.first.output.x] }}\"]",
            "`run[1]`: a part of the value is undefined",
        ),
        ("run: [\"{{ '' }}\"]", "`run[0]`: there is no program"),
        ("wait: \"{{ inputs.url }}\"", "`wait`: `http://x/?a=1&b=<2>` is neither a duration nor a time"),
    ];
    for (text, error) in cases {
        assert_eq!(failure(&format!("    {text}")), format!("{error} (demo.yaml:7)"));
    }
}

#[test]
fn work_and_size_are_bounded() {
    let loops = "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}";
    assert!(failure(&format!("    run: [echo, \"{loops}\"]")).contains("it takes too long to evaluate"));
    let long = "{% for a in range(9999) %}{{ 'x' * 1000 }}{% endfor %}";
    assert!(failure(&format!("    run: [echo, \"{long}\"]")).contains("the text is longer than"));
    let large = "{{ 'x' * 2000000 }}";
    assert!(failure(&format!("    run: [echo, \"{large}\"]")).contains("larger than"));
    let many = "    with_items: \"{{ range(60000) | list + range(60000) | list }}\"\n    run: [echo]";
    assert!(failure(many).contains("more than the 100000 allowed"));
}

#[test]
fn conditions_skip() {
    assert_eq!(step("    run: [echo]\n    when: \"{{ steps.first.output.flag }}\""), Evaluation::Skipped);
    assert!(matches!(
        step("    run: [echo]\n    when: \"{{ steps.first.state == 'succeeded' }}\""),
        Evaluation::Order(_)
    ));
}

#[test]
fn loops_give_their_list_and_then_their_items() {
    let flow = flow(
        "    with_items: \"{{ steps.first.output.json }}\"\n    run: [echo, \"{{ item.id }}/{{ index }}\", \"{{ inputs.url }}\"]",
    );
    let Evaluation::List { items, count: 2 } = evaluate_step(&flow, 1, &scope()) else { panic!() };
    let items = json_of(&items);
    let Evaluation::Items(orders) = evaluate_items(&flow, 1, &scope(), 40, items.as_array().unwrap()) else {
        panic!()
    };
    let texts: Vec<String> = orders.iter().map(|order| argv(order.as_ref().unwrap()).remove(1)).collect();
    assert_eq!(texts, ["7/40", "8/41"]);
    let Evaluation::Items(orders) = evaluate_items(&flow, 1, &scope(), 3, &[json!({ "id": 1 }), json!({})])
    else {
        panic!()
    };
    assert!(orders[0].is_ok());
    assert_eq!(orders[1], Err("`run[1]`: `item.id` is undefined (demo.yaml:7)".to_owned()));
}

#[test]
fn items_of_a_loop_over_flows_are_given_what_the_flow_takes() {
    let each = flow("    with_items: [1]\n    flow: onboard\n    inputs: { tenant: \"{{ item }}\" }");
    let callee = "flow: onboard\ninputs:\n  tenant: { type: string, required: true }\n  plan: { type: string, default: free }\nsteps:\n  a: { run: [echo] }\n";
    let callee = parse("onboard.yaml", callee).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    let scope = Scope { callee: Callee::Flow(Arc::new(callee.flows[0].clone())), ..scope() };
    let Evaluation::Items(items) = evaluate_items(&each, 1, &scope, 0, &[json!("acme"), json!(7)]) else {
        panic!()
    };
    let given = items[0].as_ref().map(|item| (json_of(&item.order), item.key.clone()));
    assert_eq!(given, Ok((json!({ "tenant": "acme", "plan": "free" }), None)));
    let error = "flow `onboard`: input `tenant` must be text, not an integer (demo.yaml:7)";
    assert_eq!(items[1], Err(error.to_owned()), "as a plain step would say");
    let plain = flow("    flow: onboard\n    inputs: { tenant: 7 }");
    assert_eq!(evaluate_step(&plain, 1, &scope), Evaluation::Failed { error: error.to_owned() });
}

#[test]
fn of_large_items_only_the_first_are_rendered() {
    let flow = flow("    with_items: [1]\n    run: [echo, \"{{ item }}\"]");
    let item = json!("x".repeat(1_000_000));
    let items = |count| match evaluate_items(&flow, 1, &scope(), 0, &vec![item.clone(); count]) {
        Evaluation::Items(orders) => orders.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!([items(1), items(9), items(20)], [1, 9, 9], "until there are 8 MiB");
}

#[test]
fn a_literal_list_keeps_its_types() {
    let Evaluation::List { items, count: 3 } =
        step("    with_items: [1, two, \"{{ inputs.rows }}\"]\n    run: [echo]")
    else {
        panic!()
    };
    assert_eq!(json_of(&items), json!([1, "two", [1, "two", 3.5]]));
}

#[test]
fn waits_end_at_a_time() {
    for (wait, micros) in [
        ("30s", 31_000_000),
        ("1.5", 2_500_000),
        ("\"{{ 2 * 60 }}\"", 121_000_000),
        ("1970-01-01T00:00:09Z", 9_000_000),
    ] {
        assert_eq!(step(&format!("    wait: {wait}")), Evaluation::Until(Moment(micros)), "{wait}");
    }
}

#[test]
fn outputs_keep_their_types() {
    let flow = flow(
        "    run: [echo]\noutputs:\n  list: \"{{ steps.first.output.json }}\"\n  text: \"{{ run.id }}!\"\n  n: 3",
    );
    let Evaluation::Outputs(outputs) = evaluate_outputs(&flow, &scope()) else { panic!() };
    assert_eq!(json_of(&outputs), json!({ "list": [{ "id": 7 }, { "id": 8 }], "text": "run_1!", "n": 3 }));
}

fn action(text: &str) -> Arc<Action> {
    let mut document = parse("action.yaml", text).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    Arc::new(document.actions.remove(0))
}

#[test]
fn actions_see_their_inputs_and_nothing_else() {
    let call = flow("    action: say\n    inputs: { what: \"{{ inputs.url }}\" }");
    let text = "action: say\ninputs:\n  what: { type: string, required: true }\n  loud: { type: boolean, default: true }\nkey: \"{{ inputs.what }}\"\n";
    let run = action(&format!("{text}run: [say, \"{{{{ inputs.loud }}}}\"]\n"));
    let with = |callee| Scope { callee, ..scope() };
    let Evaluation::Order(rendered) = evaluate_step(&call, 1, &with(Callee::Action(run.clone()))) else {
        panic!()
    };
    assert_eq!(
        (argv(&rendered), rendered.key.unwrap().as_str()),
        (vec!["say".to_owned(), "true".to_owned()], "http://x/?a=1&b=<2>")
    );
    let Evaluation::Order(rendered) = evaluate_step(&call, 1, &with(Callee::Action(action(text)))) else {
        panic!()
    };
    let inputs = json!({ "what": "http://x/?a=1&b=<2>", "loud": true });
    assert_eq!(json_of(&rendered.order), json!({"call": {"function": "say", "input": inputs } }));
    let wrong = flow("    action: say\n    inputs: { what: 3, lout: 1 }");
    let error = "action `say`: input `what` must be text, not an integer; there is no input `lout`; did you mean `loud`? (demo.yaml:7)";
    assert_eq!(
        evaluate_step(&wrong, 1, &with(Callee::Action(run))),
        Evaluation::Failed { error: error.to_owned() }
    );
}

#[test]
fn sub_flows_get_checked_inputs() {
    let call = flow("    flow: child\n    inputs: { rows: \"{{ inputs.rows }}\" }");
    let Evaluation::SubFlow { inputs } = evaluate_step(&call, 1, &scope()) else { panic!() };
    assert_eq!(json_of(&inputs), json!({ "rows": [1, "two", 3.5] }));
    let child = Callee::Flow(Arc::new(flow("    run: [echo]")));
    let Evaluation::SubFlow { inputs } = evaluate_step(&call, 1, &Scope { callee: child, ..scope() }) else {
        panic!()
    };
    assert_eq!(json_of(&inputs), json!({ "rows": [1, "two", 3.5], "url": null }));
}

#[test]
fn only_what_is_needed_is_asked_for() {
    let flow = flow(
        "    with_items: \"{{ steps.first.output.json }}\"\n    when: \"{{ steps.first.state == 'failed' }}\"\n    run: [echo, \"{{ item }}\"]\noutputs: { n: \"{{ steps.it.output[1:] }}\", e: \"{{ steps.first.error }}\" }",
    );
    let needed = |step, extent| Needed { step, extent };
    assert_eq!(steps_needed(&flow, Part::Step(1)), [needed(0, Extent::Output)]);
    assert_eq!(steps_needed(&flow, Part::When(1)), [needed(0, Extent::State)]);
    assert_eq!(steps_needed(&flow, Part::Items(1)), []);
    assert_eq!(steps_needed(&flow, Part::Outputs), [needed(0, Extent::State), needed(1, Extent::Output)]);
    assert_eq!(steps_needed(&flow, Part::Step(9)), []);
}

#[test]
fn to_know_how_many_items_ended_well_no_item_is_asked_for() {
    let flow = |outputs| {
        flow(&format!(
            "    with_items: [1, 2]\n    run: [echo, \"{{{{ item }}}}\"]\noutputs: {{ n: \"{outputs}\" }}"
        ))
    };
    let extent = |outputs| steps_needed(&flow(outputs), Part::Outputs)[0].extent;
    assert_eq!(extent("{{ steps.it.output.done }} of {{ steps.it.output.failed }}"), Extent::Counts);
    assert_eq!(extent("{{ steps.it.output['cancelled'] }}"), Extent::Counts);
    assert_eq!(extent("{{ steps.it.output.done }} {{ steps.it.output.items[0] }}"), Extent::Output);
    assert_eq!(extent("{{ steps.it.output }}"), Extent::Output);
    assert_eq!(extent("{{ steps.it.output[inputs.url] }}"), Extent::Output);
    assert_eq!(extent("{{ steps.first.output.done }}"), Extent::Output, "it is not a loop");
}

#[test]
fn a_list_that_is_only_taken_is_cut_out_of_the_text() {
    let place = |list: &str| list_place(&flow(&format!("    with_items: \"{list}\"\n    run: [echo]")), 1);
    for other in [
        "{{ steps.first.output.json[1:] }}",
        "{{ steps.first.output.json | list }}",
        "{{ steps['first'].output.json }}",
        "{{ [steps.first.output.json] }}",
        "{{ steps.first.error }}",
        "{{ range(3) }}",
    ] {
        assert_eq!(place(other), None, "{other}");
    }
    let read = |list: &str, text: &str| place(list).unwrap().read(&Payload::new(text));
    let list = |items: &str, count| Some(Evaluation::List { items: Payload::new(items), count });
    assert_eq!(place("{{- inputs.rows -}}").unwrap().within, Within::Inputs);
    assert_eq!(place("{{ steps.first.output }}").unwrap().within, Within::Output(0));
    assert_eq!(
        read("{{ inputs.rows }}", r#"{"url": 1, "rows": [ {"a": [1]}, "]" ]}"#),
        list(r#"[ {"a": [1]}, "]" ]"#, 2)
    );
    assert_eq!(read("{{ steps.first.output }}", "[]"), list("[]", 0));
    let deep = r#"{"json": {"rows": [0], "r\u006fws": [1, 2]}}"#;
    assert_eq!(read("{{ steps.first.output.json.rows }}", deep), list("[1, 2]", 2), "the last one counts");
    for not in ["null", "{}", "[1", r#"{"rows": 1}"#, r#"{"rows": [1e999]}"#, r#"{"rows": {"a": 1}}"#] {
        assert_eq!(read("{{ inputs.rows }}", not), None, "{not}");
    }
    let many = format!("[{}1]", "1,".repeat(100_000));
    let error = "`with_items` has 100001 items, more than the 100000 allowed".to_owned();
    assert_eq!(read("{{ steps.first.output }}", &many), Some(Evaluation::Failed { error }));
}

#[test]
fn whether_a_step_is_wanted_can_be_asked_alone() {
    let asked = |when: &str| {
        evaluate_when(
            &flow(&format!("    when: \"{when}\"\n    run: [echo, \"{{{{ inputs.rows[9] }}}}\"]")),
            1,
            &scope(),
        )
    };
    assert_eq!(asked("{{ steps.first.output.exit_code == 0 }}"), None);
    assert_eq!(asked("{{ steps.first.output.flag }}"), Some(Evaluation::Skipped));
    let error = "`when` must be `true` or `false`, not nothing (demo.yaml:7)".to_owned();
    assert_eq!(asked("{{ steps.first.output.nothing }}"), Some(Evaluation::Failed { error }));
    assert_eq!(evaluate_when(&flow("    run: [echo]"), 1, &scope()), None);
    assert!(matches!(evaluate_when(&flow("    run: [echo]"), 9, &scope()), Some(Evaluation::Failed { .. })));
}

#[test]
fn a_job_is_checked_and_keyed_like_a_step_that_calls_the_action() {
    let text = "action: mail\ninputs: { to: { type: string, required: true } }\nkey: '{{ inputs.to }}'\n";
    let mail = parse("mail.yaml", text).unwrap().actions.remove(0);
    let rendered = evaluate_job(&mail, json!({ "to": "ada" })).unwrap();
    assert_eq!(rendered.key.as_ref().map(|key| key.as_str()), Some("ada"));
    let order = json!({ "call": { "function": "mail", "input": { "to": "ada" } } });
    assert_eq!(json_of(&rendered.order), order);
    assert_eq!(evaluate_job(&mail, json!({})), Err("input `to` is required".to_owned()));
}

#[test]
fn a_function_that_declares_no_inputs_takes_anything_and_a_process_nothing() {
    let function = parse("a.yaml", "action: open\n").unwrap().actions.remove(0);
    for input in [json!([1, 2]), json!({ "any": "thing" }), json!(null)] {
        let rendered = evaluate_job(&function, input.clone()).unwrap();
        assert_eq!(json_of(&rendered.order)["call"]["input"], input);
    }
    let process = parse("a.yaml", "action: closed\nrun: [ls]\n").unwrap().actions.remove(0);
    assert_eq!(evaluate_job(&process, json!({ "any": 1 })), Err("there is no input `any`".to_owned()));
}

/// What a store of an earlier version holds of a flow that has still to run.
#[test]
fn a_step_in_the_form_of_an_earlier_version_is_carried_out() {
    let mut flow = flow("    run: [echo]");
    let stored = json!({ "Run": json!({ "argv": ["echo", "{{ run.id }}"] }).to_string() });
    flow.steps[1].work = serde_json::from_value(stored).unwrap();
    let retry = json!({ "attempts": 2, "backoff": "Linear", "delay": 1, "max_delay": 2 });
    flow.steps[1].retry = serde_json::from_value(retry).unwrap();
    let Evaluation::Order(rendered) = evaluate_step(&flow, 1, &scope()) else { panic!() };
    assert_eq!(argv(&rendered), ["echo", "run_1"]);
    assert_eq!(flow.steps[1].attempts(), 2);
}
