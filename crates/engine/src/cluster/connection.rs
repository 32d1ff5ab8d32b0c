//! Messages over a socket: read until somebody closes, written as they come.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::time::Duration;
use tidegate_core::protocol::Command;
use tidegate_wire::{FrameError, frame, take_frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

/// A side that was not heard for so long is taken for gone. Both say something far more often.
pub(super) const SILENCE: Duration = Duration::from_secs(3);
/// How often a server that forwards says what time it is.
pub(super) const PING_EVERY: Duration = Duration::from_millis(200);
/// Commands that can wait, of one server, which are on their way to the one that leads or wait there for room. While there
/// are so many, those who want to send more wait where they are. Large ones count as several, so that no server keeps more
/// than 80 MiB of another, and what was sent last.
pub(super) const OUTSTANDING: usize = 10_000;
const LARGE: usize = 8 * 1_024;
/// What is listened to of somebody who has not shown the token yet.
const HELLO: usize = 1_024;
/// Messages written at a time, and about how many bytes of them.
const AT_ONCE: usize = 256;
const BYTES_AT_ONCE: usize = 64 * 1_024;

/// How many of those that may be outstanding these commands are.
pub(super) fn weight(commands: &[Command]) -> usize {
    commands.iter().map(|command| (command.size() / LARGE).max(1)).sum()
}

pub(super) struct Incoming {
    socket: OwnedReadHalf,
    received: Vec<u8>,
    /// Of these bytes, so many were given out as messages.
    taken: usize,
    /// Bytes that are kept for a message that is not complete.
    most: usize,
}

impl Incoming {
    /// From somebody who has still to say who it is: only a few bytes are listened to.
    pub(super) fn from_stranger(socket: OwnedReadHalf) -> Self {
        Incoming { socket, received: Vec::new(), taken: 0, most: HELLO }
    }

    pub(super) fn new(socket: OwnedReadHalf) -> Self {
        Incoming::from_stranger(socket).trusted()
    }

    /// It may say all that fits into a message.
    pub(super) fn trusted(self) -> Self {
        Incoming { most: usize::MAX, ..self }
    }

    /// The next message. The end, a long silence or a message that cannot be read is an error: in every case there is
    /// nothing more to say.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        loop {
            if let Some((message, length)) =
                take_frame(&self.received[self.taken..]).map_err(io::Error::other)?
            {
                self.taken += length;
                return Ok(message);
            }
            self.received.drain(..self.taken);
            self.taken = 0;
            if self.received.len() > self.most {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let read = tokio::time::timeout(SILENCE, self.socket.read_buf(&mut self.received)).await;
            if read.map_err(io::Error::other)?? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Writes what comes until nobody can send any more, or the other side is gone. `refuse` hears of a message that is too
/// long, and of its length, and says whether that is settled: sent again, it would be as long.
pub(super) async fn write_all<T: Serialize>(
    mut socket: OwnedWriteHalf,
    mut outbox: mpsc::UnboundedReceiver<T>,
    refuse: impl Fn(&T, usize) -> bool,
) -> io::Result<()> {
    let (mut messages, mut bytes) = (Vec::with_capacity(AT_ONCE), Vec::new());
    while outbox.recv_many(&mut messages, AT_ONCE).await > 0 {
        for message in messages.drain(..) {
            match frame(&message, &mut bytes) {
                Err(FrameError::TooLong(length)) if refuse(&message, length) => {}
                framed => framed.map_err(io::Error::other)?,
            }
            if bytes.len() >= BYTES_AT_ONCE {
                write(&mut socket, &mut bytes).await?;
            }
        }
        write(&mut socket, &mut bytes).await?;
    }
    socket.shutdown().await
}

/// Piece by piece: the other side is gone if it takes nothing for long, and not if there is much to take.
async fn write(socket: &mut OwnedWriteHalf, bytes: &mut Vec<u8>) -> io::Result<()> {
    for piece in bytes.chunks(BYTES_AT_ONCE) {
        tokio::time::timeout(SILENCE, socket.write_all(piece)).await.map_err(io::Error::other)??;
    }
    bytes.clear();
    Ok(())
}
