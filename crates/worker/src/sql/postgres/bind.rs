//! JSON as a parameter: the text that PostgreSQL reads as a value of the type that the parameter has.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::BytesMut;
use serde_json::Value as Json;
use std::error::Error;
use tokio_postgres::types::{Format, IsNull, Kind, ToSql, Type, to_sql_checked};

#[derive(Debug)]
pub(super) struct Literal(Option<String>);

impl Literal {
    /// The error is a sentence.
    pub(super) fn new(value: &Json, kind: &Type) -> Result<Literal, String> {
        match value {
            Json::Null => Ok(Literal(None)),
            value => text(value, kind).map(Some).map(Literal),
        }
    }
}

impl ToSql for Literal {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let Some(text) = &self.0 else { return Ok(IsNull::Yes) };
        out.extend_from_slice(text.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

fn text(value: &Json, kind: &Type) -> Result<String, String> {
    if let Kind::Domain(kind) = kind.kind() {
        return text(value, kind);
    }
    if matches!(*kind, Type::JSON | Type::JSONB) {
        return Ok(value.to_string());
    }
    match (value, kind.kind()) {
        (Json::Array(items), Kind::Array(element)) => array(items, element),
        (Json::String(text), _) if *kind == Type::BYTEA => bytes(text),
        (Json::String(text), _) => Ok(text.clone()),
        (Json::Array(_) | Json::Object(_), _) if !is_text(kind) => {
            let found = if value.is_array() { "a list" } else { "an object" };
            Err(format!("{found} cannot become `{}`", kind.name()))
        }
        (value, _) => Ok(value.to_string()),
    }
}

fn is_text(kind: &Type) -> bool {
    matches!(*kind, Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN)
}

/// `{1,NULL,"a \" b"}`. Lists in lists are further dimensions, except among JSON, where they are values.
fn array(items: &[Json], element: &Type) -> Result<String, String> {
    let mut parts = Vec::new();
    for item in items {
        parts.push(match item {
            Json::Null => "NULL".to_owned(),
            Json::Array(items) if !matches!(*element, Type::JSON | Type::JSONB) => array(items, element)?,
            item => {
                let escaped = text(item, element)?.replace('\\', "\\\\").replace('"', "\\\"");
                format!("\"{escaped}\"")
            }
        });
    }
    Ok(format!("{{{}}}", parts.join(",")))
}

/// Base64, as rows give it.
fn bytes(text: &str) -> Result<String, String> {
    let bytes = BASE64_STANDARD.decode(text).map_err(|_| "bytes are given as base64".to_owned())?;
    Ok(bytes.iter().fold("\\x".to_owned(), |text, byte| text + &format!("{byte:02x}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_become_what_their_parameter_is() {
        let cases = [
            (json!("a\"b"), Type::TEXT, "a\"b"),
            (json!("a"), Type::JSONB, "\"a\""),
            (json!([1, [2]]), Type::JSON, "[1,[2]]"),
            (json!({ "a": 1 }), Type::TEXT, "{\"a\":1}"),
            (json!([1, null]), Type::INT4_ARRAY, "{\"1\",NULL}"),
            (json!([["a\"\\"], ["NULL"]]), Type::TEXT_ARRAY, r#"{{"a\"\\"},{"NULL"}}"#),
            (json!([[1], { "a": "b" }]), Type::JSONB_ARRAY, r#"{"[1]","{\"a\":\"b\"}"}"#),
            (json!("/wA="), Type::BYTEA, "\\xff00"),
            (json!(true), Type::BOOL, "true"),
            (json!(9007199254740993_i64), Type::INT8, "9007199254740993"),
            (json!("{1,2}"), Type::INT4_ARRAY, "{1,2}"),
        ];
        for (value, kind, expected) in cases {
            assert_eq!(text(&value, &kind).as_deref(), Ok(expected), "{value}");
        }
        assert_eq!(text(&json!([1]), &Type::INT4), Err("a list cannot become `int4`".into()));
        assert_eq!(text(&json!({}), &Type::DATE), Err("an object cannot become `date`".into()));
        assert_eq!(text(&json!("é"), &Type::BYTEA), Err("bytes are given as base64".into()));
    }
}
