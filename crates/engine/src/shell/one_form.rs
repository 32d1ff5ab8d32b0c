//! One way to write the same JSON: whoever compares what was submitted under one key compares bytes, and a database that
//! carried a letter has written it anew. Members are sorted, of those with one name the last counts, numbers have no
//! exponent, and nothing is escaped or spaced out without need. Digits are kept, however many there are.

use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt::Write;
use tidegate_core::protocol::LARGEST_PAYLOAD;

/// What is nested deeper is left as it is written.
const DEEPEST: u32 = 128;
/// Numbers with a larger exponent are left as they are written: no `f64` has one.
const LARGEST_EXPONENT: i32 = 400;

/// The same JSON in that form; what is none, or would become too large to be taken, is left alone.
pub fn in_one_form(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    match serde_json::from_str(json).ok().and_then(|value| write(value, 0, &mut out)) {
        Some(()) => out,
        None => json.to_owned(),
    }
}

fn write(value: &RawValue, depth: u32, out: &mut String) -> Option<()> {
    let text = value.get();
    match text.as_bytes().first()? {
        b'{' | b'[' if depth == DEEPEST => return None,
        _ if out.len() > LARGEST_PAYLOAD => return None,
        b'{' => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
            out.push('{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                separate(index, out);
                out.push_str(&serde_json::to_string(&name).ok()?);
                out.push(':');
                write(member, depth + 1, out)?;
            }
            out.push('}');
        }
        b'[' => {
            let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            out.push('[');
            for (index, element) in elements.into_iter().enumerate() {
                separate(index, out);
                write(element, depth + 1, out)?;
            }
            out.push(']');
        }
        b'"' => out.push_str(&serde_json::to_string(&serde_json::from_str::<String>(text).ok()?).ok()?),
        b'-' | b'0'..=b'9' => write_number(text, out),
        _ => out.push_str(text),
    }
    Some(())
}

fn separate(index: usize, out: &mut String) {
    if index > 0 {
        out.push(',');
    }
}

/// As PostgreSQL writes a `numeric`: without an exponent, with as many decimals as were given, and nothing negative that
/// is zero.
fn write_number(text: &str, out: &mut String) {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |positive| ("-", positive));
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let Some(exponent) = exponent.parse().ok().filter(|power: &i32| power.abs() <= LARGEST_EXPONENT) else {
        out.extend([sign, text]);
        return;
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{decimals}");
    let scale = decimals.len() as i32 - exponent;
    let padding = "0".repeat(scale.unsigned_abs() as usize);
    let (whole, decimals) = match scale {
        ..=0 => (digits + &padding, String::new()),
        _ => {
            let mut whole = padding + &digits;
            let decimals = whole.split_off(whole.len() - scale as usize);
            (whole, decimals)
        }
    };
    let whole = whole.trim_start_matches('0');
    let is_zero = whole.is_empty() && decimals.bytes().all(|digit| digit == b'0');
    let _ = write!(
        out,
        "{}{}{}{decimals}",
        if is_zero { "" } else { sign },
        if whole.is_empty() { "0" } else { whole },
        if decimals.is_empty() { "" } else { "." }
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn the_order_of_members_spaces_and_escapes_do_not_count() {
        let written = r#" { "b" : [ 1 , null , true ], "a\/" : "\u00e9\n", "b\u0062": {}, "b" : [ ] } "#;
        assert_eq!(in_one_form(written), "{\"a/\":\"é\\n\",\"b\":[],\"bb\":{}}");
    }

    #[test]
    fn what_would_become_too_large_is_left_as_it_is() {
        let many = format!("[{}1]", "1e400,".repeat(LARGEST_PAYLOAD / 400));
        assert_eq!(in_one_form(&many), many);
    }

    #[test]
    fn numbers_are_written_as_postgresql_writes_them() {
        let cases = [
            ("0", "0"),
            ("-0.0", "0.0"),
            ("-0", "0"),
            ("1.50", "1.50"),
            ("1e16", "10000000000000000"),
            ("1.5E+2", "150"),
            ("-1.50e1", "-15.0"),
            ("1e-7", "0.0000001"),
            ("12.5e-3", "0.0125"),
            ("170141183460469231731687303715884105728", "170141183460469231731687303715884105728"),
            ("1e99999", "1e99999"),
        ];
        for (written, expected) in cases {
            assert_eq!(in_one_form(written), expected);
        }
    }

    #[test]
    fn what_is_no_json_or_too_deep_is_left_alone() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        for text in ["", "{", "nonsense", &deep] {
            assert_eq!(in_one_form(text), text);
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_filter("JSON has no others", |number| number.is_finite()).prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(".{0,3}", inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_stays_as_it_is_and_means_the_same(value in values()) {
            let once = in_one_form(&value.to_string());
            prop_assert_eq!(in_one_form(&once), once.as_str());
            prop_assert_eq!(numbers_as_floats(serde_json::from_str(&once).unwrap()), numbers_as_floats(value));
        }
    }

    /// `1e16` and `10000000000000000` are read as different kinds of number.
    fn numbers_as_floats(value: Value) -> Value {
        match value {
            Value::Number(number) => Value::from(number.as_f64().unwrap() + 0.0),
            Value::Array(elements) => elements.into_iter().map(numbers_as_floats).collect(),
            Value::Object(members) => {
                members.into_iter().map(|(name, member)| (name, numbers_as_floats(member))).collect()
            }
            value => value,
        }
    }
}
