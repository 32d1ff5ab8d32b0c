//! An entry as bytes: one byte that says which version, then the fields in order, without names. Only definitions, and
//! what workers say of themselves, are JSON inside it: there is much to them and few of them, and they grow with the
//! language.
//!
//! What a newer version wrote is refused, not guessed at.

use crate::contract::Entry;
use serde::de::DeserializeOwned;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;
use tidegate_core::protocol::Write;
use tidegate_core::time::Moment;

/// The version of entries that is written.
pub const VERSION: u8 = 2;
/// The same for parts of them.
const PART_VERSION: u8 = 1;
/// About what an ordinary write takes: room for all of them from the beginning saves copying them as they grow.
const BYTES_A_WRITE: usize = 96;

#[derive(Debug, Error)]
pub enum CodecError {
    #[error("an entry is never empty")]
    Empty,
    #[error(
        "the entry was written by a newer version of Tidegate (encoding {found}, this one knows {VERSION})"
    )]
    Newer { found: u8 },
    #[error("the entry was written before version 0.1 of Tidegate (encoding {found}), and cannot be read")]
    Older { found: u8 },
    #[error("the entry is damaged")]
    Damaged(#[source] postcard::Error),
    #[error("the entry is damaged: {0}")]
    DamagedJson(#[source] serde_json::Error),
    #[error("the entry cannot be encoded")]
    Unwritable(#[source] postcard::Error),
}

pub fn encode(entry: &Entry) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::with_capacity(BYTES_A_WRITE * (1 + entry.writes.len()));
    bytes.push(VERSION);
    postcard::to_extend(&Outgoing(entry), bytes).map_err(CodecError::Unwritable)
}

pub fn decode(bytes: &[u8]) -> Result<Entry, CodecError> {
    let Incoming { sequence, term, batch, now, next, letters, digest, writes } = read(bytes, VERSION)?;
    let write = |write: Stored<Write>| match write {
        Stored::Plain(write) => Ok(write),
        Stored::Json(text) => serde_json::from_str(&text).map_err(CodecError::DamagedJson),
    };
    let writes = writes.into_iter().map(write).collect::<Result<_, _>>()?;
    Ok(Entry { sequence, term, batch, now, next, letters, digest, writes })
}

/// A part of an entry that is kept for itself.
pub fn encode_part(part: &impl Serialize) -> Result<Vec<u8>, CodecError> {
    postcard::to_extend(part, vec![PART_VERSION]).map_err(CodecError::Unwritable)
}

pub fn decode_part<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    read(bytes, PART_VERSION)
}

fn read<T: DeserializeOwned>(bytes: &[u8], version: u8) -> Result<T, CodecError> {
    let (&found, rest) = bytes.split_first().ok_or(CodecError::Empty)?;
    if found > version {
        return Err(CodecError::Newer { found });
    }
    if found < version {
        return Err(CodecError::Older { found });
    }
    match postcard::take_from_bytes(rest).map_err(CodecError::Damaged)? {
        (part, []) => Ok(part),
        // What is left over was not written by us.
        _ => Err(CodecError::Damaged(postcard::Error::DeserializeBadEncoding)),
    }
}

/// How a write stands in an entry.
#[derive(Serialize, Deserialize)]
enum Stored<W> {
    Plain(W),
    Json(String),
}

struct Outgoing<'a>(&'a Entry);

impl Serialize for Outgoing<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Entry { sequence, term, batch, now, next, letters, digest, writes } = self.0;
        let mut fields = serializer.serialize_struct("Entry", 8)?;
        fields.serialize_field("sequence", sequence)?;
        fields.serialize_field("term", term)?;
        fields.serialize_field("batch", batch)?;
        fields.serialize_field("now", now)?;
        fields.serialize_field("next", next)?;
        fields.serialize_field("letters", letters)?;
        fields.serialize_field("digest", digest)?;
        fields.serialize_field("writes", &OutgoingWrites(writes))?;
        fields.end()
    }
}

struct OutgoingWrites<'a>(&'a [Write]);

