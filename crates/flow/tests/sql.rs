//! Statements: what stands in a file, what a worker is handed, and that values only ever are parameters.

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_core::model::{ActionWork, Flow, Order, Runner, SlotKind};
use tidegate_core::protocol::Evaluation;
use tidegate_flow::evaluate::{Scope, evaluate_job, evaluate_step};
use tidegate_flow::{Document, parse, parse_many};

const CONNECTIONS: &str = "connections:
  warehouse: { url: { secret: \"env:WAREHOUSE\" } }
  files: { url: \"sqlite:files.db\", max: 1 }
";

fn document(text: &str) -> Document {
    parse("demo.yaml", format!("{text}---\n{CONNECTIONS}"))
        .unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

/// A flow whose only step is this.
fn flow(sql: &str) -> Flow {
    let inputs = "inputs:\n  v: { type: any }";
    document(&format!("flow: demo\n{inputs}\nsteps:\n  ask:\n    sql: {sql}\n")).flows.remove(0)
}

fn evaluate(sql: &str, value: Value) -> Evaluation {
    evaluate_step(&flow(sql), 0, &Scope { inputs: json!({ "v": value }), ..Scope::default() })
}

fn order(sql: &str, value: Value) -> Value {
    match evaluate(sql, value) {
        Evaluation::Order(rendered) => serde_json::from_slice(rendered.order.bytes()).unwrap(),
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn an_order_holds_its_connection_and_refers_to_secrets() {
    let one = order("{ connection: warehouse, query: select 1 }", json!(null));
    let connection = json!({ "name": "warehouse", "url": { "secret": "env:WAREHOUSE" }, "max": 4 });
    let statements = json!([{ "query": "select 1", "params": "[]" }]);
    let expected = json!({ "connection": connection, "statements": statements, "transaction": false });
    assert_eq!(one, json!({ "sql": expected }));
    assert!(matches!(serde_json::from_value(one).unwrap(), Order::Sql(_)), "a worker reads it");
    let connection = json!({ "name": "files", "url": "sqlite:files.db", "max": 1 });
    let other = order("{ connection: files, query: select 1 }", json!(null));
    assert_eq!(other["sql"]["connection"], connection);
}

#[test]
fn parameters_keep_their_types() {
    let params = r#"["{{ inputs.v }}", "id {{ inputs.v.n }}", 007, "7", null, { a: [true] }]"#;
    let order = order(
        &format!("{{ connection: files, query: select 1, params: {params} }}"),
        json!({ "n": 9007199254740993_i64 }),
    );
    let expected = r#"[{"n":9007199254740993},"id 9007199254740993",7,"7",null,{"a":[true]}]"#;
    assert_eq!(order["sql"]["statements"][0]["params"], expected);
}

#[test]
fn one_expression_gives_all_parameters_or_says_that_it_is_no_list() {
    let sql = r#"{ connection: files, query: select 1, params: "{{ inputs.v }}" }"#;
    assert_eq!(order(sql, json!([1, "a"]))["sql"]["statements"][0]["params"], r#"[1,"a"]"#);
    let error = "`params` must be a list, not text (demo.yaml:5)".to_owned();
    assert_eq!(evaluate(sql, json!("a")), Evaluation::Failed { error });
}

#[test]
fn a_transaction_has_statements_in_their_order() {
    let text =
        r#"{ connection: files, transaction: [{ query: a, params: ["{{ inputs.v }}"] }, { query: b }] }"#;
    let order = order(text, json!(7));
    let statements = json!([{ "query": "a", "params": "[7]" }, { "query": "b", "params": "[]" }]);
    assert_eq!((&order["sql"]["statements"], &order["sql"]["transaction"]), (&statements, &json!(true)));
}

#[test]
fn statements_take_io_slots_also_inside_actions() {
    let step = &flow("{ connection: files, query: select 1 }").steps[0];
    assert_eq!((&step.needs.runner, step.needs.slot()), (&Runner::Io, SlotKind::Io));
    let action = "action: purge\ninputs: { day: { type: string } }\n\
        sql: { connection: files, query: delete, params: [\"{{ inputs.day }}\"] }\n";
    let actions = document(action).actions;
    assert!(matches!(actions[0].work, ActionWork::Order(_)));
    assert_eq!(actions[0].policy.needs.runner, Runner::Io);
    let rendered = evaluate_job(&actions[0], json!({ "day": "monday" })).unwrap();
    let order: Value = serde_json::from_slice(rendered.order.bytes()).unwrap();
    assert_eq!(order["sql"]["statements"][0]["params"], r#"["monday"]"#);
}

#[test]
fn connections_of_another_file_are_found_and_are_no_limits() {
    let flow =
        b"flow: demo\nsteps:\n  one:\n    sql: { connection: files, query: q }\n    pools: { any: 1 }\n";
    let files: [(&str, &[u8]); 2] = [("flow.yaml", flow), ("tidegate.yaml", CONNECTIONS.as_bytes())];
    let document = parse_many(&files).unwrap();
    assert_eq!(document.limits, None, "so a pool may be declared elsewhere");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// No value changes the text of a statement, which database it is for, or how many there are.
    #[test]
    fn values_stay_parameters(value in ".{0,40}") {
        let sql = r#"{ connection: warehouse, query: "select $1", params: ["{{ inputs.v }}"] }"#;
        let with_value = order(sql, json!(value));
        let mut plain = order(sql, json!("x"));
        plain["sql"]["statements"][0]["params"] = json!(json!([value]).to_string());
        prop_assert_eq!(with_value, plain);
    }
}
