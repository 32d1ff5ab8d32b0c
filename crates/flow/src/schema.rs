//! The grammar as a JSON Schema, for editors.
//!
//! It refuses nothing that the compiler takes, and leaves to it whatever needs more than one field's value: names that
//! must exist, circles, templates. Only words that drafts 7 and 2020-12 share are used, because editors lag behind;
//! branches are chosen by `if`, so that an error speaks of the branch that was meant and not of all of them.

use crate::grammar::{ACTION, CAPACITY, FLOW, Field, Form, Keys, Place, Shape};
use crate::grammar::{EXPRESSION, IDENTIFIER, MAX_IDENTIFIER, MAX_NAME, NAME, places};
use serde_json::{Map, Value as Json, json};

/// One document of a file.
pub fn schema() -> Json {
    let definitions: Map<String, Json> =
        places().into_iter().map(|place| (place.id.to_owned(), object(place))).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tidegate",
        "description": "A flow, an action, or limits, pools and connections.",
        "type": "object",
        "if": { "required": ["flow"] },
        "then": reference(&FLOW),
        "else": {
            "if": { "required": ["action"] },
            "then": reference(&ACTION),
            "else": reference(&CAPACITY),
        },
        "$defs": definitions,
    })
}

fn reference(place: &Place) -> Json {
    json!({ "$ref": format!("#/$defs/{}", place.id) })
}

fn object(place: &Place) -> Json {
    let properties: Map<String, Json> =
        place.fields.iter().map(|field| (field.name.to_owned(), property(field))).collect();
    let required: Vec<&str> =
        place.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut object = json!({
        "title": place.phrase.replace('`', ""),
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    if !place.one_of.is_empty() {
        object["allOf"] = alternatives(place);
    }
    object
}

/// At most one of a place's alternatives is given, and nothing that does not go with it.
fn alternatives(place: &Place) -> Json {
    let mut rules: Vec<Json> = Vec::new();
    for work in place.one_of {
        let others = place.one_of.iter().filter(|other| *other != work);
        let mut refused: Map<String, Json> =
            others.map(|other| ((*other).to_owned(), absent(place, other))).collect();
        refused.extend(place.strangers(work).map(|field| (field.name.to_owned(), json!(false))));
        rules.push(json!({ "if": given(place, work), "then": { "properties": refused } }));
    }
    let any: Vec<Json> = place.one_of.iter().map(|work| given(place, work)).collect();
    let strangers: Map<String, Json> =
        place.strangers("").map(|field| (field.name.to_owned(), json!(false))).collect();
    if place.needs_one {
        rules.push(json!({ "anyOf": any }));
    } else if !strangers.is_empty() {
        rules.push(json!({ "if": { "not": { "anyOf": any } }, "then": { "properties": strangers } }));
    }
    Json::Array(rules)
}

fn is_flag(place: &Place, field: &str) -> bool {
    place.field(field).is_some_and(|field| matches!(field.shape, Shape::Flag))
}

fn given(place: &Place, field: &str) -> Json {
    match is_flag(place, field) {
        true => json!({ "required": [field], "properties": { field: { "const": true } } }),
        false => json!({ "required": [field] }),
    }
}

fn absent(place: &Place, field: &str) -> Json {
    if is_flag(place, field) { json!({ "const": false }) } else { json!(false) }
}

fn property(field: &Field) -> Json {
    let mut property = shape(&field.shape);
    let default = field.default.map(|default| format!(" Without it: {default}.")).unwrap_or_default();
    property["description"] = json!(format!("{}{default}", field.about));
    property
}

fn shape(of: &Shape) -> Json {
    match of {
        Shape::Any | Shape::Template => json!({}),
        Shape::Text => json!({ "type": "string" }),
        Shape::Plain => json!({ "type": ["string", "number", "boolean"] }),
        Shape::Expression => json!({
            "type": "string",
            "pattern": EXPRESSION,
            "patternErrorMessage": "Write one {{ expression }}, with nothing around it.",
        }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Count(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Shape::Name => json!({ "type": "string", "pattern": NAME, "maxLength": MAX_NAME }),
        Shape::Words(words) => json!({ "enum": words() }),
        Shape::Form(form) => self::form(form),
        Shape::Object(place) => reference(place),
        Shape::Map(keys, inner) => map(*keys, inner),
        Shape::List(least, inner) => json!({ "type": "array", "items": shape(inner), "minItems": least }),
        Shape::Either(shapes) => json!({ "anyOf": shapes.iter().map(shape).collect::<Vec<_>>() }),
    }
}

fn form(form: &Form) -> Json {
    let message = format!("Write {}, like {}.", form.phrase.replace('`', ""), form.example);
    let mut schema = json!({
        "type": "string",
        "pattern": form.pattern,
        "minLength": 1,
        "patternErrorMessage": message,
    });
    if form.number {
        schema["type"] = json!(["string", "number"]);
        schema["minimum"] = json!(0);
    }
    schema
}

fn map(keys: Keys, inner: &Shape) -> Json {
    let mut schema = json!({ "type": "object", "additionalProperties": shape(inner) });
    match keys {
        Keys::Identifiers | Keys::SomeIdentifiers => {
            schema["propertyNames"] = json!({ "pattern": IDENTIFIER, "maxLength": MAX_IDENTIFIER });
        }
        Keys::Names => schema["propertyNames"] = json!({ "pattern": NAME, "maxLength": MAX_NAME }),
        Keys::Free => {}
    }
    if keys == Keys::SomeIdentifiers {
        schema["minProperties"] = json!(1);
    }
    schema
}
