//! An entry as bytes: one byte that says which version, then the fields in order, without names.
//!
//! Whatever was written once stays readable; what a newer version wrote is refused, not guessed at.

use crate::contract::Entry;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// The version that is written.
pub const VERSION: u8 = 1;
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
    #[error("the entry is damaged")]
    Damaged(#[source] postcard::Error),
    #[error("the entry cannot be encoded")]
    Unwritable(#[source] postcard::Error),
}

pub fn encode(entry: &Entry) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::with_capacity(BYTES_A_WRITE * (1 + entry.writes.len()));
    bytes.push(VERSION);
    postcard::to_extend(entry, bytes).map_err(CodecError::Unwritable)
}

pub fn decode(bytes: &[u8]) -> Result<Entry, CodecError> {
    decode_part(bytes)
}

/// A part of an entry that is kept for itself.
pub fn encode_part(part: &impl Serialize) -> Result<Vec<u8>, CodecError> {
    postcard::to_extend(part, vec![VERSION]).map_err(CodecError::Unwritable)
}

pub fn decode_part<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let (&version, rest) = bytes.split_first().ok_or(CodecError::Empty)?;
    match version {
        VERSION => {
            let (part, rest) = postcard::take_from_bytes(rest).map_err(CodecError::Damaged)?;
            // What is left over was not written by us.
            if rest.is_empty() {
                Ok(part)
            } else {
                Err(CodecError::Damaged(postcard::Error::DeserializeBadEncoding))
            }
        }
        found => Err(CodecError::Newer { found }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::ids::{Name, NodeId, TaskId};
    use tidegate_core::protocol::{Payload, Write};
    use tidegate_core::state::State;
    use tidegate_core::time::Moment;

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
        assert!(matches!(decode(&[VERSION + 1]), Err(CodecError::Newer { found: 2 })));
    }

    #[test]
    fn the_first_version_is_never_forgotten() {
        let written = [
            1, 7, 2, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
            255, 3, 10, 132, 7, 1, 172, 2, 1, 9, 1, 15, 1, 119, 5,
        ];
        assert_eq!(encode(&entry()).unwrap(), written);
        assert_eq!(decode(&written).unwrap(), entry());
    }
}