impl Serialize for OutgoingWrites<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(OutgoingWrite))
    }
}

struct OutgoingWrite<'a>(&'a Write);

impl Serialize for OutgoingWrite<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Write::Declared(_) | Write::WorkerJoined(_) => {
                let json = serde_json::to_string(self.0).map_err(serde::ser::Error::custom)?;
                Stored::<&Write>::Json(json).serialize(serializer)
            }
            write => Stored::Plain(write).serialize(serializer),
        }
    }
}

#[derive(Deserialize)]
struct Incoming {
    sequence: u64,
    term: u32,
    batch: u128,
    now: Moment,
    next: u64,
    letters: Vec<u64>,
    digest: Option<u64>,
    writes: Vec<Stored<Write>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tidegate_core::ids::{Name, NodeId, TaskId};
    use tidegate_core::model::{Action, ActionPolicy};
    use tidegate_core::protocol::{ActionRow, DeclaredRow, Payload};
    use tidegate_core::state::State;

    fn entry() -> Entry {
        let writes = vec![Write::WorkerGone { worker: Name::new("w"), at: Moment(-3) }];
        Entry {
            sequence: 7,
            term: 2,
            batch: u128::MAX,
            now: Moment(5),
            next: 900,
            letters: vec![300],
            digest: Some(9),
            writes,
        }
    }

    #[test]
    fn what_was_written_reads_back() {
        assert_eq!(decode(&encode(&entry()).unwrap()).unwrap(), entry());
    }

    #[test]
    fn payloads_are_a_length_and_their_bytes() {
        let task = TaskId::node(NodeId(1));
        let output = Some(Payload::new([0, 127, 128, 255]));
        let ended = Write::Ended { task, state: State::Succeeded, output, error: None, at: Moment(1) };
        let entry = Entry { writes: vec![ended], ..entry() };
        let bytes = encode(&entry).unwrap();
        assert_eq!(decode(&bytes).unwrap(), entry);
        assert!(bytes.windows(5).any(|part| part == [4, 0, 127, 128, 255]), "{bytes:?}");
    }

    #[test]
    fn what_is_not_an_entry_is_refused() {
        let bytes = encode(&entry()).unwrap();
        assert!(matches!(decode(&[]), Err(CodecError::Empty)));
        assert!(matches!(decode(&bytes[..bytes.len() - 1]), Err(CodecError::Damaged(_))));
        assert!(matches!(decode(&[bytes.as_slice(), &[0]].concat()), Err(CodecError::Damaged(_))));
        assert!(matches!(decode(&[VERSION + 1]), Err(CodecError::Newer { found: 3 })));
        assert!(matches!(decode(&[1]), Err(CodecError::Older { found: 1 })));
    }

    #[test]
    fn this_version_is_never_forgotten() {
        let written = [
            2, 7, 2, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
            255, 3, 10, 132, 7, 1, 172, 2, 1, 9, 1, 0, 15, 1, 119, 5,
        ];
        assert_eq!(encode(&entry()).unwrap(), written);
        assert_eq!(decode(&written).unwrap(), entry());
    }

    #[test]
    fn definitions_have_names_inside() {
        let action = Action::function(ActionPolicy::silent("mail".into()));
        let declared = Write::Declared(Box::new(DeclaredRow::Action(ActionRow {
            version: 4,
            action: Arc::new(action),
        })));
        let entry = Entry { writes: vec![declared], ..entry() };
        let bytes = encode(&entry).unwrap();
        assert!(String::from_utf8_lossy(&bytes).contains(r#""max_losses":3"#));
        assert_eq!(decode(&bytes).unwrap(), entry);
    }

    #[test]
    fn an_action_that_was_stored_before_there_were_versions_has_none() {
        let action = Arc::new(Action::function(ActionPolicy::silent("mail".into())));
        let before = format!(r#"{{"Action":{}}}"#, serde_json::to_string(&action).unwrap());
        let read: DeclaredRow = serde_json::from_str(&before).unwrap();
        assert_eq!(read, DeclaredRow::Action(ActionRow { version: 0, action }));
    }
}
