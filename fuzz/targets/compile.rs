//! Documents that are well written and mean anything: made of the language's own words, so that most of them get past the
//! reader. Whatever is accepted can be submitted and rendered.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};
use std::sync::OnceLock;
use tidegate_flow::evaluate::{Part, Scope, evaluate_items, evaluate_outputs, evaluate_step, steps_needed};
use tidegate_flow::grammar;

/// Names that people choose, besides every field of the language.
const NAMES: [&str; 3] = ["a", "b", "c"];

fn fields() -> &'static [&'static str] {
    static FIELDS: OnceLock<Vec<&str>> = OnceLock::new();
    FIELDS.get_or_init(|| {
        let known = grammar::places().into_iter().flat_map(|place| place.fields).map(|field| field.name);
        known.chain(NAMES).collect()
    })
}

const WORDS: &[&str] = &[
    "a",
    "b",
    "c",
    "x.a",
    "x.*",
    "*",
    "string",
    "integer",
    "number",
    "boolean",
    "list",
    "object",
    "any",
    "queue",
    "reject",
    "cancel_running",
    "replace",
    "stop",
    "continue",
    "constant",
    "linear",
    "exponential",
    "unlimited",
    "10s",
    "1h",
    "5/1s",
    "100/1d",
    "UTC",
    "Europe/Berlin",
    "GET",
    "POST",
    "http://x/{{ inputs.a }}",
    "select 1",
    "select $1",
    "env:A",
    "file:b",
    "sqlite:x.db",
    "postgres://u@h/d",
    "{{ inputs.a }}",
    "{{ steps.a.output }}",
    "{{ steps.a.state == 'failed' }}",
    "{{ item }}",
    "{{ index }}",
    "{{ item.b }}",
    "{{ run.id }}",
    "{{ range(3) | list }}",
    "{{ repeat.index }}",
    "{{ a.output }}",
    "timeout",
    "exit:1",
    "status:5xx",
    "1MiB",
    "succeeded",
    "2030-01-01T00:00:00Z",
    "",
];

/// Reads a value off the bytes; none are left in the end, so every value has an end.
struct Maker<'a>(&'a [u8]);

impl Maker<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn word(&mut self, words: &[&str]) -> String {
        words[self.byte() as usize % words.len()].to_owned()
    }

    fn value(&mut self, depth: usize) -> Value {
        let kind = self.byte();
        match kind % 8 {
            0 | 1 if depth > 0 => self.object(depth - 1),
            2 if depth > 0 => (0..self.byte() % 4).map(|_| self.value(depth - 1)).collect(),
            3 => json!(i64::from(self.byte()) - 20),
            4 => json!(self.byte().is_multiple_of(2)),
            _ => json!(self.word(WORDS)),
        }
    }

    fn object(&mut self, depth: usize) -> Value {
        let count = self.byte() % 7;
        Value::Object((0..count).map(|_| (self.word(fields()), self.value(depth))).collect::<Map<_, _>>())
    }

    /// A document that has at least its first word, and a flow at least a step.
    fn document(&mut self) -> Value {
        let kind = ["flow", "flow", "action", "limits", "pools", "connections"][self.byte() as usize % 6];
        let mut document = self.object(4);
        document[kind] = match kind {
            "flow" => {
                let step = self.object(4);
                document["steps"] = json!({ "a": { "run": ["x"] }, "b": step });
                json!("f")
            }
            "action" => json!(self.word(&["a", "x.a"])),
            _ => self.object(3),
        };
        document
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut maker = Maker(bytes);
    // JSON is YAML.
    let text: Vec<String> = (0..3).map(|_| maker.document().to_string()).collect();
    let Ok(document) = tidegate_flow::parse("any.yaml", text.join("\n---\n")) else { return };
    for flow in &document.flows {
        let _ = tidegate_flow::submit::submission(flow, json!({ "a": 1 }));
        let scope = Scope { inputs: json!({ "a": [1, { "b": 2 }] }), ..Scope::default() };
        for step in 0..flow.steps.len() {
            let _ = (steps_needed(flow, Part::Step(step)), evaluate_step(flow, step, &scope));
            let _ = evaluate_items(flow, step, &scope, 0, &[json!({ "b": 1 }), json!(null)]);
        }
        let _ = evaluate_outputs(flow, &scope);
    }
});
