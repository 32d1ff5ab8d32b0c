//! Messages in a stream of bytes: four bytes for the length, then the message.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Longer messages are refused, on both sides.
pub const MOST_BYTES: usize = 80 * 1024 * 1024;
const LENGTH: usize = 4;

#[derive(Debug, Error)]
pub enum FrameError {
    #[error("a message of {0} bytes is too long")]
    TooLong(usize),
    #[error("a message cannot be read")]
    Unreadable(#[source] postcard::Error),
    #[error("a message cannot be written")]
    Unwritable(#[source] postcard::Error),
}

/// Appends a message to what is to be sent. If it cannot be, nothing is appended.
pub fn frame(message: &impl Serialize, out: &mut Vec<u8>) -> Result<(), FrameError> {
    let body = postcard::to_stdvec(message).map_err(FrameError::Unwritable)?;
    if body.len() > MOST_BYTES {
        return Err(FrameError::TooLong(body.len()));
    }
    out.extend((body.len() as u32).to_le_bytes());
    out.extend(body);
    Ok(())
}

/// The first message of what was received, and how many bytes it took; nothing if it is not complete.
pub fn take_frame<T: DeserializeOwned>(received: &[u8]) -> Result<Option<(T, usize)>, FrameError> {
    let Some((length, rest)) = received.split_first_chunk::<LENGTH>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > MOST_BYTES {
        return Err(FrameError::TooLong(length));
    }
    let Some(body) = rest.get(..length) else { return Ok(None) };
    let message = postcard::from_bytes(body).map_err(FrameError::Unreadable)?;
    Ok(Some((message, LENGTH + length)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Query, Request, VERSION};
    use tidegate_core::ids::RunId;

    #[test]
    fn messages_come_out_whole_and_in_order() {
        let messages = [
            Request::Hello { version: VERSION, token: "secret".to_owned() },
            Request::Query { id: 7, query: Query::FindId(RunId(9)) },
        ];
        let mut bytes = Vec::new();
        messages.iter().for_each(|message| frame(message, &mut bytes).unwrap());
        let (mut received, mut seen) = (Vec::new(), Vec::new());
        for byte in bytes {
            received.push(byte);
            while let Some((message, length)) = take_frame::<Request>(&received).unwrap() {
                seen.push(message);
                received.drain(..length);
            }
        }
        assert_eq!(seen, messages);
        assert_eq!(received, []);
    }

    #[test]
    fn what_is_too_long_or_no_message_is_refused() {
        let long = (MOST_BYTES as u32 + 1).to_le_bytes();
        assert!(matches!(take_frame::<Request>(&long), Err(FrameError::TooLong(_))));
        assert!(matches!(take_frame::<Request>(&[1, 0, 0, 0, 99]), Err(FrameError::Unreadable(_))));
        let mut out = b"before".to_vec();
        let huge = Request::Hello { version: 1, token: "x".repeat(MOST_BYTES) };
        assert!(matches!(frame(&huge, &mut out), Err(FrameError::TooLong(_))));
        assert_eq!(out, b"before");
    }
}
