//! The output of a chain: `{ page: { state, output }, … }`, and how many rounds there were.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tidegate_core::ids::Name;
use tidegate_core::protocol::{LARGEST_PAYLOAD, Payload};
use tidegate_flow::chain::ROUNDS;

/// What the members have put out so far.
#[derive(Default)]
pub(super) struct Record {
    members: Vec<(Name, MemberRecord)>,
    bytes: usize,
}

#[derive(Serialize)]
struct MemberRecord {
    state: &'static str,
    output: Box<RawValue>,
}

impl Record {
    /// Refuses what could not be reported in the end. The error is a sentence.
    pub(super) fn add(&mut self, member: &Name, state: &'static str, output: Payload) -> Result<(), String> {
        self.bytes += output.bytes().len();
        if self.bytes > LARGEST_PAYLOAD {
            return Err(format!(
                "member `{member}`: the members have put out more than the {LARGEST_PAYLOAD} bytes that one output may have"
            ));
        }
        let output = serde_json::from_slice(output.bytes()).map_err(|error| error.to_string())?;
        self.members.push((member.clone(), MemberRecord { state, output }));
        Ok(())
    }

    pub(super) fn payload(&self) -> Payload {
        // Names and JSON always serialise; `null` is only there to say so without a panic.
        serde_json::to_vec(self).map_or_else(|_| Payload::null(), Payload::new)
    }
}

/// In the order in which they were done.
impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.members.len()))?;
        for (name, record) in &self.members {
            map.serialize_entry(name, record)?;
        }
        map.end()
    }
}

/// The output of what was repeated: that of its last round, and which it was.
pub(super) fn with_rounds(output: Payload, rounds: u32) -> Payload {
    let fields: Result<BTreeMap<String, Box<RawValue>>, _> = serde_json::from_slice(output.bytes());
    let number = serde_json::value::to_raw_value(&rounds);
    // Whatever runs gives an object; anything else is left as it is.
    let (Ok(mut fields), Ok(number)) = (fields, number) else { return output };
    fields.insert(ROUNDS.to_owned(), number);
    serde_json::to_vec(&fields).map_or(output, Payload::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_stay_as_they_were_written() {
        let mut record = Record::default();
        record.add(&Name::new("page"), "succeeded", Payload::new("{\"n\": 1.50}")).unwrap();
        record.add(&Name::new("a"), "skipped", Payload::null()).unwrap();
        let page = "\"page\":{\"state\":\"succeeded\",\"output\":{\"n\": 1.50}}";
        let skipped = "\"a\":{\"state\":\"skipped\",\"output\":null}";
        assert_eq!(record.payload(), Payload::new(format!("{{{page},{skipped}}}")));
        let repeated = format!("{{{skipped},{page},\"rounds\":7}}");
        assert_eq!(with_rounds(record.payload(), 7), Payload::new(repeated));
        assert_eq!(with_rounds(Payload::null(), 7), Payload::null());
    }

    #[test]
    fn members_have_room_for_one_output_together() {
        let mut record = Record::default();
        let half = Payload::new(format!("\"{}\"", "x".repeat(LARGEST_PAYLOAD / 2)));
        assert!(record.add(&Name::new("a"), "succeeded", half.clone()).is_ok());
        let error = record.add(&Name::new("b"), "succeeded", half).unwrap_err();
        assert!(error.starts_with("member `b`: the members have put out more than"), "{error}");
    }
}
