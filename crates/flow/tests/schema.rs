//! The schema for editors: it takes everything that the language takes, and refuses the mistakes that people make.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tidegate_flow::grammar::{ACTION, CAPACITY, FLOW, Place, Shape, places};
use tidegate_flow::{parse, schema};

const EVERYTHING: &str = include_str!("schema/everything.yaml");
/// Steps of any document may use this one.
const CONNECTIONS: &str = "connections: { warehouse: { url: \"sqlite:a.db\" } }\n";

struct Validator {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Validator {
    fn new() -> Validator {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource("tidegate.json", schema()).unwrap();
        let index = compiler.compile("tidegate.json", &mut schemas).unwrap();
        Validator { schemas, index }
    }

    /// Everything that is wrong with a document, or nothing.
    fn check(&self, document: &Value) -> Result<(), String> {
        self.schemas.validate(document, self.index).map_err(|error| format!("{error:#}"))
    }
}

/// The documents of a file, empty ones left out.
fn documents(text: &str) -> Vec<Value> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|other| other == extension) {
            found.push(path);
        }
    }
}

/// What stands between an opening and a closing mark in the files of a folder.
fn pieces(folder: &str, extension: &str, open: &str, close: &str) -> Vec<String> {
    let mut paths = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), extension, &mut paths);
    let texts = paths.iter().map(|path| fs::read_to_string(path).unwrap());
    let pieces = texts.flat_map(|text| {
        let pieces = text.split(open).skip(1).filter_map(|rest| rest.split(close).next());
        pieces.map(str::to_owned).collect::<Vec<_>>()
    });
    pieces.collect()
}

