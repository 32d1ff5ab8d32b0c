//! What an unquoted word means: YAML 1.2's core schema, so that `no` and `on` stay text.

use serde_json::{Number, Value};

pub(crate) fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

/// Integers that fit in 64 bits and finite decimals. A longer integer stays text: rounding it would be a lie.
fn number(text: &str) -> Option<Number> {
    if let Some(hex) = text.strip_prefix("0x") {
        return digits(hex, 16);
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return digits(octal, 8);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        let text = text.strip_prefix('+').unwrap_or(text);
        return text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from)).ok();
    }
    let decimal = unsigned.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    if !decimal {
        return None;
    }
    Number::from_f64(text.parse().ok()?)
}

fn digits(text: &str, radix: u32) -> Option<Number> {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric()).then_some(())?;
    u64::from_str_radix(text, radix).ok().map(Number::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_mean_what_yaml_1_2_says() {
        let cases = [
            ("~", json!(null)),
            ("true", json!(true)),
            ("no", json!("no")),
            ("12", json!(12)),
            ("-12", json!(-12)),
            ("+3", json!(3)),
            ("1.5", json!(1.5)),
            ("1e3", json!(1000.0)),
            (".5", json!(0.5)),
            ("0x1f", json!(31)),
            ("0o17", json!(15)),
            ("0x-1", json!("0x-1")),
            ("18446744073709551615", json!(u64::MAX)),
            ("18446744073709551616", json!("18446744073709551616")),
            (".inf", json!(".inf")),
            ("1.2.3", json!("1.2.3")),
            ("5s", json!("5s")),
            ("2030-01-31", json!("2030-01-31")),
        ];
        for (text, value) in cases {
            assert_eq!(resolve(text), value, "{text}");
        }
    }
}
