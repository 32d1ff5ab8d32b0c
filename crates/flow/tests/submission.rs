//! What is checked and rendered before a run is submitted.

use serde_json::json;
use tidegate_core::model::Flow;
use tidegate_flow::submit::{check_inputs, inputs_from_text, priority, submission};

fn flow() -> Flow {
    let text = r#"
flow: demo
inputs:
  api: { type: string, required: true }
  pages: { type: integer, default: 3 }
  ratio: { type: number }
  dry: { type: boolean, default: false }
  names: { type: list }
  map: { type: object }
  more: { type: any }
tags: { api: "{{ inputs.api }}", pages: "{{ inputs.pages }}", ratio: "{{ inputs.ratio }}", team: data }
key: "{{ inputs.api }}-{{ inputs.pages }}"
steps:
  one: { run: [echo] }
"#;
    tidegate_flow::parse("demo.yaml", text).unwrap_or_else(|errors| panic!("{errors}")).flows.remove(0)
}

#[test]
fn defaults_are_filled_in_and_tags_and_key_rendered() {
    let run = submission(&flow(), json!({ "api": "x" })).unwrap();
    let nothing = json!(null);
    let expected = json!({ "api": "x", "pages": 3, "ratio": nothing, "dry": false, "names": nothing, "map": nothing, "more": nothing });
    assert_eq!(run.inputs, expected);
    let tags: Vec<_> = run.tags.iter().map(|(tag, value)| (tag.as_str(), value.as_str())).collect();
    assert_eq!(tags, [("api", "x"), ("pages", "3"), ("team", "data")], "a tag without a value is not there");
    assert_eq!(run.key.unwrap().as_str(), "x-3");
}

#[test]
fn everything_wrong_is_said_at_once() {
    let given = json!({ "pages": "many", "ratio": true, "aip": "x" });
    let refused = check_inputs(&flow().inputs, given).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "input `api` is required; input `pages` must be an integer, not text; \
         input `ratio` must be a number, not a boolean; there is no input `aip`; did you mean `api`?"
    );
    assert_eq!(
        check_inputs(&[], json!([1])).unwrap_err().to_string(),
        "the inputs must be an object, not a list"
    );
}

#[test]
fn text_from_a_command_line_takes_the_declared_type() {
    let pairs = [
        ("api", "5"),
        ("pages", "5"),
        ("ratio", "2.5"),
        ("dry", "true"),
        ("names", "[1]"),
        ("map", "{}"),
        ("more", "hi"),
    ];
    let inputs = inputs_from_text(&flow().inputs, pairs).unwrap();
    let expected =
        json!({ "api": "5", "pages": 5, "ratio": 2.5, "dry": true, "names": [1], "map": {}, "more": "hi" });
    assert_eq!(inputs, expected);
    let wrong = [("pages", "2.5"), ("dry", "yes"), ("nmaes", "x"), ("api", "1"), ("api", "2")];
    assert_eq!(
        inputs_from_text(&flow().inputs, wrong).unwrap_err().to_string(),
        "input `pages` must be an integer: `2.5` is not; input `dry` must be `true` or `false`: `yes` is not; \
         there is no input `nmaes`; did you mean `names`?; input `api` is given twice"
    );
}

#[test]
fn keys_have_a_limit() {
    let refused = submission(&flow(), json!({ "api": "x".repeat(300) })).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "`tags.api`: the text is longer than 256 bytes; `key`: the text is longer than 256 bytes"
    );
}

#[test]
fn priorities_have_a_range() {
    assert_eq!(priority(-100), Ok(-100));
    assert_eq!(priority(101).unwrap_err().to_string(), "a priority must be between -100 and 100");
    assert!(priority(1000).is_err());
}