#[test]
fn every_example_is_taken() {
    let validator = Validator::new();
    let mut paths = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples"), "yaml", &mut paths);
    assert!(paths.len() >= 5);
    for path in paths {
        for document in documents(&fs::read_to_string(&path).unwrap()) {
            validator.check(&document).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
}

#[test]
fn whatever_the_tests_and_guides_show_is_taken() {
    let validator = Validator::new();
    let shown = [
        pieces("tests", "rs", "r#\"", "\"#"),
        pieces("../cli/tests", "rs", "r#\"", "\"#"),
        pieces("../../docs", "md", "```yaml\n", "\n```"),
    ];
    let good: Vec<String> = shown
        .concat()
        .into_iter()
        .filter(|text| text.contains(": ") && parse("a.yaml", text).is_ok())
        .collect();
    assert!(good.len() >= 15, "{}", good.len());
    for text in good {
        for document in documents(&text) {
            validator.check(&document).unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
    }
}

#[test]
fn everything_is_taken_and_is_everything() {
    parse("everything.yaml", EVERYTHING).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    let (validator, mut seen) = (Validator::new(), BTreeSet::new());
    for document in documents(EVERYTHING) {
        validator.check(&document).unwrap_or_else(|error| panic!("{error}\n{document}"));
        let place = [&FLOW, &ACTION].into_iter().find(|place| document.get(place.id).is_some());
        look(place.unwrap_or(&CAPACITY), &document, &mut seen);
    }
    for place in places() {
        for field in place.fields {
            assert!(seen.contains(&(place.id, field.name)), "no `{}` in {}", field.name, place.phrase);
        }
    }
}

/// Notes which fields of which places there are.
fn look(place: &'static Place, value: &Value, seen: &mut BTreeSet<(&'static str, &'static str)>) {
    for field in place.fields {
        if let Some(value) = value.get(field.name) {
            seen.insert((place.id, field.name));
            look_into(&field.shape, value, seen);
        }
    }
}

fn look_into(shape: &'static Shape, value: &Value, seen: &mut BTreeSet<(&'static str, &'static str)>) {
    match (shape, value) {
        (Shape::Object(place), Value::Object(_)) => look(place, value, seen),
        (Shape::Map(_, inner), Value::Object(values)) => {
            values.values().for_each(|value| look_into(inner, value, seen));
        }
        (Shape::List(_, inner), Value::Array(values)) => {
            values.iter().for_each(|value| look_into(inner, value, seen));
        }
        (Shape::Either(shapes), value) => shapes.iter().for_each(|shape| look_into(shape, value, seen)),
        _ => {}
    }
}

#[test]
fn mistakes_are_refused_where_they_are_made() {
    let wrong = [
        ("flow: a\nsteps: { b: { rnu: [ls] } }", "rnu"),
        ("flow: a\nsteps: { b: { run: [ls], tiemout: 5s } }", "tiemout"),
        ("flow: a\nstep: { b: { run: [ls] } }", "step"),
        ("flwo: a\nsteps: { b: { run: [ls] } }", "flwo"),
        ("flow: a", "steps"),
        ("flow: a\nsteps: {}", "/steps"),
        ("flow: a b\nsteps: { b: { run: [ls] } }", "/flow"),
        ("flow: a\nsteps: { b-c: { run: [ls] } }", "b-c"),
        ("flow: a\nsteps: { b: { run: ls } }", "/steps/b/run"),
        ("flow: a\nsteps: { b: { run: [] } }", "/steps/b/run"),
        ("flow: a\nsteps: { b: { run: [ls], shell: ls } }", "/steps/b"),
        ("flow: a\nsteps: { b: { after: [] } }", "/steps/b"),
        ("flow: a\nsteps: { b: { wait: 5s, env: { A: b } } }", "/steps/b"),
        ("flow: a\nsteps: { b: { run: [ls], timeout: 5 } }", "/steps/b/timeout"),
        ("flow: a\nsteps: { b: { run: [ls], timeout: soon } }", "/steps/b/timeout"),
        ("flow: a\nsteps: { b: { run: [ls], timeout: '{{ 5 }}' } }", "/steps/b/timeout"),
        ("flow: a\nsteps: { b: { run: [ls], always: '{{ true }}' } }", "/steps/b/always"),
        ("flow: a\nsteps: { b: { run: [ls], when: yes please } }", "/steps/b/when"),
        ("flow: a\nsteps: { b: { run: [ls], retry: 3 } }", "/steps/b/retry"),
        ("flow: a\nsteps: { b: { run: [ls], retry: { attempts: 0 } } }", "/steps/b/retry/attempts"),
        ("flow: a\nsteps: { b: { run: [ls], retry: { delay: 1s } } }", "/steps/b/retry"),
        ("flow: a\nsteps: { b: { run: [ls], pools: { db: one } } }", "/steps/b/pools/db"),
        ("flow: a\nsteps: { b: { http: { method: GET } } }", "/steps/b/http"),
        ("flow: a\nsteps: { b: { http: { url: 'http://h', json: 1, body: a } } }", "/steps/b/http"),
        ("flow: a\nsteps: { b: { sql: { connection: c } } }", "/steps/b/sql"),
        ("flow: a\nsteps: { b: { shell: ls, env: { A: { secret: TOKEN } } } }", "/steps/b/env/A"),
        ("flow: a\nwhen_busy: wait\nsteps: { b: { run: [ls] } }", "/when_busy"),
        ("action: a\nrun: [ls]\nworker: true", "worker"),
        ("action: a\nenv: { A: b }", "env"),
        ("action: a\nrate: often", "/rate"),
        ("pools: { db: 3 }", "/pools/db"),
        ("pools: { db: { slots: 0 } }", "/pools/db/slots"),
        ("limits: { runs: many }", "/limits/runs"),
        ("limits: { tags: [{ tag: a=b }] }", "/limits/tags/0"),
        ("connections: { db: {} }", "/connections/db"),
    ];
    let validator = Validator::new();
    for (text, place) in wrong {
        assert!(parse("a.yaml", text).is_err(), "{text}");
        let error = validator.check(&documents(text)[0]).expect_err(text);
        assert!(error.contains(place), "{text}\n{error}");
    }
}

/// An editor that underlines what works would be worse than none.
#[test]
fn what_the_schema_refuses_the_language_refuses_too() {
    let validator = Validator::new();
    let (mut refused, mut taken) = (0, 0);
    for document in documents(EVERYTHING) {
        let mut pointers = Vec::new();
        walk(&document, String::new(), &mut pointers);
        for changed in pointers.iter().flat_map(|pointer| changes(&document, pointer)) {
            // An empty document says nothing, and is left out.
            if changed.is_null() {
                continue;
            }
            if let Err(error) = validator.check(&changed) {
                let text = format!("{changed}\n---\n{CONNECTIONS}");
                assert!(parse("a.yaml", text).is_err(), "{changed}\n{error}");
                refused += 1;
            } else {
                taken += 1;
            }
        }
    }
    assert!(refused > 1_000 && taken > 1_000, "{refused} refused, {taken} taken");
}

fn walk(value: &Value, pointer: String, found: &mut Vec<String>) {
    match value {
        Value::Object(values) => {
            let key = |key: &String| format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
            values.iter().for_each(|(name, value)| walk(value, key(name), found));
        }
        Value::Array(values) => {
            let numbered = values.iter().enumerate();
            numbered.for_each(|(at, value)| walk(value, format!("{pointer}/{at}"), found));
        }
        _ => {}
    }
    found.push(pointer);
}

/// The document with something else at this place, or nothing, or a stranger in it.
fn changes(document: &Value, pointer: &str) -> Vec<Value> {
    let others = [
        json!(null),
        json!(true),
        json!(7),
        json!(-1),
        json!(2.5),
        json!(404),
        json!("text"),
        json!("5s"),
        json!("a b"),
        json!(""),
        json!("{{ 1 }}"),
        json!([]),
        json!(["a"]),
        json!([{}]),
        json!({}),
        json!({ "a": 1 }),
        json!({ "secret": "env:A" }),
    ];
    let mut changed: Vec<Value> = others.iter().map(|other| with(document, pointer, other.clone())).collect();
    if let Some((parent, key)) = pointer.rsplit_once('/') {
        let mut without = document.clone();
        match without.pointer_mut(parent) {
            Some(Value::Object(values)) => drop(values.remove(key)),
            Some(Value::Array(values)) => drop(values.remove(key.parse().unwrap())),
            _ => panic!("{pointer}"),
        }
        changed.push(without);
    }
    changed
}

fn with(document: &Value, pointer: &str, value: Value) -> Value {
    let mut document = document.clone();
    *document.pointer_mut(pointer).unwrap() = value;
    document
}
