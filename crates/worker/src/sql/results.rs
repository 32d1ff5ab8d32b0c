//! What databases give back, as JSON: `{rows, count}`, and for a transaction `{results: [{rows, count}, …]}`.

use super::trouble::Trouble;
use crate::secrets::Secrets;
use serde_json::{Map, Number, Value as Json};
use tidegate_core::protocol::{LARGEST_OUTPUT, Payload};

/// What stands around rows: names, brackets, a number.
const AROUND: usize = 64;

/// What all statements of an order gave so far.
pub(super) struct Results {
    is_transaction: bool,
    secrets: Secrets,
    json: Vec<u8>,
}

impl Results {
    pub(super) fn new(is_transaction: bool, secrets: Secrets) -> Results {
        let json = if is_transaction { br#"{"results":["#.to_vec() } else { Vec::new() };
        Results { is_transaction, secrets, json }
    }

    /// For what the next statement gives.
    pub(super) fn next(&self) -> Rows {
        let room = (LARGEST_OUTPUT - AROUND).saturating_sub(self.json.len());
        Rows { secrets: self.secrets.clone(), columns: Vec::new(), json: Vec::new(), count: 0, room }
    }

    pub(super) fn add(&mut self, rows: Rows) {
        if self.json.last() == Some(&b'}') {
            self.json.push(b',');
        }
        self.json.extend(br#"{"rows":["#);
        self.json.extend(rows.json);
        self.json.extend(format!(r#"],"count":{}}}"#, rows.count).into_bytes());
    }

    pub(super) fn payload(mut self) -> Payload {
        if self.is_transaction {
            self.json.extend(b"]}");
        }
        Payload::new(self.json)
    }
}

/// What one statement gives.
#[derive(Clone)]
pub(super) struct Rows {
    secrets: Secrets,
    columns: Vec<String>,
    /// Objects, with commas between them.
    json: Vec<u8>,
    count: u64,
    room: usize,
}

impl Rows {
    /// Two columns of one name could not both be found in an object.
    pub(super) fn set_columns(&mut self, columns: Vec<String>) -> Result<(), Trouble> {
        let mut sorted: Vec<&String> = columns.iter().collect();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let why = format!("two columns are called `{}`: give one another name with `as`", twice[0]);
            return Err(Trouble::Order(why));
        }
        self.columns = columns;
        Ok(())
    }

    pub(super) fn push(&mut self, values: impl IntoIterator<Item = Json>) -> Result<(), Trouble> {
        let row: Map<String, Json> = self.columns.iter().cloned().zip(values).collect();
        let row = self.secrets.conceal_json(Json::Object(row)).to_string();
        if !self.json.is_empty() {
            self.json.push(b',');
        }
        if self.json.len() + row.len() > self.room {
            return Err(Trouble::TooLarge);
        }
        self.json.extend(row.into_bytes());
        self.count += 1;
        Ok(())
    }

    /// How many rows it was about, of a statement that gives none.
    pub(super) fn set_affected(&mut self, count: u64) {
        self.count = count;
    }

    pub(super) fn has_columns(&self) -> bool {
        !self.columns.is_empty()
    }
}

/// JSON has no words for what is not a number.
pub(super) fn float(value: f64) -> Json {
    match Number::from_f64(value) {
        Some(number) => Json::Number(number),
        None if value.is_nan() => Json::from("NaN"),
        None if value > 0.0 => Json::from("Infinity"),
        None => Json::from("-Infinity"),
    }
}

/// The shortest number that is the same in this precision: 0.1, and not 0.10000000149011612.
pub(super) fn short_float(value: f32) -> Json {
    float(value.to_string().parse().unwrap_or(f64::from(value)))
}

/// Why a value cannot be given.
pub(super) fn unreadable(column: &str, kind: &str) -> Trouble {
    Trouble::Order(format!("column `{column}` is of type `{kind}`, which cannot be read: cast it to text"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(results: Results) -> Json {
        serde_json::from_slice(results.payload().bytes()).unwrap()
    }

    #[test]
    fn results_are_one_object_or_a_list_of_them() {
        let mut one = Results::new(false, Secrets::default());
        let mut rows = one.next();
        rows.set_columns(vec!["a".into(), "b".into()]).unwrap();
        rows.push([json!(1), json!("x")]).unwrap();
        rows.push([json!(null), json!("}")]).unwrap();
        one.add(rows);
        assert_eq!(read(one), json!({ "rows": [{ "a": 1, "b": "x" }, { "a": null, "b": "}" }], "count": 2 }));

        let mut several = Results::new(true, Secrets::default());
        for affected in [7, 0] {
            let mut rows = several.next();
            rows.set_affected(affected);
            several.add(rows);
        }
        let expected = json!({ "results": [{ "rows": [], "count": 7 }, { "rows": [], "count": 0 }] });
        assert_eq!(read(several), expected);
        assert_eq!(read(Results::new(true, Secrets::default())), json!({ "results": [] }));
    }

    #[test]
    fn rows_end_where_a_payload_does_and_columns_have_names_of_their_own() {
        let mut results = Results::new(true, Secrets::default());
        let mut rows = results.next();
        rows.set_columns(vec!["a".into()]).unwrap();
        let half = json!("x".repeat(LARGEST_OUTPUT / 2));
        rows.push([half.clone()]).unwrap();
        results.add(rows);
        let mut rows = results.next();
        rows.set_columns(vec!["a".into()]).unwrap();
        let refused = rows.push([half]).unwrap_err().to_string();
        assert_eq!(refused, "the rows are larger than 64 MiB: ask for fewer of them with `limit`");
        let twice = results.next().set_columns(vec!["b".into(), "a".into(), "b".into()]).unwrap_err();
        assert_eq!(twice.to_string(), "two columns are called `b`: give one another name with `as`");
    }

    #[test]
    fn floats_are_numbers_where_they_can_be() {
        assert_eq!(short_float(0.1), json!(0.1));
        assert_eq!(float(f64::NAN), "NaN");
        assert_eq!(float(f64::NEG_INFINITY), "-Infinity");
        assert_eq!(short_float(f32::INFINITY), "Infinity");
    }
}
